"""Host callbacks: a program on a device calls a function that lives in the program's process, by way of the head."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from everstep.wire import channel_pb2 as wire
from everstep.wire import values
from everstep.wire.errors import Code, Failure
from everstep.worker import xla
from everstep.worker.faults import FAULTS
from everstep.worker.reports import Reporter
from everstep.worker.world import World


class _Call:
    def __init__(self, world: World) -> None:
        self.world = world
        self.answered = threading.Event()
        self.values: tuple[Any, ...] = ()
        self.failure: Failure | None = None


class Callbacks:
    """The calls that wait for their answer."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._numbers = itertools.count(1)
        self._calls: dict[int, _Call] = {}

    def function(self, callback: str, world: World) -> Callable[..., tuple[Any, ...]]:
        """What XLA calls in place of the function that the program gave: NumPy arrays (None for tokens) in and out."""

        def call(*operands: Any) -> tuple[Any, ...]:
            return self._call(callback, world, operands)

        return call

    def answer(self, _: int, message: wire.CallbackResult) -> None:
        """The result has come. An answer to a call that waits no more is passed over."""
        call = self._calls.pop(message.call, None)
        if call is None:
            return
        if message.HasField("error"):
            call.failure = Failure(Code(message.error.code), message.error.message)
        else:
            call.values = tuple(map(values.decode, message.values))
        call.answered.set()

    def abandon(self, world: World, failure: Failure) -> None:
        """The calls of this world's programs fail."""
        for number, call in list(self._calls.items()):
            if call.world is world and self._calls.pop(number, None) is not None:
                call.failure = failure
                call.answered.set()

    def _call(self, callback: str, world: World, operands: tuple[Any, ...]) -> tuple[Any, ...]:
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
