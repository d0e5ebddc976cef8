"""Worlds: the ordered sets of worker processes that programs span.

A world is formed once over the workers that are there, and never mended: when one of them goes, it is broken and another is formed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import logging
from collections.abc import Sequence
from typing import Protocol

from everstep.head.members import Member
from everstep.head.operations import Operation
from everstep.wire import channel_pb2 as wire

log = logging.getLogger(__name__)

FORM_TIMEOUT = 60.0  # seconds

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


class Asker(Protocol):
    """Sends a command to one member and gives the operation to wait for, and later its report."""

    def ask(self, what: str, member: Member, message: wire.ToWorker) -> tuple[Operation, asyncio.Future[wire.ToHead]]: ...


async def form(members: Sequence[Member], asker: Asker, coordination: Coordination | None) -> World:
    """Make a world over these members. Raises Failure if one of them is lost or can't, TimeoutError.

    coordination: not needed for one member alone.
    """
    world = World(next(_numbers), tuple(members), coordination)
    try:
        async with asyncio.timeout(FORM_TIMEOUT):
            if coordination is not None:
                await _connect(world, asker, coordination)
            devices = [device for member in members for device in member.slot.devices]
            builds = [
                asker.ask(
                    "build world",
                    member,
                    wire.ToWorker(build_world=wire.BuildWorld(world=world.number, rank=rank, size=len(members), devices=devices)),
                )
                for rank, member in enumerate(members)
            ]
            await asyncio.gather(*(operation.done() for operation, _ in builds))
    except BaseException:
        break_up(world)
        raise
    return world


async def _connect(world: World, asker: Asker, coordination: Coordination) -> None:
    address = await asyncio.to_thread(coordination.open)
    connect = wire.ToWorker(connect_world=wire.ConnectWorld(world=world.number, service=address))
    asked = [asker.ask("connect world", member, connect) for member in world.members]
    await asyncio.gather(*(operation.done() for operation, _ in asked))
    reports = [report.result() for _, report in asked]
    world.endpoints = tuple(endpoint for report in reports for endpoint in report.world_connected.endpoints)
    await asyncio.to_thread(coordination.immunise)


def break_up(world: World) -> None:
    """Pull the living members out of whatever runs or waits in this world, at once."""
    if world.broken:
        return
    world.broken = True
    message = wire.ToWorker(break_world=wire.BreakWorld(world=world.number, endpoints=world.endpoints))
    for member in world.members:
        member.link.send(message)
