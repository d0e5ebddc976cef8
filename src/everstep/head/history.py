"""What becomes known of the workers, told three ways: as events, on the recovery timeline, and in the log."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from everstep.head.members import Member, Members
from everstep.head.operations import Operation
from everstep.head.worlds import World
from everstep.observe.events import Events, Kind
from everstep.observe.timeline import ElasticEvent, Timeline
from everstep.wire.errors import Failure

log = logging.getLogger(__name__)


class History:
    """Writes down what the runtime and the launcher find out."""

    def __init__(self, members: Members, events: Events) -> None:
        self._members = members
        self._events = events
        self._timeline = Timeline(asyncio.get_running_loop().time, time.time, self._over)
        self._slices_up: set[int] = set()

    def joined(self, member: Member) -> None:
        """A process has joined."""
        self._tell(Kind.JOINED, member, f"worker {_name(member)} has joined", pid=member.pid)

    def suspected(self, member: Member, silent: float) -> None:
        """Nothing was heard of it for so many seconds."""
        self._warn(Kind.SUSPECTED, member, f"worker {_name(member)} has been silent for {silent:.1f} s", silent=silent)

    def heard(self, member: Member) -> None:
        """A suspected one was heard of again."""
        self._warn(Kind.HEARD, member, f"worker {_name(member)} was heard of again")

    def leaving(self, member: Member, reason: str, seconds: float) -> None:
        """It has been told to go, and does within so many seconds."""
        self._warn(Kind.LEAVING, member, f"worker {_name(member)} goes within {seconds:g} s: {reason}", reason=reason, seconds=seconds)

    def fenced(self, member: Member, why: str) -> None:
        """It is taken for dead and being killed."""
        self._warn(Kind.FENCED, member, f"worker {_name(member)} is taken for dead and killed: {why}", cause=why)

    def lost(self, member: Member, failure: Failure) -> None:
        """It is dead."""
        self._tell(Kind.LOST, member, failure.message)
        self._timeline.lost(member.slot.name, failure.message)
        self._note_slices()

    def world(self, world: World) -> None:
        """Programs can span these workers."""
        incarnations = {member.slot.name: member.incarnation for member in world.members}
        self._tell(
            Kind.WORLD, None, f"world {world.number} is up: {', '.join(incarnations)}", world=world.number, incarnations=incarnations
        )
        self._timeline.world(world.number, incarnations)
        self._note_slices()

    def nobody_left(self) -> None:
        """There is no worker any more."""
        self._timeline.world(0, {})

    def ended(self, operation: Operation, seconds: float) -> None:
        """A program has ended well, so many seconds after it was sent."""
        if not self._timeline.is_quiet:
            self._timeline.ended(operation.what, operation.slots, seconds)

    # Of the launcher.

    def killed(self, name: str, signal: str) -> None:
        """Somebody has asked for a worker to get a signal."""
        self._place(Kind.KILLED, name, f"worker {name} is sent {signal} because somebody asked for it", signal=signal)

    def restarting(self, name: str, incarnation: int, delay: float, spare: str | None) -> None:
        """A process takes a place: a spare at once, or a new one after so many seconds."""
        how = f"by spare {spare}" if spare else f"by a new process in {delay:.1f} s" if delay else "by a new process"
        self._place(Kind.RESTARTING, name, f"worker {name} is replaced {how} (incarnation {incarnation})", delay=delay, spare=spare)

    def waiting(self, name: str, why: str) -> None:
        """The process of a worker, or a spare, has no place on the cluster yet."""
        message = f"{name} waits for a place: {why}"
        log.warning("%s", message)
        slot = self._members.slots.get(name)
        self._events.add(Kind.WAITING, message, slice=slot.slice if slot else None, worker=slot.name if slot else None)

    def given_up(self, name: str, why: str) -> None:
        """Nobody will take that place any more."""
        log.error("worker %s is not replaced: %s", name, why)
        self._place(Kind.GIVEN_UP, name, f"worker {name} is not replaced: {why}")
        self._timeline.given_up(name)

    def close(self) -> None:
        """The run is over."""
        self._timeline.close()

    # ------------------------------------------------------------------

    def _note_slices(self) -> None:
        slots = self._members.slots.values()
        up = {slot.slice for slot in slots} - {slot.slice for slot in slots if self._members.up(slot.name) is None}
        for index in sorted(self._slices_up - up):
            self._events.add(Kind.SLICE_DOWN, f"slice {index} is down", slice=index)
        for index in sorted(up - self._slices_up):
            self._events.add(Kind.SLICE_UP, f"slice {index} is up", slice=index)
        self._slices_up = up

    def _over(self, event: ElasticEvent) -> None:
        log.warning("%s", event)
        slot = self._members.slots[event.worker]
        self._events.add(Kind.RECOVERED, str(event), slice=slot.slice, worker=slot.name, **event.as_dict())

    def _warn(self, kind: Kind, member: Member, message: str, **details: Any) -> None:
        log.warning("%s", message)
        self._tell(kind, member, message, **details)

    def _tell(self, kind: Kind, member: Member | None, message: str, **details: Any) -> None:
        log.info("%s", message)
        if member is None:
            self._events.add(kind, message, **details)
        else:
            slot = member.slot
            self._events.add(kind, message, slice=slot.slice, worker=slot.name, incarnation=member.incarnation, **details)

    def _place(self, kind: Kind, name: str, message: str, **details: Any) -> None:
        log.info("%s", message)
        slot = self._members.slots[name]
        self._events.add(kind, message, slice=slot.slice, worker=name, **details)


def _name(member: Member) -> str:
    return f"{member.slot.name} (slice {member.slot.slice}, incarnation {member.incarnation}, pid {member.pid})"
