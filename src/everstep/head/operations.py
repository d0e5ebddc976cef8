"""Operations: what workers have been told to do and have not all reported yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from everstep.wire.errors import Failure

if TYPE_CHECKING:
    from everstep.head.arrays import Array


class Operation:
    """One command (or one per worker) in flight.

    slots: the workers that take part, by slot name; `pending` those that have not reported.
    spanning: it runs as one program over all its slots, so that the failure of one is the failure of all.
    sources: further slots it reads from.
    program: it runs a program, which should make progress.
    sent_at: loop time of when it went to the workers, 0 until then.
    """

    __slots__ = (
        "_changed",
        "_on_drained",
        "failure",
        "followers",
        "follows_peers",
        "has_failed",
        "number",
        "outputs",
        "pending",
        "program",
        "sent_at",
        "slots",
        "sources",
        "spanning",
        "what",
    )

    def __init__(
        self, number: int, what: str, slots: Iterable[str], *, spanning: bool = False, sources: Iterable[str] = (), program: bool = False
    ) -> None:
        self.number = number
        self.what = what
        self.slots = frozenset(slots)
        self.pending = set(self.slots)
        self.spanning = spanning
        self.sources = frozenset(sources)
        self.program = program
        self.follows_peers = False  # it reads what an operation that depends on peers is to make
        self.sent_at = 0.0
        self.failure: Failure | None = None
        self.has_failed = False  # as a whole, not on some of its slots only
        self.outputs: list[tuple[Array, frozenset[int] | None]] = []
        self.followers: list[Operation] = []
        self._changed: asyncio.Future[None] | None = None
        self._on_drained: list[Callable[[], object]] = []

    @property
    def depends_on_peers(self) -> bool:
        """Whether the death of another worker can be what a worker's error comes from."""
        reads_elsewhere = len(self.slots | self.sources) > 1 if self.sources else self.spanning and len(self.slots) > 1
        return reads_elsewhere or self.follows_peers

    @property
    def drained(self) -> bool:
        """Whether every worker has reported (or is gone)."""
        return not self.pending

    def feed(self, array: Array, devices: frozenset[int] | None = None) -> None:
        """`array` (or its shards on `devices`) gets its content from this operation."""
        self.outputs.append((array, devices))

    def follow(self, array: Array) -> None:
        """This operation reads `array`: what fails that, fails this."""
        for operation in array.operations:
            if operation.pending and operation is not self:
                operation.followers.append(self)
                self.follows_peers = self.follows_peers or operation.depends_on_peers

    def on_drained(self, callback: Callable[[], object]) -> None:
        """Call back when every worker has reported; at once if they have."""
        if self.drained:
            callback()
        else:
            self._on_drained.append(callback)

    def changed(self) -> asyncio.Future[None]:
        """A future that is done at the next report or failure."""
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        return self._changed

    def report(self, slot: str, failure: Failure | None) -> None:
        """A worker has finished its part."""
        self.pending.discard(slot)
        if failure is not None:
            if self.spanning or len(self.slots) == 1:
                self.fail(failure)
            else:
                self._fail_part(slot, failure)
        self._notify()

    def lose(self, slot: str, failure: Failure) -> None:
        """A worker is gone. Nothing will be reported by it."""
        if slot in self.pending:
            self.report(slot, failure)
        elif slot in self.sources and self.pending:
            self.fail(failure)

    def fail(self, failure: Failure) -> None:
        """The whole operation has failed, and so has everything that waits for its results. The first failure stays."""
        todo: list[Operation] = [self]
        while todo:  # a chain of operations can be longer than Python's stack
            operation = todo.pop()
            if operation.has_failed:
                continue
            operation.has_failed = True
            operation.failure = operation.failure or failure
            for array, devices in operation.outputs:
                array.mark_failed(failure, devices)
            todo += operation.followers
            operation.followers = []
            operation._notify()

    def forget(self) -> None:
        """All have reported: let go of the arrays, which may outlive it and know it."""
        self.outputs = []
        self.followers = []

    async def done(self) -> None:
        """Wait until every worker has reported. Raises the Failure as soon as there is one."""
        while self.failure is None and self.pending:
            await asyncio.shield(self.changed())
        if self.failure is not None:
            raise self.failure

    def _fail_part(self, slot: str, failure: Failure) -> None:
        for array, devices in self.outputs:
            lost = array.devices_of(slot) if devices is None else devices & array.devices_of(slot)
            array.mark_failed(failure, lost)
        followers, self.followers = self.followers, []
        for operation in followers:
            operation.fail(failure)
        if self.failure is None:
            self.failure = failure

    def _notify(self) -> None:
        if self._changed is not None:
            changed, self._changed = self._changed, None
            if not changed.done():
                changed.set_result(None)
        if not self.pending:
            self.followers = []
            callbacks, self._on_drained = self._on_drained, []
            for callback in callbacks:
                callback()


class Execution:
    """One execution under way. results: its arrays, which hold the error if it fails."""

    __slots__ = ("operation", "results")

    def __init__(self, results: list[Array], operation: Operation) -> None:
        self.results = results
        self.operation = operation

    async def done(self) -> None:
        """Until it has run on all devices. Raises the Failure."""
        await self.operation.done()
