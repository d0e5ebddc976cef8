"""Host callbacks: a program on a device calls a function that lives in the program's process, by way of the head."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from everstep.wire import channel_pb2 as wire
from everstep.wire import values
from everstep.wire.errors import Code, Failure
from everstep.worker import hlo, xla
from everstep.worker.faults import FAULTS
from everstep.worker.reports import Reporter
from everstep.worker.world import World


class _Call:
    def __init__(self, world: World) -> None:
        self.world = world
        self.answered = threading.Event()
        self.values: Sequence[wire.HostValue] = ()
        self.failure: Failure | None = None


class Function:
    """What XLA calls in place of one function that the program gave: NumPy arrays (None for tokens) in and out."""

    def __init__(self, callback: str, world: World, call: Callable[[tuple[Any, ...]], Sequence[wire.HostValue]]) -> None:
        self.callback = callback
        self.results: Sequence[hlo.Result] | None = None  # what the program expects; None: not known
        self.on_failure: Callable[[Failure], None] | None = None  # whoever wants to know before the program ends
        self._world = world
        self._call = call
        self._since: dict[object, float] = {}  # when the calls began that are not answered yet

    def oldest_call(self, after: float) -> float:
        """When the oldest call began that is not answered yet, of those that began after that time (time.monotonic); else infinity."""
        return min((since for since in list(self._since.values()) if since >= after), default=math.inf)

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """Raises xla.CallbackError."""
        key = object()
        self._since[key] = time.monotonic()
        try:
            got = self._call(operands)
            self._check(got)
            return tuple(map(values.decode, got))
        except xla.CallbackError as error:
            if self.on_failure is not None and self._world.broken is None:
                self.on_failure(xla.failure(error))
            raise
        finally:
            del self._since[key]

    def _check(self, got: Sequence[wire.HostValue]) -> None:
        """XLA would read as many bytes as it expects, whatever they are and however many there are."""
        if self.results is None:
            return
        kinds = tuple((value.dtype, tuple(value.shape)) for value in got)
        if kinds != tuple(self.results) or not all(map(values.is_whole, got)):
            returned = ", ".join(f"{_name(*kind)} in {len(value.data)} bytes" for kind, value in zip(kinds, got, strict=True))
            expected = ", ".join(_name(*kind) for kind in self.results)
            code = Code.INVALID_ARGUMENT.name
            raise xla.CallbackError(f"{code}: host callback {self.callback} returned ({returned}), but the program expects ({expected})")


def _name(dtype: str, shape: Sequence[int]) -> str:
    return f"{dtype}{list(shape)}"


class Callbacks:
    """The calls that wait for their answer."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._numbers = itertools.count(1)
        self._calls: dict[int, _Call] = {}

    def function(self, callback: str, world: World) -> Function:
        """What XLA calls in place of the function of this id."""
        return Function(callback, world, lambda operands: self._call(callback, world, operands))

    def answer(self, _: int, message: wire.CallbackResult) -> None:
        """The result has come. An answer to a call that waits no more is passed over."""
        call = self._calls.pop(message.call, None)
        if call is None:
            return
        if message.HasField("error"):
            call.failure = Failure(Code(message.error.code), message.error.message)
        else:
            call.values = message.values
        call.answered.set()

    def abandon(self, world: World, failure: Failure) -> None:
        """The calls of this world's programs fail."""
        for number, call in list(self._calls.items()):
            if call.world is world and self._calls.pop(number, None) is not None:
                call.failure = failure
                call.answered.set()

    def _call(self, callback: str, world: World, operands: tuple[Any, ...]) -> Sequence[wire.HostValue]:
        call = _Call(world)
        number = next(self._numbers)
        self._calls[number] = call
        if world.broken is not None:
            self.abandon(world, world.broken)
        else:
            encoded = map(values.encode, operands)
            FAULTS.reach("callback")
            self._reporter.send(wire.ToHead(callback_call=wire.CallbackCall(call=number, callback=callback, operands=encoded)))
        call.answered.wait()
        if call.failure is not None:
            raise xla.CallbackError(call.failure.message)
        return call.values
