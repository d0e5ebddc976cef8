"""Worlds: one XLA client each, over all workers that live at one time. Made beside older ones, broken at a fault, never mended.

What a world needs of its hardware is the interface `World`; cpu.py implements it.
"""

from __future__ import annotations

import abc
import contextlib
import faulthandler
import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import Any

import numpy as np

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure, invalid
from everstep.worker import xla
from everstep.worker.execution import Execution
from everstep.worker.reports import Reporter
from everstep.worker.turns import Turns

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 1.0  # what runs in a broken world has so long to fail
_POLL_SECONDS = 0.01
_COLLECTIONS = 2
_STUCK = 70  # exit status


class Locals:
    """Some of this worker's devices in an order: those on which an array or a program has its local part."""

    def __init__(self, world: World, devices: tuple[int, ...]) -> None:
        self.world = world
        self.devices = devices
        self.device_list = xla.device_list([world.devices[device] for device in devices])
        self._shardings: dict[str | None, xla.Sharding] = {}

    def sharding(self, memory_kind: str | None) -> xla.Sharding:
        """What joined arrays are given."""
        if memory_kind not in self._shardings:
            self._shardings[memory_kind] = xla.replicated(self.device_list, memory_kind)
        return self._shardings[memory_kind]


class Placement:
    """The devices that a program spans, in its order, and the local ones among them."""

    def __init__(self, world: World, devices: tuple[int, ...]) -> None:
        self.world = world
        self.devices = devices
        self.device_list = xla.device_list([world.devices[device] for device in devices])
        self.local = world.locals(tuple(device for device in devices if device in world.local))

    @property
    def spans_workers(self) -> bool:
        return len(self.local.devices) < len(self.devices)


class World(abc.ABC):
    """One world, as one of its workers sees it. `connect`, `build` and `break_up` may run at the same time, each in a thread.

    can_follow: a program may be started before that has ended which makes its arguments.
    """

    can_follow = True

    def __init__(self, number: int) -> None:
        self.number = number
        self.broken: Failure | None = None
        self.is_built = False
        self.ready: Future[World] = Future()  # it has been built, or why not
        self.client: xla.Client = None
        self.devices: dict[int, xla.Device] = {}  # the client's devices by the program's ids
        self.local: frozenset[int] = frozenset()  # ids of this worker's own
        self.executions: set[Execution] = set()  # that have not ended
        self.turns = Turns()
        self.launching: set[int] = set()  # threads that are within XLA, starting a program
        self._placements: dict[tuple[int, ...], Placement] = {}
        self._locals: dict[tuple[int, ...], Locals] = {}

    @abc.abstractmethod
    def connect(self, service: str) -> list[str]:
        """Meet the coordination service. Returns the endpoints of this worker's collectives. Raises an error of XLA."""

    @abc.abstractmethod
    def build(self, rank: int, size: int, devices: Sequence[int]) -> None:
        """Make the client, with the others. devices: the program's ids in rank order. Raises an error of XLA."""

    @abc.abstractmethod
    def break_up(self, endpoints: Sequence[str]) -> None:
        """Make everything that runs or waits in it fail, now. endpoints: those of all members. The process and its buffers live on."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the client. Arrays that live on it keep it as long as they live."""

    @abc.abstractmethod
    def adopt(self, buffer: xla.Buffer, device: xla.Device, memory_kind: str | None) -> xla.Buffer:
        """The content of another world's buffer on a device of this one, without a copy where possible."""

    @abc.abstractmethod
    def tune(self, options: xla.Options, spans_workers: bool) -> None:
        """Change the compile options of a program as this hardware needs it."""

    def takes_turns(self, placement: Placement, meets: bool) -> bool:
        """Whether a program there must be kept in one order with others. meets: its devices may wait for each other."""
        return False

    def settle(self, seconds: float) -> bool:
        """Wait until nothing runs or is being started. Whether that came to be."""
        deadline = time.monotonic() + seconds
        for execution in list(self.executions):
            execution.ended.wait(max(0.0, deadline - time.monotonic()))
        while self.launching and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        return not self.executions and not self.launching

    def check(self) -> None:
        """Raises Failure (ABORTED) if it is broken."""
        if self.broken is not None:
            raise Failure(self.broken.code, self.broken.message)

    def device(self, number: int) -> xla.Device:
        """By the program's id. Raises Failure (INVALID_ARGUMENT)."""
        try:
            return self.devices[number]
        except KeyError:
            raise invalid(f"device {number} is not in world {self.number}") from None

    def placement(self, devices: Sequence[int]) -> Placement:
        """Always the same object for the same devices. Raises Failure (INVALID_ARGUMENT) for devices that it has not."""
        key = tuple(devices)
        placement = self._placements.get(key)
        if placement is None:
            missing = [device for device in key if device not in self.devices]
            if missing:
                raise invalid(f"devices {missing} are not in world {self.number}")
            placement = self._placements.setdefault(key, Placement(self, key))
        return placement

    def locals(self, devices: tuple[int, ...]) -> Locals:
        """Always the same object for the same devices."""
        known = self._locals.get(devices)
        return known if known is not None else self._locals.setdefault(devices, Locals(self, devices))

    def assignment(self, placement: Placement, replicas: int, partitions: int) -> np.ndarray[Any, Any]:
        """The client's ids, [replicas, partitions]. Raises Failure (INVALID_ARGUMENT) if the numbers don't fit."""
        ids = [self.devices[device].id for device in placement.devices]
        if replicas < 1 or partitions < 1 or len(ids) != replicas * partitions:
            raise invalid(f"{len(ids)} devices for {replicas} replicas of {partitions} partitions")
        return np.array(ids, np.int32).reshape(replicas, partitions)


