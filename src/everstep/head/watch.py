"""Watches workers that say nothing of their own death: silent ones, and those whose programs make no progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from everstep.head.dispatch import Dispatcher
from everstep.head.members import Member, Members

log = logging.getLogger(__name__)

SUSPICION = 0.3  # of the timeout: a worker silent for so long is suspected


class Watch:
    """Looks at all members from time to time."""

    def __init__(
        self,
        members: Members,
        dispatcher: Dispatcher,
        *,
        heartbeat_timeout: float,
        progress_timeout: float | None,
        suspect: Callable[[Member, float], None],
        clear: Callable[[Member], None],
        condemn: Callable[[Member, str], None],
    ) -> None:
        """heartbeat_timeout, progress_timeout: seconds; None: never.

        suspect: called with a member that has been silent for so many seconds. clear: when it is heard of again. condemn: called with one
        that is to be taken for dead, and why.
        """
        self._members = members
        self._dispatcher = dispatcher
        self._heartbeat_timeout = heartbeat_timeout
        self._progress_timeout = progress_timeout
        self._suspect = suspect
        self._clear = clear
        self._condemn = condemn

    async def run(self, interval: float) -> None:
        """Look every `interval` seconds, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(interval)
            if loop.time() - before < 2 * interval:  # else this process itself was held up, and what workers sent lies unread
                try:
                    self.look(loop.time())
                except Exception:
                    log.exception("the watch over workers")  # and goes on: nobody else would notice their silence

    def look(self, now: float) -> None:
        """now: loop time."""
        for member in [member for member in self._members if not member.verdict]:
            silent = now - member.last_seen
            if silent > self._heartbeat_timeout:
                self._condemn(member, f"no heartbeat for {silent:.1f} s")
            elif silent > self._heartbeat_timeout * SUSPICION:
                if not member.is_suspected:
                    member.is_suspected = True
                    self._suspect(member, silent)
            elif member.is_suspected:
                member.is_suspected = False
                self._clear(member)
        if self._progress_timeout is not None:
            self._look_for_progress(now, self._progress_timeout)

    def _look_for_progress(self, now: float, timeout: float) -> None:
        """The oldest program of each worker is the one it is at. It counts from when it was sent or the one before it ended."""
        seen: set[str] = set()
        for operation in self._dispatcher.programs_in_flight():
            members = [member for slot in operation.pending - seen if (member := self._members.up(slot)) is not None]
            seen |= operation.pending
            waited = {member.slot.name: now - max(operation.sent_at, member.progressed_at) for member in members}
            late = [member for member in members if waited[member.slot.name] > timeout]
            if not late:
                continue
            # Those that have not even started it let the others wait. If there are none such, nobody can be told from the others.
            idle = [member for member in members if member.started < operation.number]
            for member in idle if 0 < len(idle) < len(members) else late:
                if not member.verdict:
                    doing = "it has not started" if member in idle else "it has been running"
                    self._condemn(member, f"no progress for {waited[member.slot.name]:.1f} s: {doing} {operation.what}")
