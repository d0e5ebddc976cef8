"""Starting programs.

Programs of one device start when their arguments are there. Programs of several start in the order of their commands, because their devices
wait for each other, and all workers must start them alike. Neither ever makes the queue of commands wait: what can't start yet leaves
placeholders, so that what it waits for may still be in the queue (a host callback, for one, may itself use this worker).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Failure
from everstep.worker import xla
from everstep.worker.arrays import Arrays, Stored, when_done
from everstep.worker.completions import Completions
from everstep.worker.programs import Program
from everstep.worker.reports import Reporter
from everstep.worker.world import World

_PATIENCE = 3.0  # seconds


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """A program, or its placeholder. is_gang: it has several devices, which may wait for each other."""

    program: Future[Program]
    is_gang: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Launch:
    """A start that can't be made at once."""

    op: int
    program: Future[Program]
    arguments: Sequence[Stored | Future[Stored]]
    keep: Collection[int]
    results: Sequence[Future[Stored]]
    release: Callable[[], None]  # of the arguments
    before: Sequence[threading.Event]  # programs that must have ended first


class Launches:
    """Called by the executor only; never blocks for long."""

    def __init__(self, arrays: Arrays, reporter: Reporter) -> None:
        self._arrays = arrays
        self._reporter = reporter
        self._completions = Completions(self._ended)
        self._lane = Lane()
        self._ready: queue.SimpleQueue[_Launch] = queue.SimpleQueue()
        self._gangs: queue.SimpleQueue[_Launch] = queue.SimpleQueue()
        self._gangs_put = self._gangs_done = 0
        self.started = 0  # highest number of an operation whose program has been started
        self._alone: dict[int, threading.Event] = {}  # programs of one device, by operation, that have not ended
        threading.Thread(target=self._run_ready, name="launches", daemon=True).start()
        threading.Thread(target=self._run_gangs, name="gang launches", daemon=True).start()

    def execute(self, op: int, message: wire.Execute, loaded: Loaded) -> None:
        """Start a program, or see to it that it starts."""
        before = tuple(self._alone.values()) if loaded.is_gang else ()
        if not loaded.is_gang:
            self._alone[op] = threading.Event()
        try:
            arguments = [self._arrays.peek(array) for array in message.arguments]
            pending: list[Future[Stored] | Future[Program]] = [each for each in arguments if isinstance(each, Future)]
            program_known = loaded.program.done()
            if not program_known:
                pending.append(loaded.program)
            program = None if pending else loaded.program.result()
            keep = self._kept(message, loaded.program)
            if program is not None and not program.callbacks and self._may_start(program, arguments, keep, loaded):  # type: ignore[arg-type]
                self.started = max(self.started, op)
                results, execution = program.run(arguments, keep)  # type: ignore[arg-type]  # none is pending
                for array, result in zip(message.results, results, strict=True):
                    self._arrays.set(array, result)
                self._completions.wait(op, execution)
                return
        except Exception as error:
            failure = xla.failure(error)
            for array in message.results:
                self._arrays.set(array, failure)
            self._ended(op, failure)
            return
        placeholders: list[Future[Stored]] = [Future() for _ in message.results]
        launch = _Launch(op, loaded.program, arguments, keep, placeholders, self._arrays.hold(message.arguments), before)
        for array, placeholder in zip(message.results, placeholders, strict=True):
            self._arrays.set(array, placeholder)
        if loaded.is_gang:
            self._gangs_put += 1
            self._gangs.put(launch)
        elif program_known and loaded.program.result().callbacks and self._gangs_put == self._gangs_done:
            # It takes its place now: callbacks come in the order of the commands, not in that in which arguments do. A gang before it may
            # not have its place yet, and may be needed for the arguments.
            when_done(pending, lambda: self._not_alone(op))
            self._on_lane(launch)
        else:
            when_done(pending, lambda: self._put_ready(launch))

    def forget(self, world: World) -> None:
        """Nothing is started in this world any more."""
        self._completions.forget(world)

    def _put_ready(self, launch: _Launch) -> None:
        program = launch.program.exception() is None and launch.program.result()
        arguments = [each.result() if isinstance(each, Future) else each for each in launch.arguments if not _failed(each)]
        if program and program.must_adopt(arguments):
            # What it waits for may itself have to be started by the thread for those that are ready.
            threading.Thread(target=self._start, args=(launch,), name="adopting launch", daemon=True).start()
        else:
            self._ready.put(launch)

    def _kept(self, message: wire.Execute, program: Future[Program]) -> Collection[int]:
        """Arguments that must survive: those the head names, and those that somebody is still to read."""
        # Of a program that is still being compiled it is not known which arguments it takes over: then all that are held.
        indices = program.result().donated if program.done() else range(len(message.arguments))
        held = self._arrays.held(message.arguments, indices)
        return {*message.keep_arguments, *held} if held or message.keep_arguments else ()

    def _may_start(self, program: Program, arguments: Sequence[Stored], keep: Collection[int], loaded: Loaded) -> bool:
        """Whether it may start at once: it will not wait itself and, if it is a gang, none waits before it."""
        if not loaded.is_gang:
            return not program.must_adopt(arguments)
        # One that spans workers is left to a thread of its own: XLA may run it within the call, and runs what one thread starts on a device
        # one after the other, so that all that the executor starts would wait for peers.
        return not program.placement.spans_workers and self._gangs_put == self._gangs_done and not program.must_wait(arguments, keep)

    def _ended(self, op: int, failure: Failure | None) -> None:
        self._not_alone(op)
        self._reporter.done(op, failure)

    def _run_ready(self) -> None:
        while True:
            self._start(self._ready.get())

    def _run_gangs(self) -> None:
        while True:
            launch = self._gangs.get()
            _await(launch.program, *launch.arguments)
            if launch.program.exception() is None and launch.program.result().waits_for_peers:
                # While it waits for its peers it may hold all of XLA's threads. A peer may still want what those before it make.
                for event in launch.before:
                    event.wait()
            if (turn := self._start(launch)) is not None:
                turn.wait()
            del launch
            self._gangs_done += 1

    def _start(self, launch: _Launch) -> Turn | None:
        """Its turn, if it went on the lane of programs with callbacks."""
        if launch.program.exception() is None and launch.program.result().callbacks:
            self._not_alone(launch.op)
            return self._on_lane(launch)
        self._run(launch)
        return None

    def _not_alone(self, op: int) -> None:
        """It is ready to start and has a thread of its own: no gang need wait for it. Its callback may want to start one."""
        if (alone := self._alone.pop(op, None)) is not None:
            alone.set()

    def _on_lane(self, launch: _Launch) -> Turn:
        return self._lane.run(lambda: _await(*launch.arguments), lambda: self._run(launch), launch.program.result())

    def _run(self, launch: _Launch) -> None:
        try:
            program = launch.program.result()
            arguments = [each.result() if isinstance(each, Future) else each for each in launch.arguments]
            program.await_turn(arguments, launch.keep)
            self.started = max(self.started, launch.op)
            failing = functools.partial(self._reporter.done, launch.op, running=True)
            results, execution = program.run(arguments, launch.keep, failing)
            for placeholder, result in zip(launch.results, results, strict=True):
                placeholder.set_result(result)
        except Exception as error:
            failure = xla.failure(error)
            for placeholder in launch.results:
                placeholder.set_exception(failure)
            self._ended(launch.op, failure)
            return
        finally:
            launch.release()
        self._completions.wait(launch.op, execution)


