"""The server for host callbacks in the program's process: programs on workers call, the head relays (wire/control.proto)."""

from __future__ import annotations

import itertools
import queue
import threading
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

import grpc

from everstep.jax_plugin.threads import Threads
from everstep.wire import channel_pb2 as channel
from everstep.wire import control_pb2 as control
from everstep.wire import values
from everstep.wire.errors import Code

# Operands to results: arrays, None for tokens.
Function: TypeAlias = Callable[..., Sequence[Any]]

_METHOD = f"/{control.DESCRIPTOR.services_by_name['Control'].full_name}/Callbacks"
_OPTIONS = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_TIMEOUT = 60.0  # seconds until the head must have answered


class NotAHeadError(Exception):
    """Something answers at the target, but it doesn't know host callbacks."""


class CallbackServer:
    """Answers for the callbacks of this process. Lives as long as the connection to the head; there is no reconnecting.

    target: as in JAX_BACKEND_TARGET. Raises NotAHeadError, RuntimeError (nobody answers).
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._uuid = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._functions: dict[str, Function] = {}
        self._outgoing: queue.SimpleQueue[control.FromProgram | None] = queue.SimpleQueue()
        self._threads = Threads("everstep-callback")
        self._channel = grpc.insecure_channel(target.removeprefix("grpc://"), options=_OPTIONS)
        registered: Future[None] = Future()
        self._reader = threading.Thread(target=self._serve, args=(registered,), name="everstep-callbacks", daemon=True)
        self._reader.start()
        try:
            registered.result(_TIMEOUT)
        except grpc.RpcError as error:
            self.close()
            if error.code() == grpc.StatusCode.UNIMPLEMENTED:
                raise NotAHeadError(target) from None
            raise RuntimeError(f"host callbacks: the head at {target} does not take them: {error.details()}") from error
        except TimeoutError as error:
            self.close()
            raise RuntimeError(f"host callbacks: the head at {target} does not answer") from error

    @property
    def is_alive(self) -> bool:
        """Whether calls can still arrive."""
        return self._reader.is_alive()

    def add(self, functions: Sequence[Function]) -> list[str]:
        """Answer for these from now on. Returns their ids, in the same order."""
        ids = [f"{self._uuid}/{next(self._numbers)}" for _ in functions]
        self._functions.update(zip(ids, functions, strict=True))
        return ids

    def remove(self, ids: Sequence[str]) -> None:
        """Nobody calls these any more."""
        for callback in ids:
            self._functions.pop(callback, None)

    def close(self) -> None:
        """Calls that wait for an answer get an error from the head."""
        self._outgoing.put(None)
        self._channel.close()

    def _serve(self, registered: Future[None]) -> None:
        stream = self._channel.stream_stream(
            _METHOD, request_serializer=control.FromProgram.SerializeToString, response_deserializer=control.ToProgram.FromString
        )(self._requests())
        try:
            for message in stream:
                if message.WhichOneof("body") == "call":
                    self._threads.submit(self._answer, message.call)
                elif not registered.done():
                    registered.set_result(None)
        except grpc.RpcError as error:  # the head is gone (whatever uses the backend is told so by JAX), or we are
            if not registered.done():
                registered.set_exception(error)
        except ValueError:  # the channel was closed before the stream began
            pass

    def _requests(self) -> Iterator[control.FromProgram]:
        yield control.FromProgram(register=control.Register(uuid=self._uuid))
        while (message := self._outgoing.get()) is not None:
            yield message

    def _answer(self, call: control.Call) -> None:
        result = control.Result(call=call.call)
        try:
            function = self._functions[call.callback]
        except KeyError:
            result.error.CopyFrom(channel.Error(code=Code.CANCELLED, message=f"host callback {call.callback} is gone"))
        else:
            try:
                outputs = function(*map(values.decode, call.operands))
                result.values.extend(map(values.encode, outputs))
            except BaseException as error:  # also SystemExit: the program on the worker must hear of it, and nobody else would
                result.ClearField("values")
                result.error.CopyFrom(channel.Error(code=Code.UNKNOWN, message=_describe(error)))
        self._outgoing.put(control.FromProgram(result=result))


def _describe(error: BaseException) -> str:
    """As JAX shows it: the traceback, from the callback on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__package__") == __package__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()
