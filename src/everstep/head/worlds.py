"""Worlds: the ordered sets of worker processes that programs span.

A world is formed once over the workers that are there, and never mended. When one of them goes, it is broken, which frees the others, and
another is formed. When one comes, another is formed beside it: what runs in the old one ends there in peace.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from everstep.head.dispatch import Dispatcher
from everstep.head.members import Member
from everstep.head.operations import Operation
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Failure

log = logging.getLogger(__name__)

FORM_TIMEOUT = 30.0  # seconds
FORM_PAUSE = 1.0  # seconds between attempts to form a world of workers that are all there
DROP_PAUSE = 5.0  # seconds until an old world is dropped: that holds up its workers, so not while they recover

_numbers = itertools.count(1)


class Coordination(Protocol):
    """The service through which the collectives of one world find each other. Calls may block: they run in a thread."""

    def open(self) -> str: ...  # the address for workers
    def immunise(self) -> None: ...  # after all have connected
    def close(self) -> None: ...


@dataclasses.dataclass(slots=True, eq=False)
class World:
    """One world: its members in rank order."""

    number: int
    members: tuple[Member, ...]
    coordination: Coordination | None
    endpoints: tuple[str, ...] = ()
    broken: bool = False

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(member.slot.name for member in self.members)


class LateError(Exception):
    """Members have not done their part in time."""

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__(f"no answer for {FORM_TIMEOUT:.0f} s while a world was formed")
        self.members = members


class Asker(Protocol):
    """Sends a command to one member and gives the operation to wait for, and later its report."""

    def ask(self, what: str, member: Member, message: wire.ToWorker) -> tuple[Operation, asyncio.Future[wire.ToHead]]: ...


class Worlds:
    """Sees to it that there is a world of the members there are."""

    def __init__(
        self,
        wanted: Callable[[], Sequence[Member]],
        dispatcher: Dispatcher,
        coordination: Callable[[], Coordination],
        changed: Callable[[World | None], None],
        failed: Callable[[str], None],
        late: Callable[[Member, str], None],
    ) -> None:
        """wanted: who is to be in a world now; nobody: there is to be none.

        changed: called when another world is up, or nobody is left for one. failed: called with the reason when one can't be formed; it is
        tried again. late: called with a member that does not do its part in time, though it lives, and what that is.
        """
        self.current: World | None = None
        self._wanted = wanted
        self._dispatcher = dispatcher
        self._coordination = coordination
        self._changed = changed
        self._failed = failed
        self._late = late
        self._old: set[World] = set()  # that are not dropped yet
        self._forming: asyncio.Task[None] | None = None
        self._retirements: set[asyncio.Task[None]] = set()

    def reform(self) -> None:
        """There may be other members than before: form a world of them, beside the present one while that lasts."""
        if self._forming is None or self._forming.done():
            self._forming = asyncio.ensure_future(self._form())

    def lose(self, member: Member, failure: Failure) -> None:
        """A member is dead: break all that it was in, which fails with this, and form another without it."""
        for world in [world for world in (self.current, *self._old) if world is not None and member in world.members]:
            break_up(world, failure)
            if world is self.current:
                self._leave()
        self.reform()

    def abandon(self) -> None:
        """Something is stuck, in the present world or one before: pull everybody out, into another of the same members."""
        for world in self._old:
            break_up(world)
        if self.current is not None:
            break_up(self.current)
            self._leave()
        self.reform()

    async def close(self) -> None:
        """Let go of everything. The workers are told to leave by others."""
        tasks = [task for task in (self._forming, *self._retirements) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for world in [world for world in (self.current, *self._old) if world is not None]:
            if world.coordination is not None:
                await asyncio.to_thread(world.coordination.close)

    def _leave(self) -> None:
        world, self.current = self.current, None
        assert world is not None
        self._dispatcher.close()
        self._retire(world)

    async def _form(self) -> None:
        """Make a world of the members there are; again, if they change meanwhile."""
        while members := list(self._wanted()):
            if self.current is not None and list(self.current.members) == members:
                return
            coordination = self._coordination() if len(members) > 1 else None
            try:
                world = await form(members, self._dispatcher, coordination)
            except Exception as error:  # whatever it is: everything waits for a world, so it is tried again
                expected = isinstance(error, (Failure, LateError))
                log.warning("can't form a world of %s: %s", ", ".join(m.slot.name for m in members), error, exc_info=not expected)
                _close(coordination)
                for member in error.members if isinstance(error, LateError) else ():
                    self._late(member, str(error))
                if list(self._wanted()) == members:
                    self._failed(str(error))
                    await asyncio.sleep(FORM_PAUSE)
                continue
            if list(self._wanted()) == members:
                break
            break_up(world)
            self._retire(world)
        else:
            self._changed(None)
            return
        previous, self.current = self.current, world
        if previous is not None:
            self._retire(previous)
        self._changed(world)

    def _retire(self, world: World) -> None:
        """Drop it when nothing of it is needed any more."""
        self._old.add(world)
        task = asyncio.ensure_future(self._drop(world, self._dispatcher.quiet()))
        self._retirements.add(task)
        task.add_done_callback(self._retirements.discard)

    async def _drop(self, world: World, quiet: asyncio.Future[None]) -> None:
        await quiet
        await asyncio.sleep(DROP_PAUSE)
        self._old.discard(world)
        message = wire.ToWorker(drop_world=wire.DropWorld(world=world.number))
        for member in world.members:
            member.link.send(message)
        _close(world.coordination)


async def form(members: Sequence[Member], asker: Asker, coordination: Coordination | None) -> World:
    """Make a world over these members. Raises Failure if one of them is lost or can't, LateError if one of them does not answer.

    coordination: not needed for one member alone.
    """
    world = World(next(_numbers), tuple(members), coordination)
    asked: list[tuple[Member, Operation]] = []
    try:
        async with asyncio.timeout(FORM_TIMEOUT):
            if coordination is not None:
                await _connect(world, asker, coordination, asked)
            devices = [device for member in members for device in member.slot.devices]
            builds = [
                asker.ask(
                    "build world",
                    member,
                    wire.ToWorker(build_world=wire.BuildWorld(world=world.number, rank=rank, size=len(members), devices=devices)),
                )
                for rank, member in enumerate(members)
            ]
            asked += zip(members, (operation for operation, _ in builds), strict=True)
            await asyncio.gather(*(operation.done() for operation, _ in builds))
    except BaseException as error:
        break_up(world)
        for member in members:
            member.link.send(wire.ToWorker(drop_world=wire.DropWorld(world=world.number)))
        if isinstance(error, TimeoutError):
            raise LateError([member for member, operation in asked if operation.pending]) from error
        raise
    return world


async def _connect(world: World, asker: Asker, coordination: Coordination, all_asked: list[tuple[Member, Operation]]) -> None:
    address = await asyncio.to_thread(coordination.open)
    connect = wire.ToWorker(connect_world=wire.ConnectWorld(world=world.number, service=address))
    asked = [asker.ask("connect world", member, connect) for member in world.members]
    all_asked += zip(world.members, (operation for operation, _ in asked), strict=True)
    await asyncio.gather(*(operation.done() for operation, _ in asked))
    reports = [report.result() for _, report in asked]
    world.endpoints = tuple(endpoint for report in reports for endpoint in report.world_connected.endpoints)
    await asyncio.to_thread(coordination.immunise)


def break_up(world: World, cause: Failure | None = None) -> None:
    """Pull the living members out of whatever runs or waits in this world, at once. cause: what that fails with."""
    if world.broken:
        return
    world.broken = True
    message = wire.ToWorker(break_world=wire.BreakWorld(world=world.number, endpoints=world.endpoints))
    if cause is not None:
        message.break_world.cause.CopyFrom(wire.Error(code=cause.code, message=cause.message))
    for member in world.members:
        member.link.send(message)


def _close(coordination: Coordination | None) -> None:
    if coordination is not None:
        asyncio.get_running_loop().run_in_executor(None, coordination.close)
