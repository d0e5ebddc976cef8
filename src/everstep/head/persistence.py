"""Arrays in storage. Workers write and read their shards themselves: nothing of an array passes here."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from everstep.head.arrays import Array, Placement
from everstep.head.operations import Execution, Operation
from everstep.head.specs import ArraySpec, Box
from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
from everstep.wire.errors import Code, Failure, invalid

if TYPE_CHECKING:
    from everstep.head.runtime import Runtime

SETTLE = 5.0  # seconds: so long the failure of a save may be held back until the workers that live have let go of the files


@dataclasses.dataclass(frozen=True, slots=True)
class StoredArray:
    """location: absolute path of a directory that all workers see, s3://bucket/path or gs://bucket/path. name: of the array in it.

    spec: as it lies on devices, before a save or after a restore. What is saved has the dtype of the argument; here it is "".
    """

    location: str
    name: str
    spec: ArraySpec


@dataclasses.dataclass(frozen=True, slots=True)
class StorageProgram:
    """Saves its arguments, or restores its results. timeout: seconds, None for any time."""

    saves: bool
    arrays: tuple[StoredArray, ...]
    timeout: float | None

    @property
    def name(self) -> str:
        return "save" if self.saves else "restore"

    @property
    def devices(self) -> tuple[int, ...]:
        """Of the first array: JAX's client wants all to have as many."""
        return self.arrays[0].spec.sharding.devices

    @property
    def results(self) -> list[ArraySpec]:
        return [] if self.saves else [stored.spec for stored in self.arrays]


class StorageExecution(Execution):
    """A save or a restore under way, with a limit of time."""

    def __init__(self, runtime: Runtime, program: StorageProgram, results: list[Array], operation: Operation) -> None:
        super().__init__(results, operation)
        self._runtime = runtime
        self._program = program
        self._expired = False
        if program.timeout is not None:
            timer = asyncio.get_running_loop().call_later(program.timeout, self._expire)
            operation.on_drained(timer.cancel)

    async def done(self) -> None:
        """Until all is in its place and durable. Raises the Failure when the workers that live have stopped, or the time is over."""
        try:
            while self.operation.failure is None and self.operation.pending:
                await asyncio.shield(self.operation.changed())
            if self.operation.pending and not self._expired:  # a later save to the same place must not meet what is left of this one
                self._abandon()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._drained(), SETTLE)
        except asyncio.CancelledError:
            self._abandon()
            raise
        if self.operation.failure is not None:
            raise self.operation.failure

    async def _drained(self) -> None:
        while self.operation.pending:
            await asyncio.shield(self.operation.changed())

    def _expire(self) -> None:
        self._expired = True
        late = ", ".join(sorted(self.operation.pending))
        doing, direction = ("saving", "to") if self._program.saves else ("restoring", "from")
        message = (
            f"{doing} {direction} {self._program.arrays[0].location} has not ended in {self._program.timeout:g} s; still at it: {late}"
        )
        self.operation.fail(Failure(Code.DEADLINE_EXCEEDED, message))
        self._abandon()

    def _abandon(self) -> None:
        """Tell those that are still at it to begin nothing more."""
        message = wire.ToWorker(abandon=wire.Abandon(operation=self.operation.number))
        self._runtime.dispatcher.follow_up(self.operation, list(self.operation.pending), message)


def save(runtime: Runtime, program: StorageProgram, arguments: Sequence[Array]) -> StorageExecution:
    """Each part of each array is written once: of its replicas that live the one whose worker has the least to do.

    Raises Failure (INVALID_ARGUMENT) for other arguments than the program was made for.
    """
    if len(arguments) != len(program.arrays):
        raise invalid(f"a program that saves {len(program.arrays)} arrays was given {len(arguments)}")
    messages: dict[str, wire.ToWorker] = {}
    bytes_of: collections.Counter[str] = collections.Counter()
    failure: Failure | None = None
    for stored, array in zip(program.arrays, arguments, strict=True):
        array.check_usable()
        spec = array.spec
        if (spec.shape, spec.sharding.devices) != (stored.spec.shape, stored.spec.sharding.devices):
            raise invalid(f"{stored.name} was to be saved as an array of shape {stored.spec.shape}, not {spec.shape}, or lies elsewhere")
        for box, devices in _holders(stored.spec).items():
            device = min(devices, key=lambda device: (_is_lost(runtime, array, device), bytes_of[array.placement.slot_of[device]]))
            if array.failures is not None:
                failure = failure or array.failures.get(device)
            slot = array.placement.slot_of[device]
            bytes_of[slot] += box.elements * dtypes.host_itemsize(spec.dtype)
            held = messages.setdefault(slot, wire.ToWorker()).save.arrays
            if not held or held[-1].array != array.id or held[-1].name != stored.name:
                held.append(_message(stored, spec.dtype, array.id))
            held[-1].pieces.append(_piece(device, box))
    operation = runtime.dispatcher.operation(program.name, messages)
    for array in arguments:
        operation.follow(array)
    if failure is not None:
        operation.fail(failure)
    execution = StorageExecution(runtime, program, [], operation)
    runtime.dispatcher.dispatch(operation, list(messages), messages)
    return execution


def restore(runtime: Runtime, program: StorageProgram, new: Callable[[ArraySpec, Placement, Operation], Array]) -> StorageExecution:
    """Each worker reads the parts that its devices are to hold. new: makes an array of the session."""
    placements = [runtime.place(stored.spec.sharding.devices) for stored in program.arrays]
    slots = list(dict.fromkeys(slot for placement in placements for slot in placement.slots))
    operation = runtime.dispatcher.operation(program.name, slots)
    messages = {slot: wire.ToWorker(restore=wire.Restore()) for slot in slots}
    results = []
    for stored, placement in zip(program.arrays, placements, strict=True):
        array = new(stored.spec, placement, operation)
        results.append(array)
        parts = {slot: _message(stored, stored.spec.dtype, array.id) for slot in placement.slots}
        for device, box in zip(stored.spec.sharding.devices, stored.spec.sharding.boxes(stored.spec.shape), strict=True):
            parts[placement.slot_of[device]].pieces.append(_piece(device, box))
        for slot, part in parts.items():
            messages[slot].restore.arrays.append(part)
    execution = StorageExecution(runtime, program, results, operation)
    runtime.dispatcher.dispatch(operation, slots, messages)
    return execution


def _holders(spec: ArraySpec) -> dict[Box, list[int]]:
    """The parts of an array, and the devices that hold each of them."""
    holders: dict[Box, list[int]] = {}
    for device, box in zip(spec.sharding.devices, spec.sharding.boxes(spec.shape), strict=True):
        holders.setdefault(box, []).append(device)
    return holders


def _is_lost(runtime: Runtime, array: Array, device: int) -> bool:
    return device in (array.failures or ()) or runtime.members.up(array.placement.slot_of[device]) is None


def _message(stored: StoredArray, dtype: str, array: int) -> wire.StoredArray:
    shape = stored.spec.shape
    sizes = [box.size for box in stored.spec.sharding.boxes(shape)]
    return wire.StoredArray(
        location=stored.location,
        name=stored.name,
        dtype=dtype,
        shape=shape,
        tile=[max(size[dimension] for size in sizes) for dimension in range(len(shape))],
        array=array,
        memory_kind=stored.spec.sharding.memory_kind or "",
    )


def _piece(device: int, box: Box) -> wire.GetPiece:
    return wire.GetPiece(device=device, box=wire.Box(start=box.start, size=box.size))