class Worlds:
    """The worlds that this worker is or was in. Commands run in threads of their own: they must work while all else is stuck."""

    def __init__(
        self,
        make: Callable[[int], World],
        reporter: Reporter,
        broken: Callable[[World, Failure], None],
        dropped: Callable[[World], None],
    ) -> None:
        """broken: called when a world is broken up, to free what waits elsewhere. dropped: when it goes, to let go of what is its own."""
        self._make = make
        self._reporter = reporter
        self._broken = broken
        self._dropped = dropped
        self._worlds: dict[int, World] = {}
        self._stuck: list[World] = []
        self._latest: Future[World] = Future()  # that was begun
        self._newest: World | None = None  # that was built and, where there is such a one, is not broken
        self._lock = threading.Lock()

    def get(self, number: int) -> World:
        """Wait until it is built. Raises Failure if it is broken or unknown."""
        world = self._worlds.get(number)
        if world is None:
            raise Failure(Code.NOT_FOUND, f"this worker is not in world {number}")
        world.ready.result()
        world.check()
        return world

    def newest(self) -> World:
        """The one that new arrays are made in: waits until there is one, but not for a later one."""
        return self._newest or self._latest.result().ready.result()

    # Commands. All return at once.

    def connect(self, op: int, message: wire.ConnectWorld) -> None:
        world = self._join(message.world)

        def work() -> None:
            report = wire.WorldConnected(op=op)
            try:
                report.endpoints.extend(world.connect(message.service))
            except Exception as error:
                report.error.CopyFrom(self._reporter.error(self._fail(world, error)))
            self._reporter.send(wire.ToHead(world_connected=report))

        self._run("connect", world, work)

    def build(self, op: int, message: wire.BuildWorld) -> None:
        world = self._join(message.world)

        def work() -> None:
            failure = None
            try:
                world.check()
                world.build(message.rank, message.size, message.devices)
                world.check()
                world.is_built = True
                self._choose_newest()
                _settle(world, None)
            except Exception as error:
                failure = self._fail(world, error)
            self._reporter.done(op, failure)

        self._run("build", world, work)

    def break_up(self, _: int, message: wire.BreakWorld) -> None:
        world = self._worlds.get(message.world)
        if world is None or world.broken is not None:
            return
        world.broken = _cause(world, message)
        _settle(world, world.broken)
        self._choose_newest()
        self._broken(world, world.broken)
        self._run("break", world, lambda: _break_up(world, message.endpoints))

    def drop(self, _: int, message: wire.DropWorld) -> None:
        with self._lock:
            world = self._worlds.pop(message.world, None)
        if world is not None:
            self._choose_newest()
            self._dropped(world)
            self._run("drop", world, lambda: self._close(world))

    def _close(self, world: World) -> None:
        while not world.settle(_SETTLE_SECONDS):
            if world.broken is not None:
                self._stuck.append(world)  # its end would wait for what is stuck in it, with Python's lock held
                return
        world.turns.clear()
        world.close()
        # What is left of it hangs together in circles (futures, errors with their tracebacks), and holds XLA's client with all its threads.
        # Python looks for such circles seldom. What lies in one may keep another, so more than once.
        for _ in range(_COLLECTIONS):
            gc.collect()

    def _join(self, number: int) -> World:
        with self._lock:
            world = self._worlds.get(number)
            if world is None:
                world = self._worlds[number] = self._make(number)
            if self._latest.done():
                self._latest = Future()
            self._latest.set_result(world)
            return world

    def _choose_newest(self) -> None:
        """One was built, broken or dropped."""
        with self._lock:
            usable = [world for world in self._worlds.values() if world.is_built and world.broken is None]
            if usable:
                self._newest = max(usable, key=lambda world: world.number)
            elif self._newest is not None and self._newest.number not in self._worlds:
                self._newest = None

    def _fail(self, world: World, error: Exception) -> Failure:
        failure = xla.failure(error)
        if world.broken is not None and failure is not world.broken:
            failure = Failure(world.broken.code, f"{world.broken.message}: {failure}")
        _settle(world, failure)
        return failure

    @staticmethod
    def _run(what: str, world: World, work: Callable[[], None]) -> None:
        def logged() -> None:
            try:
                work()
            except Exception:
                log.exception("%s world %d", what, world.number)

        threading.Thread(target=logged, name=f"{what} world {world.number}", daemon=True).start()


def _cause(world: World, message: wire.BreakWorld) -> Failure:
    """What everything in it fails with. The loss of a member is told as that even by those who had nothing to do with it."""
    if message.HasField("cause"):
        return Failure(Code(message.cause.code), message.cause.message)
    return Failure(Code.ABORTED, f"world {world.number} was broken up")


def _break_up(world: World, endpoints: Sequence[str]) -> None:
    world.break_up(endpoints)
    if world.settle(_SETTLE_SECONDS):
        return
    assert world.broken is not None
    log.warning("world %d is broken up, but %d programs don't end: they are given up", world.number, len(world.executions))
    for execution in list(world.executions):
        execution.end(world.broken)
    if not world.settle(_SETTLE_SECONDS):
        # A thread that everything else here waits for is stuck in XLA.
        log.critical("world %d is broken up, but this process can't get out of it, and ends", world.number)
        faulthandler.dump_traceback()
        os._exit(_STUCK)


def _settle(world: World, failure: Failure | None) -> None:
    """It is ready, or will never be; whoever says so first is believed."""
    with contextlib.suppress(InvalidStateError):
        if failure is None:
            world.ready.set_result(world)
        else:
            world.ready.set_exception(failure)