def _await(*entries: Future[Program] | Stored | Future[Stored]) -> None:
    """Until all that are placeholders are settled, one way or the other."""
    for each in entries:
        if isinstance(each, Future):
            with contextlib.suppress(Failure):
                each.result()


def _failed(entry: Stored | Future[Stored]) -> bool:
    return isinstance(entry, Future) and entry.exception() is not None


class Lane:
    """Where programs with host callbacks run, one after the other, each in a thread: XLA may run them in the thread that starts them.

    One that is long in a callback is overtaken, as that may have started another that it waits for. So is one whose arguments are long in
    coming, and one that takes long and spans workers: what they wait for may be in a callback. Others take as long as they take.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Turn | None = None

    def run(self, prepare: Callable[[], None], work: Callable[[], None], program: Program) -> Turn:
        """Call `prepare`, which waits for the program's arguments, and `work`, which runs it, in its turn. Returns at once."""
        turn = Turn(program)
        with self._lock:
            before, self._last = self._last, turn

        def take() -> None:
            if before is not None:
                before.wait()
            try:
                turn.come()
                prepare()
                turn.begin()
                work()
            finally:
                turn.ended.set()

        threading.Thread(target=take, name="callbacks", daemon=True).start()
        return turn


class Turn:
    """One run of a program on the lane."""

    def __init__(self, program: Program) -> None:
        self.ended = threading.Event()
        self._came = self._began = math.inf
        self._callbacks = program.callbacks
        self._spans_workers = program.placement.spans_workers

    def come(self) -> None:
        self._came = time.monotonic()

    def begin(self) -> None:
        self._began = time.monotonic()

    def wait(self) -> None:
        """Until it has ended or may be overtaken."""
        while not self.ended.wait(max(0.0, _PATIENCE - self._held_up())):
            if self._spans_workers or self._held_up() >= _PATIENCE:
                return

    def _held_up(self) -> float:
        """For how many seconds it has been in a callback, or waiting for its arguments; 0 if neither."""
        since = self._came
        if self._began < math.inf:
            # Calls from before it began are those of an earlier run of the program, which it has overtaken.
            since = min((callback.oldest_call(self._began) for callback in self._callbacks), default=math.inf)
        return max(0.0, time.monotonic() - since)
