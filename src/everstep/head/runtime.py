"""The runtime: what the frontend talks to. Puts together members, worlds, dispatch, programs and sessions.

Everything runs on one asyncio event loop. Nothing here knows a protocol message of the program's, or jaxlib.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from everstep.head import channel, worlds
from everstep.head.arrays import Placement
from everstep.head.buffers import Buffer
from everstep.head.callbacks import Callbacks
from everstep.head.channel import Link
from everstep.head.dispatch import Dispatcher
from everstep.head.members import Device, Member, Members, lost
from everstep.head.operations import Operation
from everstep.head.programs import Programs
from everstep.head.sessions import Session
from everstep.head.worlds import Coordination, World
from everstep.wire import channel_pb2 as wire
from everstep.wire import frames
from everstep.wire.errors import Failure

log = logging.getLogger(__name__)

FORM_PAUSE = 1.0  # seconds between attempts to form a world of workers that are all there
EXIT_NEWS = 0.05  # seconds to wait for the launcher to say how a process ended whose connection has closed


@dataclasses.dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """What a run is made of.

    token: by which workers prove that they belong to it. directory: shared with the workers of this host, for host buffers.
    coordination: makes the service that one world's collectives need. bulk_address: of this process's bulk server.
    heartbeat_interval, heartbeat_timeout: seconds.
    """

    slices: int
    workers_per_slice: int
    devices_per_worker: int
    token: str
    directory: pathlib.Path
    coordination: Callable[[], Coordination]
    bulk_address: str = ""
    heartbeat_interval: float = 1.0
    heartbeat_timeout: float = 10.0


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
        self.dispatcher = Dispatcher(self.members, self._stuck)
        self.programs = Programs(self.dispatcher, self.members, self.place, config.directory)
        self.callbacks = Callbacks()
        self.sessions: dict[int, Session] = {}
        self.buffers: dict[int, Buffer] = {}
        self.fatal: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # why the run can't go on
        self._world: World | None = None
        self._forming: asyncio.Task[None] | None = None
        self._topology: Topology | None = None
        self._started = asyncio.Event()
        self._session_numbers = itertools.count(1)
        self._exits: dict[tuple[str, int], str] = {}
        self._clock: asyncio.Task[None] | None = None
        self._closing = False
        self._placements: dict[tuple[int, ...], Placement] = {}

    # ------------------------------------------------------------------ for the composition

    async def listen(self, address: str) -> asyncio.Server:
        """Accept workers at "unix:/path" or "host:port". Raises OSError."""
        server = await channel.listen(address, self, self.config.token)
        self._clock = asyncio.ensure_future(self._watch_heartbeats())
        return server

    def worker_exited(self, name: str, incarnation: int, how: str) -> None:
        """The launcher tells how a worker's process ended, e.g. "exit code 1"."""
        self._exits[name, incarnation] = how
        member = self.members.get(name)
        if member is not None and member.incarnation == incarnation:
            self._lose(member, how)

    async def close(self) -> None:
        """Tell the workers to leave."""
        self._closing = True
        for task in (self._clock, self._forming):
            if task is not None:
                task.cancel()
        for session in list(self.sessions.values()):
            session.close()
        for member in list(self.members):
            member.link.send(wire.ToWorker(stop=wire.Stop(reason="the run has ended")))
            member.link.close()
        if self._world is not None and self._world.coordination is not None:
            await asyncio.to_thread(self._world.coordination.close)

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

    @property
    def world(self) -> World | None:
        """The one that is up."""
        return self._world

    # ------------------------------------------------------------------ for the channel

    def joined(self, hello: wire.Hello, link: Link) -> wire.Welcome:
        """A worker has proved who it is. Raises Failure with the reason to refuse it."""
        member = self.members.join(hello, link)
        link.member = member
        log.info("worker %s joined (incarnation %d, pid %d)", member.slot.name, member.incarnation, member.pid)
        if self.members.complete:
            asyncio.get_running_loop().call_soon(self._form_world)
        return wire.Welcome(version=frames.VERSION, device_ids=member.slot.devices, heartbeat_interval=self.config.heartbeat_interval)

    def reported(self, link: Link, message: wire.ToHead) -> None:
        """A message of a worker that has joined."""
        member = link.member
        if member is None or self.members.get(member.slot.name) is not member:
            return  # of an incarnation that has been declared dead
        member.last_seen = asyncio.get_running_loop().time()
        kind = message.WhichOneof("body")
        if kind == "heartbeat":
            beat = message.heartbeat
            member.arrays, member.bytes, member.programs = beat.arrays, beat.bytes, beat.programs
        elif kind == "callback_call":
            self.callbacks.call(member, message.callback_call)
        elif kind == "blob_ready":
            self.programs.blob_ready(message.blob_ready, member)
        elif kind in ("done", "got", "compiled", "described", "world_connected"):
            self.dispatcher.report(member, message)

    def closed(self, link: Link, cause: str) -> None:
        """The connection to a worker has ended."""
        member = link.member
        if member is None or self.members.get(member.slot.name) is not member or self._closing:
            return
        how = self._exits.get((member.slot.name, member.incarnation))
        if how is not None:
            self._lose(member, how)
        else:  # how its process ended is likely to be known in a moment, and says more
            asyncio.get_running_loop().call_later(EXIT_NEWS, self._lose, member, cause)

    # ------------------------------------------------------------------ worlds, and the loss of workers

    def _form_world(self) -> None:
        if self._forming is None or self._forming.done():
            self._forming = asyncio.ensure_future(self._form())

    async def _form(self) -> None:
        """Make a world of the members there are; again, if they change meanwhile."""
        while members := list(self.members):
            coordination = self.config.coordination() if len(members) > 1 else None
            try:
                world = await worlds.form(members, self.dispatcher, coordination)
            except (Failure, TimeoutError) as error:
                log.error("can't form a world of %s: %s", ", ".join(m.slot.name for m in members), error)
                self._close_coordination(coordination)
                if not self._started.is_set():
                    self._give_up(f"the workers could not form a world: {error}")
                    return
                if list(self.members) == members:
                    await asyncio.sleep(FORM_PAUSE)
                continue
            if list(self.members) == members:
                break
            worlds.break_up(world)
            self._close_coordination(coordination)
        else:
            self.dispatcher.open()  # nobody is left: let what waits fail
            return
        self._world = self.programs.world = world
        if self._topology is None:
            devices = tuple(self.members.devices)
            self._topology = Topology(devices, devices[0].platform, members[0].platform_version)
        log.info("world %d is up: %s", world.number, ", ".join(world.slots))
        self.dispatcher.open()
        self._started.set()

    def _give_up(self, why: str) -> None:
        if not self.fatal.done():
            self.fatal.set_result(why)

    def _lose(self, member: Member, cause: str) -> None:
        """A worker is dead: everything that waits for it fails now, and the others leave what they do with it."""
        if self.members.get(member.slot.name) is not member:
            return
        failure = lost(member, cause)
        log.error("%s", failure.message)
        self.members.remove(member)
        member.link.abort(cause)
        self.callbacks.lose(member)
        self.programs.lose(member, failure)
        self.dispatcher.close()
        self.dispatcher.lose(member, failure)
        for session in self.sessions.values():
            for array in session.arrays.values():
                held = array.devices_of(member.slot.name)
                if held and not array.is_freed:
                    array.mark_failed(failure, held)
        self._leave_world()
        if not self._started.is_set():
            self._give_up(failure.message)
        self._form_world()

    def _stuck(self, operation: Operation) -> None:
        """A program failed on some of its workers while others wait for them in a collective: pull those out."""
        log.warning("%s failed on some workers while others wait for them: forming a new world", operation.what)
        self.dispatcher.close()
        self._leave_world()
        self._form_world()

    def _leave_world(self) -> None:
        world, self._world, self.programs.world = self._world, None, None
        if world is None:
            return
        worlds.break_up(world)
        self._close_coordination(world.coordination)

    @staticmethod
    def _close_coordination(coordination: Coordination | None) -> None:
        if coordination is not None:
            asyncio.get_running_loop().run_in_executor(None, coordination.close)

    async def _watch_heartbeats(self) -> None:
        loop = asyncio.get_running_loop()
        interval, timeout = self.config.heartbeat_interval, self.config.heartbeat_timeout
        while True:
            before = loop.time()
            await asyncio.sleep(interval)
            if loop.time() - before > 2 * interval:
                continue  # this process itself was held up: what workers sent lies unread
            for member in list(self.members):
                silent = loop.time() - member.last_seen
                if silent > timeout:
                    self._lose(member, f"no heartbeat for {silent:.1f} s")
