"""Sends commands to workers and matches their reports.

Every command for several workers is queued for all of them in one breath, so all workers start programs in the same order: that is what
keeps collectives from deadlocking. While no world is up, commands wait here, in order.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from everstep.head.channel import Link
from everstep.head.members import Member, Members
from everstep.head.operations import Operation
from everstep.wire import channel_pb2 as wire
from everstep.wire import frames
from everstep.wire.errors import Code, Failure

log = logging.getLogger(__name__)

_FREE_SECONDS = 0.25  # so long an idle worker may hold what nobody needs any more
SUSPICION = 2.0  # seconds: so long an error of one worker in a spanning program may turn out to be the death of another

Messages: TypeAlias = wire.ToWorker | Mapping[str, wire.ToWorker]

# What a survivor sees when its peer dies in a collective; what a user's own error never is.
_PEER_CODES = {
    Code.UNKNOWN,
    Code.INTERNAL,
    Code.UNAVAILABLE,
    Code.ABORTED,
    Code.CANCELLED,
    Code.DEADLINE_EXCEEDED,
    Code.FAILED_PRECONDITION,
}


class Dispatcher:
    """The table of operations in flight."""

    def __init__(
        self, members: Members, stuck: Callable[[Operation], None], ended: Callable[[Operation], None] = lambda operation: None
    ) -> None:
        """stuck: called when an operation has failed on some of its workers while others still wait for them.

        ended: called when a program has ended well on all its workers.
        """
        self._members = members
        self._stuck = stuck
        self._ended = ended
        self._numbers = itertools.count(1)
        self._operations: dict[int, Operation] = {}
        self._replies: dict[int, asyncio.Future[wire.ToHead]] = {}
        self._waiting: collections.deque[Callable[[], None]] = collections.deque()
        self._suspicions: dict[int, _Suspicion] = {}
        self._opened = asyncio.Event()
        self._held: list[Link] = []  # that have something to send when there is time

    def operation(
        self, what: str, slots: Iterable[str], *, spanning: bool = False, sources: Iterable[str] = (), program: bool = False
    ) -> Operation:
        """A new operation. It must be dispatched."""
        operation = Operation(next(self._numbers), what, slots, spanning=spanning, sources=sources, program=program)
        if operation.pending:
            self._operations[operation.number] = operation
        return operation

    # The gate: closed until a world is up.

    def open(self) -> None:
        """A world is up: send what has waited."""
        self._opened.set()
        while self._waiting and self._opened.is_set():
            self._waiting.popleft()()

    def close(self) -> None:
        """There is no world for the moment."""
        self._opened.clear()

    async def opened(self) -> None:
        """Until a world is up."""
        await self._opened.wait()

    # Sending.

    def dispatch(
        self, operation: Operation | None, slots: Iterable[str], messages: Messages, prepare: Callable[[], None] | None = None
    ) -> None:
        """Send one message to all the slots, or to each its own, now or as soon as a world is up.

        operation: gets the reports; None: none wanted. prepare: called just before sending; a Failure it raises fails the operation.
        """
        if self._opened.is_set() and not self._waiting:
            self._send(operation, slots, messages, prepare)
        else:
            self._waiting.append(lambda: self._send(operation, slots, messages, prepare))

    def free(self, slots: Iterable[str], arrays: Sequence[int]) -> None:
        """Let arrays go, with the next command or later: nobody waits for that, and each write costs as much as a command."""

        def send() -> None:
            frame = frames.encode(wire.ToWorker(delete=wire.Delete(arrays=arrays)).SerializeToString())
            for slot in slots:
                member = self._members.up(slot)
                if member is not None and member.link.hold(frame):
                    if not self._held:
                        asyncio.get_running_loop().call_later(_FREE_SECONDS, self._send_held)
                    self._held.append(member.link)

        if self._opened.is_set() and not self._waiting:
            send()
        else:
            self._waiting.append(send)

    def _send_held(self) -> None:
        held, self._held = self._held, []
        for link in held:
            link.send_held()

    def follow_up(self, operation: Operation, slots: Iterable[str], messages: Messages) -> None:
        """Send more about an operation: at once, world or not, if it has been sent: it may be waited for. Else right after it."""
        if operation.sent_at:
            self._send(None, slots, messages, None)
        elif not operation.has_failed:
            self._waiting.append(lambda: self._send(None, slots, messages, None))

    def ask(self, what: str, member: Member, message: wire.ToWorker) -> tuple[Operation, asyncio.Future[wire.ToHead]]:
        """Send to one member at once, world or not. The future holds its report once the operation is done."""
        operation = self.operation(what, (member.slot.name,))
        reply = self.reply_to(operation)
        message.op = operation.number
        if self._members.get(member.slot.name) is member:
            member.link.send(message)
            message.op = 0
        else:
            self._lose(operation, member.slot.name, self._members.away(member.slot.name))
        return operation, reply

    def reply_to(self, operation: Operation) -> asyncio.Future[wire.ToHead]:
        """A future that holds a report on the operation once it is done; for those that report more than their end."""
        reply: asyncio.Future[wire.ToHead] = asyncio.get_running_loop().create_future()
        self._replies[operation.number] = reply
        operation.on_drained(lambda: self._replies.pop(operation.number, None))
        return reply

    def _send(self, operation: Operation | None, slots: Iterable[str], messages: Messages, prepare: Callable[[], None] | None) -> None:
        number = operation.number if operation is not None else 0
        if operation is not None and operation.has_failed:
            self._never_sent(operation, None)  # it reads something that failed while it waited here
            return
        if prepare is not None:
            try:
                prepare()
            except Failure as failure:
                if operation is not None:
                    self._never_sent(operation, failure)
                return
        if operation is not None:
            operation.sent_at = asyncio.get_running_loop().time()
            away = sorted(slot for slot in operation.slots if self._members.up(slot) is None)
            if away and operation.spanning:  # the others would wait for them
                for slot in list(operation.pending):
                    self._lose(operation, slot, self._members.away(away[0]))
                return
            for slot in away:
                self._lose(operation, slot, self._members.away(slot))
        frame = b""
        for slot in slots:
            member = self._members.up(slot)
            if member is None:
                continue
            if isinstance(messages, wire.ToWorker):
                if not frame:
                    messages.op = number
                    frame = frames.encode(messages.SerializeToString())
                member.link.send_frame(frame)
            else:
                message = messages[slot]
                message.op = number
                member.link.send(message)

    def _never_sent(self, operation: Operation, failure: Failure | None) -> None:
        """Nobody was told of it: nobody will report. failure: what it ends with, if it has not failed already."""
        for slot in list(operation.pending):
            operation.report(slot, failure)
        self._operations.pop(operation.number, None)

    # Reports.

    def report(self, member: Member, message: wire.ToHead) -> None:
        """A worker's report on an operation."""
        body = getattr(message, message.WhichOneof("body"))
        operation = self._operations.get(body.op)
        if operation is None:
            return
        failure = Failure(Code(body.error.code), body.error.message) if body.HasField("error") else None
        slot = member.slot.name
        if isinstance(body, wire.Done) and body.running:
            if failure is not None and operation.failure is None:
                self._suspect(operation, None, failure)
            return
        if failure is not None and operation.depends_on_peers and failure.code in _PEER_CODES:
            if operation.failure is None:
                self._suspect(operation, slot, failure)
                return
            failure = operation.failure  # what has been told already is the cause of this, too
        reply = self._replies.get(body.op)
        if reply is not None and failure is None and not reply.done():
            reply.set_result(message)
        operation.report(slot, failure)
        if operation.program:
            member.progressed_at = asyncio.get_running_loop().time()
            if operation.drained and operation.failure is None:
                self._ended(operation)
        self._drop_if_drained(operation)

    def quiet(self) -> asyncio.Future[None]:
        """A future that is done when all that is in flight now has been reported by all its workers."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = len(self._operations)

        def one_less() -> None:
            nonlocal left
            left -= 1
            if left == 0 and not future.done():
                future.set_result(None)

        if not left:
            future.set_result(None)
        for operation in list(self._operations.values()):
            operation.on_drained(one_less)
        return future

    def programs_in_flight(self) -> list[Operation]:
        """Those that have been sent, in the order in which they were."""
        return [operation for operation in self._operations.values() if operation.program and operation.sent_at]

    def lose(self, member: Member, failure: Failure) -> None:
        """A worker is gone: whatever waits for it has failed."""
        for operation in list(self._operations.values()):
            self._lose(operation, member.slot.name, failure)

    def in_flight(self) -> int:
        """How many operations have not been reported by all their workers."""
        return len(self._operations)

    def _lose(self, operation: Operation, slot: str, failure: Failure) -> None:
        operation.lose(slot, failure)
        if operation.failure is not None and (suspicion := self._suspicions.pop(operation.number, None)) is not None:
            suspicion.clear(operation)
        self._drop_if_drained(operation)

    def _drop_if_drained(self, operation: Operation) -> None:
        if operation.drained:
            self._operations.pop(operation.number, None)
            operation.forget()

    def _suspect(self, operation: Operation, slot: str | None, failure: Failure) -> None:
        """An error that a dying peer may have caused: wait whether one is declared dead, so that the first cause is the one told.

        slot: the worker that has ended with it; None: one that has it and still runs, and may be stuck like the others.
        """
        suspicion = self._suspicions.get(operation.number)
        if suspicion is None:
            timer = asyncio.get_running_loop().call_later(SUSPICION, self._settle, operation)
            suspicion = self._suspicions[operation.number] = _Suspicion(failure, timer)
        if slot is not None:
            suspicion.slots.add(slot)
        if suspicion.slots == operation.pending and operation.sources <= suspicion.slots and not operation.follows_peers:
            self._settle(operation)  # everybody lives, and nobody else can have caused it

    def _settle(self, operation: Operation) -> None:
        """Nobody was declared dead: it is the program's own error."""
        suspicion = self._suspicions.pop(operation.number)
        operation.fail(suspicion.failure)
        suspicion.clear(operation)
        self._drop_if_drained(operation)
        if operation.spanning and not operation.drained:
            self._stuck(operation)


class _Suspicion:
    """The first error of an operation, and who has reported one."""

    def __init__(self, failure: Failure, timer: asyncio.TimerHandle) -> None:
        self.failure = failure
        self.timer = timer
        self.slots: set[str] = set()

    def clear(self, operation: Operation) -> None:
        """The cause is told, whatever it was: take the reports as made."""
        self.timer.cancel()
        for slot in self.slots:
            operation.report(slot, None)
