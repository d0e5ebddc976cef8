"""One session: the requests of one program, taken in order, and their responses, given as soon as they are known."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from everstep.frontend.arrays import ArrayRequests
from everstep.frontend.codec import status
from everstep.frontend.codec.shardings import Specs
from everstep.frontend.devices import DeviceRequests
from everstep.frontend.handles import DELETED, HandleTable, fresh_handles
from everstep.frontend.programs import ProgramRequests
from everstep.frontend.requests import Handler, OnFailure, RequestGroup
from everstep.frontend.waiting import WaitingRequests
from everstep.wire.errors import Code, Failure, invalid, unimplemented
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import service_pb2

if TYPE_CHECKING:
    from everstep.head.arrays import Array
    from everstep.head.operations import Execution
    from everstep.head.runtime import Runtime

log = logging.getLogger(__name__)

_PACKED_LAYOUTS = 4  # serialization version of the first jaxlib whose default layouts tell the size of sub-byte types


class ProxySession:
    """Handles of one program, and what its requests do with them.

    Each request is handled as far as it goes without waiting, before the next one is looked at; a task waits for the rest.
    outbox: serialized responses, for whoever writes them.
    """

    def __init__(self, runtime: Runtime, version: service_pb2.Version, label: str) -> None:
        self.id = secrets.randbits(63) | 1  # not to be guessed by another program, and never 0
        self.outbox: asyncio.Queue[bytes] = asyncio.Queue()
        self.owned = runtime.open_session(label)
        fresh = fresh_handles()
        arrays: HandleTable[Array] = HandleTable("array", fresh)
        executions: HandleTable[Execution] = HandleTable("future", fresh)
        specs = Specs(runtime.topology.devices)
        groups: tuple[RequestGroup, ...] = (
            DeviceRequests(runtime.topology, self.id, packed_layouts=version.ifrt_serdes_version_number >= _PACKED_LAYOUTS),
            WaitingRequests(self.owned, arrays, executions),
            ArrayRequests(self.owned, arrays, specs),
            ProgramRequests(self.owned, arrays, executions, specs, fresh),
        )
        self._handlers: dict[str, Handler] = {}
        self._on_failure: dict[str, OnFailure] = {}
        for group in groups:
            self._handlers |= group.handlers
            self._on_failure |= group.on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self._contexts: list[int] = []  # tracebacks that the program's client may forget: nobody here keeps them
        self._counted = 0  # responses

    def receive(self, data: bytes) -> None:
        """Take the next request. Raises Failure (INVALID_ARGUMENT) if it is no request at all; the session can't go on then."""
        try:
            request = wire.IfrtRequest.FromString(data)
        except DecodeError as error:
            raise invalid("what arrived is not a request of the IFRT proxy protocol") from error
        name = request.WhichOneof("request") or ""
        handler = self._handlers.get(name)
        try:
            if handler is None:
                raise unimplemented(f"requests of this kind ({name or 'unknown'}) are not supported")
            answer = handler(getattr(request, name))
        except Exception as error:
            self._fail(name, request, error)
            return
        if isinstance(answer, wire.IfrtResponse):
            self._answer(request, answer)
        else:
            task = asyncio.ensure_future(self._answer_later(name, request, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """The program is gone: stop waiting, free all that it owned."""
        for task in self._tasks:
            task.cancel()
        self.owned.close()

    async def _answer_later(self, name: str, request: wire.IfrtRequest, answer: Awaitable[wire.IfrtResponse]) -> None:
        try:
            response = await answer
        except Exception as error:
            self._fail(name, request, error)
        else:
            self._answer(request, response)

    def _answer(self, request: wire.IfrtRequest, response: wire.IfrtResponse) -> None:
        metadata = response.response_metadata
        self._begin(request, metadata)
        if _is_counted(request, response):
            metadata.seq_num = self._counted
            self._counted += 1
            metadata.destroyed_user_context_ids.extend(self._contexts)
            self._contexts.clear()
        self.outbox.put_nowait(response.SerializeToString())

    def _fail(self, name: str, request: wire.IfrtRequest, error: Exception) -> None:
        if isinstance(error, Failure):
            failure = error
        else:
            log.error("a bug: %s failed", name or "an unknown request", exc_info=error)
            failure = Failure(Code.UNKNOWN, f"a bug in everstep: {type(error).__name__}: {error}")
        if name in self._on_failure:
            self._on_failure[name](getattr(request, name), failure)
        response = wire.IfrtResponse()
        self._begin(request, response.response_metadata)
        response.response_metadata.status.CopyFrom(status.encode(failure))
        self.outbox.put_nowait(response.SerializeToString())

    def _begin(self, request: wire.IfrtRequest, metadata: wire.ResponseMetadata) -> None:
        metadata.op_id = request.request_metadata.op_id
        if request.request_metadata.user_context_id:
            self._contexts.append(request.request_metadata.user_context_id)


def _is_counted(request: wire.IfrtRequest, response: wire.IfrtResponse) -> bool:
    """Whether the client looks at the number of this response.

    It forgets tracebacks in the order of these numbers, and stops at a gap. It takes no notice of those in responses to what it
    sends in batches: deletions, and the questions about them that follow.
    """
    if response.WhichOneof("response") in ("delete_array_response", "destruct_array_response"):
        return False
    return request.check_future_request.future_handle != DELETED
