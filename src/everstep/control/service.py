"""The Control service in the head (wire/control.proto)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import grpc

from everstep.observe.events import Events
from everstep.wire import channel_pb2 as channel
from everstep.wire import control_pb2 as control
from everstep.wire.errors import Code, Failure

SERVICE = "everstep.control.Control"

# Hands one call to the program's process: (number of the call, id of the callback, operands).
Send: TypeAlias = Callable[[int, str, Sequence[channel.HostValue]], None]


class Callbacks(Protocol):
    """Who routes host callbacks between workers and the processes of programs: the runtime."""

    def attach(self, uuid: str, send: Send) -> None:
        """The process that answers for the callbacks "<uuid>/<number>" is there. Raises Failure if that uuid is taken."""

    def detach(self, uuid: str) -> None:
        """It is gone: calls that wait for it fail."""

    def result(self, uuid: str, call: int, values: Sequence[channel.HostValue], error: Failure | None) -> None:
        """Its answer to a call. One that nobody waits for is ignored."""


class Head(Protocol):
    """What is served."""

    @property
    def callbacks(self) -> Callbacks: ...

    @property
    def events(self) -> Events: ...

    def status(self) -> Mapping[str, Any]:
        """What can be written as one JSON object."""

    def kill(self, worker: str, signal: int) -> None:
        """Send a signal to a worker's process. Raises Failure if that can't be done."""


def add_to_server(server: grpc.aio.Server, head: Head) -> None:
    """Serve Control on `server`."""

    async def answer_status(request: control.StatusRequest, context: object) -> control.StatusReply:
        return control.StatusReply(json=json.dumps(head.status()))

    async def answer_kill(request: control.KillRequest, context: grpc.aio.ServicerContext[Any, Any]) -> control.KillReply:
        try:
            head.kill(request.worker, request.signal)
        except Failure as failure:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, failure.message)
        return control.KillReply()

    async def answer_events(request: control.EventsRequest, context: object) -> AsyncIterator[control.Event]:
        if request.follow:
            async for event in head.events.follow(request.after):
                yield control.Event(json=json.dumps(event.as_dict()))
        else:
            for event in head.events.after(request.after):
                yield control.Event(json=json.dumps(event.as_dict()))

    async def answer_callbacks(
        requests: AsyncIterator[control.FromProgram], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[control.ToProgram]:
        async for message in _Relay(head.callbacks).run(requests, context):
            yield message

    handlers = {
        "Status": grpc.unary_unary_rpc_method_handler(
            answer_status, control.StatusRequest.FromString, control.StatusReply.SerializeToString
        ),
        "Kill": grpc.unary_unary_rpc_method_handler(answer_kill, control.KillRequest.FromString, control.KillReply.SerializeToString),
        "Events": grpc.unary_stream_rpc_method_handler(answer_events, control.EventsRequest.FromString, control.Event.SerializeToString),
        "Callbacks": grpc.stream_stream_rpc_method_handler(
            answer_callbacks, control.FromProgram.FromString, control.ToProgram.SerializeToString
        ),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))


class _Relay:
    """One `Callbacks` stream."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self._outgoing: asyncio.Queue[control.ToProgram | None] = asyncio.Queue()

    async def run(
        self, requests: AsyncIterator[control.FromProgram], context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[control.ToProgram]:
        first = await anext(aiter(requests), None)
        if first is None or not first.register.uuid:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the first message must be Register with a uuid")
        assert first is not None
        uuid = first.register.uuid
        try:
            self._callbacks.attach(uuid, self._send)
        except Failure as failure:
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, failure.message)
        reader = asyncio.ensure_future(self._read(uuid, requests))
        try:
            yield control.ToProgram(registered=control.Registered())
            while (message := await self._outgoing.get()) is not None:
                yield message
        finally:
            self._callbacks.detach(uuid)
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader

    def _send(self, call: int, callback: str, operands: Sequence[channel.HostValue]) -> None:
        self._outgoing.put_nowait(control.ToProgram(call=control.Call(call=call, callback=callback, operands=operands)))

    async def _read(self, uuid: str, requests: AsyncIterator[control.FromProgram]) -> None:
        try:
            async for message in requests:
                if message.WhichOneof("body") == "result":
                    result = message.result
                    self._callbacks.result(uuid, result.call, result.values, _failure(result))
        finally:
            self._outgoing.put_nowait(None)  # the program has closed its side


def _failure(result: control.Result) -> Failure | None:
    if not result.HasField("error"):
        return None
    try:
        code = Code(result.error.code)
    except ValueError:
        code = Code.UNKNOWN
    return Failure(code, result.error.message)
