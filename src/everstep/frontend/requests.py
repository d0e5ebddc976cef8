"""What a group of request handlers looks like."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeAlias

from everstep.wire.errors import Failure
from everstep.wire.ifrt import requests_pb2 as wire

# Takes the body of a request; gives the response, or something to await for it. Raises Failure.
Handler: TypeAlias = Callable[[Any], wire.IfrtResponse | Awaitable[wire.IfrtResponse]]

# Takes the body of a request that failed: handles that the client minted for its results hold the failure from now on.
OnFailure: TypeAlias = Callable[[Any, Failure], None]


class RequestGroup(Protocol):
    """Handlers of some kinds of requests, by the name of the field in IfrtRequest."""

    handlers: Mapping[str, Handler]
    on_failure: Mapping[str, OnFailure]
