"""Arrays as the head knows them: no data, only where shards lie, what they wait for, and what went wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everstep.head.specs import ArraySpec
from everstep.wire import dtypes
from everstep.wire.errors import Failure, invalid

if TYPE_CHECKING:
    from everstep.head.operations import Operation


class Placement:
    """The slots that hold a given list of devices, and which devices each of them holds."""

    __slots__ = ("by_slot", "slot_of", "slots")

    def __init__(self, devices: Sequence[int], slot_of_device: Mapping[int, str]) -> None:
        """Raises Failure (INVALID_ARGUMENT) for a device that does not exist."""
        by_slot: dict[str, list[int]] = {}
        for device in devices:
            slot = slot_of_device.get(device)
            if slot is None:
                raise invalid(f"there is no device {device}: this run has devices 0 to {len(slot_of_device) - 1}")
            by_slot.setdefault(slot, []).append(device)
        self.by_slot = {slot: frozenset(held) for slot, held in by_slot.items()}
        self.slots = tuple(by_slot)
        self.slot_of = {device: slot_of_device[device] for device in devices}


class Memory:
    """What arrays that share shards have in common. readers: operations on other workers that still read them."""

    __slots__ = ("readers",)

    def __init__(self) -> None:
        self.readers = 0


class Array:
    """One array of a session.

    operations: those that give it its content, kept until they have all reported.
    pins: operations on other workers that still read its shards; they are not freed before.
    memory: of its shards. No program may take it over while it is read, under whichever array's name.
    """

    __slots__ = ("failures", "id", "is_deleted", "is_freed", "is_released", "memory", "operations", "pins", "placement", "spec")

    def __init__(self, number: int, spec: ArraySpec, placement: Placement, operations: tuple[Operation, ...] = ()) -> None:
        self.id = number
        self.spec = spec
        self.placement = placement
        self.operations = operations
        self.failures: dict[int, Failure] | None = None
        self.is_deleted = False  # the program can't use it any more
        self.is_released = False  # the program has no handle to it any more
        self.is_freed = False  # workers have been told to forget it, or never knew it
        self.pins = 0
        self.memory: tuple[Memory, ...] = (Memory(),)

    @property
    def failure(self) -> Failure | None:
        """The first failure known of any shard."""
        return next(iter(self.failures.values())) if self.failures else None

    @property
    def nbytes(self) -> int:
        """Bytes of all shards together, without replicas."""
        return self.spec.elements * dtypes.host_itemsize(self.spec.dtype)

    def devices_of(self, slot: str) -> frozenset[int]:
        """The devices of that slot that hold shards."""
        return self.placement.by_slot.get(slot, frozenset())

    def mark_failed(self, failure: Failure, devices: frozenset[int] | None = None) -> None:
        """The shards on these devices (None: all) hold an error. The first error of a shard stays."""
        if self.failures is None:
            self.failures = {}
        for device in self.spec.sharding.devices if devices is None else devices:
            self.failures.setdefault(device, failure)

    def check_usable(self) -> None:
        """Raises Failure if the program has deleted or donated it."""
        if self.is_deleted:
            raise invalid(f"Array has been deleted or donated: {self.spec.dtype}{list(self.spec.shape)}")

    def waiting_for(self) -> Operation | None:
        """An operation that has yet to report on a shard, or None if all is there."""
        for operation in self.operations:
            if any(slot in operation.pending for slot in self.placement.slots):
                return operation
        self.operations = ()
        return None

    async def ready(self) -> None:
        """Wait until all shards are there. Raises the Failure as soon as one is known."""
        while self.failures is None:
            operation = self.waiting_for()
            if operation is None:
                return
            await asyncio.shield(operation.changed())
        raise next(iter(self.failures.values()))


async def all_ready(arrays: Sequence[Array]) -> None:
    """Wait for all of them. Raises the first Failure as soon as one is known, whatever the others wait for."""
    waiting = [array for array in arrays if array.failures is not None or array.waiting_for() is not None]
    if not waiting:
        return None
    if len(waiting) == 1:
        return await waiting[0].ready()
    for array in waiting:
        if (failure := array.failure) is not None:
            raise failure
    tasks = [asyncio.ensure_future(array.ready()) for array in waiting]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
