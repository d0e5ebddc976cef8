"""Asks a running head."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import grpc

from everstep.control.service import SERVICE
from everstep.observe.events import Event
from everstep.wire import control_pb2 as control
from everstep.wire.errors import Code, Failure

_TIMEOUT = 10.0  # seconds


def status(target: str) -> dict[str, Any]:
    """What the head at a gRPC target ("unix:/path" or "host:port") tells of itself. Raises Failure if it doesn't answer."""
    with _connected(target) as channel:
        call = channel.unary_unary(
            f"/{SERVICE}/Status",
            request_serializer=control.StatusRequest.SerializeToString,
            response_deserializer=control.StatusReply.FromString,
        )
        answer: dict[str, Any] = json.loads(call(control.StatusRequest(), timeout=_TIMEOUT).json)
        return answer


def kill(target: str, worker: str, signal: int) -> None:
    """Let the head send a signal to the process of a worker. Raises Failure if it can't, or doesn't answer."""
    with _connected(target) as channel:
        call = channel.unary_unary(
            f"/{SERVICE}/Kill",
            request_serializer=control.KillRequest.SerializeToString,
            response_deserializer=control.KillReply.FromString,
        )
        call(control.KillRequest(worker=worker, signal=signal), timeout=_TIMEOUT)


def events(target: str, *, after: int = 0) -> list[Event]:
    """The events that the head keeps, from the one after the given number. Raises Failure if it doesn't answer."""
    with _connected(target) as channel:
        return [_event(event) for event in _events(channel)(control.EventsRequest(after=after), timeout=_TIMEOUT)]


class Events:
    """The events of a head from the one after the given number, and each new one as it comes, until the head ends."""

    def __init__(self, target: str, *, after: int = 0) -> None:
        self._channel = grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)])
        self._call = _events(self._channel)(control.EventsRequest(after=after, follow=True))

    def __iter__(self) -> Iterator[Event]:
        with contextlib.suppress(grpc.RpcError):
            for event in self._call:
                yield _event(event)

    def close(self) -> None:
        """End it: whoever iterates comes to the end."""
        self._call.cancel()
        self._channel.close()


def _events(channel: grpc.Channel) -> Any:
    return channel.unary_stream(
        f"/{SERVICE}/Events",
        request_serializer=control.EventsRequest.SerializeToString,
        response_deserializer=control.Event.FromString,
    )


def _event(message: control.Event) -> Event:
    return Event.of(json.loads(message.json))


@contextlib.contextmanager
def _connected(target: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        try:
            yield channel
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.FAILED_PRECONDITION:
                raise Failure(Code.FAILED_PRECONDITION, error.details()) from error
            raise Failure(Code.UNAVAILABLE, f"the head at {target} does not answer: {error.details()}") from error
