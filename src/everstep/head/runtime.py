"""The runtime: what the frontend talks to. Puts together members, worlds, dispatch, programs and sessions.

Everything runs on one asyncio event loop. Nothing here knows a protocol message of the program's, or jaxlib.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from everstep.head.arrays import Placement
from everstep.head.buffers import Buffer
from everstep.head.callbacks import Callbacks
from everstep.head.channel import Link
from everstep.head.dispatch import Dispatcher
from everstep.head.history import History
from everstep.head.members import Device, Member, Members, Notice, lost
from everstep.head.operations import Operation
from everstep.head.programs import Programs
from everstep.head.sessions import Session
from everstep.head.watch import Watch
from everstep.head.worlds import Coordination, World, Worlds
from everstep.observe.events import Events
from everstep.wire import channel_pb2 as wire
from everstep.wire import frames

log = logging.getLogger(__name__)

_PATIENCE = 0.7  # of the heartbeat timeout: whoever is declared dead for its silence has ended itself by then, out of reach as it is
SPARE_SILENCE = 3.0  # seconds after which a spare, which beats every second, is not taken
EXIT_NEWS = 0.05  # seconds to wait for the launcher to say how a process ended whose connection has closed


@dataclasses.dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """What a run is made of.

    token: by which workers prove that they belong to it. directory: shared with the workers of this host, for host buffers.
    coordination: makes the service that one world's collectives need.
    heartbeat_interval, heartbeat_timeout, progress_timeout: seconds; a progress_timeout of None: never.
    """

    slices: int
    workers_per_slice: int
    devices_per_worker: int
    token: str
    directory: pathlib.Path
    coordination: Callable[[], Coordination]
    heartbeat_interval: float = 1.0
    heartbeat_timeout: float = 10.0
    progress_timeout: float | None = None
    grace: float = 20.0


@dataclasses.dataclass(frozen=True, slots=True)
class Topology:
    """The devices, in the order of their ids."""

    devices: tuple[Device, ...]
    platform: str
    platform_version: str


class Runtime:
    """One run: a fixed set of slots for workers, whoever fills them."""

    def __init__(self, config: RuntimeConfig) -> None:
        self.config = config
        self.directory = config.directory
        self.members = Members(config.slices, config.workers_per_slice, config.devices_per_worker)
        self.events = Events()
        self.history = History(self.members, self.events)
        self.dispatcher = Dispatcher(self.members, self._stuck, self._ended)
        self.worlds = Worlds(self._wanted, self.dispatcher, config.coordination, self._world_changed, self._world_failed, self._condemn)
        self.programs = Programs(self.dispatcher, self.members, self.worlds, self.place, config.directory)
        self.callbacks = Callbacks()
        self.sessions: dict[int, Session] = {}
        self.buffers: dict[int, Buffer] = {}
        self.fatal: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # why the run can't go on
        # Kills the process of a worker (its name, its incarnation) for good; False if it is not ours to kill. For the composition to set.
        self.fence: Callable[[str, int], bool] = lambda name, incarnation: False
        self._spares: dict[str, tuple[wire.Hello, Link]] = {}
        self._waiting: list[tuple[wire.Hello, Link]] = []  # workers from outside that found no place
        self._topology: Topology | None = None
        self._started = asyncio.Event()
        self._session_numbers = itertools.count(1)
        self._exits: dict[str, tuple[int, str]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._closing = False
        self._placements: dict[tuple[int, ...], Placement] = {}

    # ------------------------------------------------------------------ for the composition

    async def listen(self, path: str) -> None:
        """Accept workers at a unix socket. Raises OSError."""
        await asyncio.get_running_loop().create_unix_server(self.link, path)

    def link(self) -> Link:
        """For a connection that may be a worker's."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch().run(self.config.heartbeat_interval))
        return Link(self, self.config.token)

    def worker_exited(self, name: str, incarnation: int, how: str) -> None:
        """The launcher tells how a worker's process ended, e.g. "exit code 1"."""
        self._exits[name] = incarnation, how
        member = self.members.get(name)
        if member is not None and member.incarnation == incarnation:
            self._lose(member, how)

    def has_joined(self, name: str, incarnation: int) -> bool:
        """Whether this incarnation of a worker has been here, or, for 0, whether a spare has."""
        return self.members.incarnation(name) >= incarnation if incarnation else name in self._spares

    def take_spare(self, name: str, slot: str, incarnation: int) -> bool:
        """Let a spare that waits under this name fill a slot. False if it has not joined yet, or is gone."""
        hello, link = self._spares.get(name, (None, None))
        if hello is None or link is None or not self._is_there(link):
            return False
        del self._spares[name]
        hello.name, hello.incarnation, hello.spare = slot, incarnation, False
        link.greet(hello)
        return link.welcomed

    async def close(self) -> None:
        """Tell the workers to leave."""
        self._closing = True
        if self._watching is not None:
            self._watching.cancel()
        self.history.close()
        for session in list(self.sessions.values()):
            session.close()
        for member in list(self.members):
            member.link.send(wire.ToWorker(stop=wire.Stop(reason="the run has ended")))
            member.link.close()
        for _, link in (*self._spares.values(), *self._waiting):
            link.refuse("the run has ended")
        await self.worlds.close()

    # ------------------------------------------------------------------ for the frontend

    @property
    def topology(self) -> Topology:
        """The devices. Only after `started`."""
        assert self._topology is not None
        return self._topology

    async def started(self) -> None:
        """Until all workers have joined and their world is up for the first time."""
        await self._started.wait()

    def open_session(self, label: str) -> Session:
        """A program connects."""
        session = Session(self, next(self._session_numbers), label)
        self.sessions[session.number] = session
        return session

    def place(self, devices: Sequence[int]) -> Placement:
        """Which slots hold these devices. Raises Failure (INVALID_ARGUMENT) for one that does not exist."""
        key = tuple(devices)
        placement = self._placements.get(key)
        if placement is None:
            placement = self._placements[key] = Placement(key, self.members.slot_of_device)
        return placement

    def distance(self, a: int, b: int) -> int:
        """0 for the same device, 1 in the same worker, 2 in the same slice, 3 beyond."""
        if a == b:
            return 0
        one, other = (self.members.slots[self.members.slot_of_device[device]] for device in (a, b))
        return 1 if one is other else 2 if one.slice == other.slice else 3

    def status(self) -> dict[str, Any]:
        """What `everstep status` shows."""
        from everstep.head import status

        return status.describe(self)

    # ------------------------------------------------------------------ for the channel

    def joined(self, hello: wire.Hello, link: Link) -> wire.Welcome | None:
        """A worker has proved who it is. None: it is a spare, whose time will come. Raises Failure with the reason to refuse it."""
        if hello.spare and hello.name.startswith("spare"):  # the launcher's, which says when
            self._spares[hello.name] = hello, link
            return None
        if hello.spare:  # from outside: takes any place that is free
            slot = self.members.vacancy(hello.name)
            if slot is None:
                self._waiting.append((hello, link))
                return None
            hello.name, hello.spare = slot.name, False
        member = self.members.join(hello, link)
        link.member = member
        self.history.joined(member)
        asyncio.get_running_loop().call_soon(self.worlds.reform)
        return wire.Welcome(
            version=frames.VERSION,
            device_ids=member.slot.devices,
            heartbeat_interval=self.config.heartbeat_interval,
            grace=self.config.grace,
            patience=_PATIENCE * self.config.heartbeat_timeout,
            name=member.slot.name,
            incarnation=member.incarnation,
        )

    def reported(self, link: Link, message: wire.ToHead) -> None:
        """A message of a worker that has joined."""
        member = link.member
        if member is None or self.members.get(member.slot.name) is not member:
            return  # of an incarnation that has been declared dead
        member.last_seen = asyncio.get_running_loop().time()
        kind = message.WhichOneof("body")
        if kind == "heartbeat":
            beat = message.heartbeat
            member.arrays, member.bytes, member.programs, member.started = beat.arrays, beat.bytes, beat.programs, beat.started
        elif kind == "notice":
            member.notice = Notice(time.time(), message.notice.reason)
            self.history.leaving(member, message.notice.reason, message.notice.seconds)
        elif kind == "callback_call":
            self.callbacks.call(member, message.callback_call)
        elif kind == "blob_ready":
            self.programs.blob_ready(message.blob_ready, member)
        elif kind in ("done", "got", "compiled", "described", "world_connected"):
            self.dispatcher.report(member, message)

    def closed(self, link: Link, cause: str) -> None:
        """The connection to a worker has ended."""
        self._spares = {name: spare for name, spare in self._spares.items() if spare[1] is not link}
        self._waiting = [each for each in self._waiting if each[1] is not link]
        member = link.member
        if member is None or self.members.get(member.slot.name) is not member or self._closing:
            return
        incarnation, how = self._exits.get(member.slot.name, (0, ""))
        if incarnation == member.incarnation:
            self._lose(member, how)
        else:  # how its process ended is likely to be known in a moment, and says more
            asyncio.get_running_loop().call_later(EXIT_NEWS, self._lose, member, cause)

    # ------------------------------------------------------------------ worlds, and the loss of workers

    def _watch(self) -> Watch:
        return Watch(
            self.members,
            self.dispatcher,
            heartbeat_timeout=self.config.heartbeat_timeout,
            progress_timeout=self.config.progress_timeout,
            suspect=self.history.suspected,
            clear=self.history.heard,
            condemn=self._condemn,
        )

    def _wanted(self) -> list[Member]:
        """Who is to be in a world: at first only all together."""
        return list(self.members) if self._started.is_set() or self.members.complete else []

    def _world_changed(self, world: World | None) -> None:
        """Another one is up, or nobody is left."""
        if world is not None:
            if self._topology is None:
                devices = tuple(self.members.devices)
                self._topology = Topology(devices, devices[0].platform, world.members[0].platform_version)
            for member in world.members:
                member.is_up = True
            self.history.world(world)
            self._started.set()
        elif self._started.is_set():
            self.history.nobody_left()
        if self._started.is_set():
            self.dispatcher.open()

    def _world_failed(self, why: str) -> None:
        if not self._started.is_set():
            self._give_up(f"the workers could not form a world: {why}")

    def _give_up(self, why: str) -> None:
        if not self.fatal.done():
            self.fatal.set_result(why)

    def _condemn(self, member: Member, why: str) -> None:
        """Take a worker for dead: kill it before anything else is done, so that it can't come back in the middle of it."""
        member.verdict = why
        self.history.fenced(member, why)
        if not self.fence(member.slot.name, member.incarnation):
            self._lose(member, why)  # not ours to kill: it is refused from now on

    def _lose(self, member: Member, cause: str) -> None:
        """A worker is dead: everything that waits for it fails now, and the others leave what they do with it."""
        if self.members.get(member.slot.name) is not member or self._closing:
            return
        failure = lost(member, member.verdict or cause, time.time())
        log.error("%s", failure.message)
        self.members.remove(member, failure)
        member.link.abort(cause)
        self.fence(member.slot.name, member.incarnation)
        if member.shares_directory and member.bulk_address.startswith("unix:"):
            pathlib.Path(member.bulk_address.removeprefix("unix:")).unlink(missing_ok=True)
        self.callbacks.lose(member)
        self.programs.lose(member, failure)
        self.history.lost(member, failure)
        self.worlds.lose(member, failure)
        self.dispatcher.lose(member, failure)
        for session in self.sessions.values():
            for array in session.arrays.values():
                held = array.devices_of(member.slot.name)
                if held and not array.is_freed:
                    array.mark_failed(failure, held)
        self._seat()

    def _seat(self) -> None:
        """A place is free: for one from outside that waits."""
        waiting, self._waiting = self._waiting, []
        for hello, link in waiting:
            if self._is_there(link):
                link.greet(hello)
            else:
                self._waiting.append((hello, link))

    def _is_there(self, link: Link) -> bool:
        """Whether one that waits was heard of lately."""
        return asyncio.get_running_loop().time() - link.last_seen <= SPARE_SILENCE

    def _stuck(self, operation: Operation) -> None:
        """A program failed on some of its workers while others wait for them in a collective: pull those out."""
        log.warning("%s failed on some workers while others wait for them: forming a new world", operation.what)
        self.worlds.abandon()

    def _ended(self, operation: Operation) -> None:
        self.history.ended(operation, asyncio.get_running_loop().time() - operation.sent_at)
