"""A session: the arrays, programs and host buffers of one program, and all that it can have done with them.

Everything returns at once: work is dispatched, and what goes wrong later sits in the arrays. What is wrong with the request itself raises
Failure. Only what is `async` waits; even that dispatches its commands before it first waits, so calls take effect in the order made.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Awaitable, Iterable, Sequence
from typing import TYPE_CHECKING

from everstep.head import copies, downloads, persistence, resharding, uploads
from everstep.head.arrays import Array, Placement, all_ready
from everstep.head.buffers import HostBuffers
from everstep.head.operations import Execution, Operation
from everstep.head.persistence import StorageProgram
from everstep.head.programs import CompileRequest, Description, Program
from everstep.head.specs import ArraySpec, CopySemantics, HostShard, Sharding
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Failure, invalid, unimplemented

if TYPE_CHECKING:
    from everstep.head.runtime import Runtime

_array_ids = itertools.count(1)


class Session:
    """What one program owns. Made by Runtime.open_session."""

    def __init__(self, runtime: Runtime, number: int, label: str) -> None:
        self.number = number
        self.label = label
        self.buffers = HostBuffers(runtime.directory, runtime.buffers)
        self.arrays: dict[int, Array] = {}
        self.programs: dict[Program, int] = {}  # how often the program holds each
        self._runtime = runtime
        self._dispatcher = runtime.dispatcher

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, without replicas."""
        return sum(array.nbytes for array in self.arrays.values() if not array.is_freed)

    # ------------------------------------------------------------------ making arrays

    def put(self, spec: ArraySpec, shards: Sequence[HostShard]) -> Array:
        """An array from host buffers, which are consumed. Every shard must be given.

        Raises Failure (INVALID_ARGUMENT) if shards are missing, given twice, or of the wrong shape; the buffers are gone even then.
        """
        buffers = [self.buffers.take(shard.buffer) for shard in shards]
        try:
            uploads.check(spec, shards)
            placement = self._runtime.place(spec.sharding.devices)
        except Failure:
            for buffer in buffers:
                buffer.let_go()
            raise
        operation = self._dispatcher.operation("put", placement.slots)
        array = self._new(spec, placement, operation)
        uploads.put(self._runtime, array, operation, shards, buffers)
        for buffer in buffers:
            operation.on_drained(buffer.let_go)
        return array

    def error_array(self, spec: ArraySpec, failure: Failure) -> Array:
        """An array that holds an error and nothing else."""
        array = self._new(spec, self._runtime.place(spec.sharding.devices))
        array.mark_failed(failure)
        array.is_freed = True
        return array

    # ------------------------------------------------------------------ arrays from arrays

    def assemble(self, spec: ArraySpec, arrays: Sequence[Array], copy: CopySemantics) -> Array:
        """One array whose shards are those of `arrays`, in order. Raises Failure (INVALID_ARGUMENT) if they don't lie as `spec` says."""
        shards = [(array, device) for array in arrays for device in array.spec.sharding.devices]
        result = self._assemble(spec, shards, copy)
        if copy is CopySemantics.DONATE_INPUT:
            self.delete(arrays)
        return result

    def disassemble(self, array: Array) -> list[Array]:
        """One single-device array per shard, sharing its memory."""
        array.check_usable()
        memory_kind = array.spec.sharding.memory_kind
        shapes = array.spec.sharding.shapes(array.spec.shape)
        return [
            self._assemble(
                ArraySpec(array.spec.dtype, shape, Sharding.single(device, memory_kind)), [(array, device)], CopySemantics.REUSE_INPUT
            )
            for device, shape in zip(array.spec.sharding.devices, shapes, strict=True)
        ]

    def first_shard(self, array: Array) -> Array:
        """The shard on the first device, as an array of its own. Raises Failure (INVALID_ARGUMENT) unless fully replicated."""
        array.check_usable()
        if not array.spec.sharding.is_fully_replicated:
            raise invalid("only a fully replicated array has a shard that stands for all of it")
        device = array.spec.sharding.devices[0]
        spec = ArraySpec(array.spec.dtype, array.spec.shape, Sharding.single(device, array.spec.sharding.memory_kind))
        return self._assemble(spec, [(array, device)], CopySemantics.REUSE_INPUT)

    def copy(self, arrays: Sequence[Array], devices: tuple[int, ...] | None, memory_kind: str | None, copy: CopySemantics) -> list[Array]:
        """Each array with its shards, in order, on other devices and in another kind of memory. None: as they are."""
        results = []
        for array in arrays:
            array.check_usable()
            old = array.spec.sharding
            sharding = dataclasses.replace(old, devices=devices or old.devices, memory_kind=memory_kind or old.memory_kind, source=None)
            if len(sharding.devices) != len(old.devices):
                raise invalid(f"{len(old.devices)} shards can't be copied to {len(sharding.devices)} devices")
            pieces = [[resharding.Piece(device, None, (0,) * len(array.spec.shape))] for device in old.devices]
            results.append(self._build(array, dataclasses.replace(array.spec, sharding=sharding), pieces, copy))
        return self._donate(arrays, results, copy)

    def reshard(self, arrays: Sequence[Array], specs: Sequence[ArraySpec], copy: CopySemantics) -> list[Array]:
        """Each array in another layout. Raises Failure (INVALID_ARGUMENT) if shapes differ, (UNIMPLEMENTED) for unknown cuts."""
        results = []
        for array, spec in zip(arrays, specs, strict=True):
            array.check_usable()
            pieces = resharding.plan(array.spec, spec, self._runtime.distance, frozenset(array.failures or ()))
            results.append(self._build(array, spec, pieces, copy))
        return self._donate(arrays, results, copy)

    def remap(
        self, arrays: Sequence[Array], specs: Sequence[ArraySpec], sources: Sequence[Sequence[tuple[int, int]]], copy: CopySemantics
    ) -> list[Array]:
        """New arrays from the shards of others: `sources[k][j]` = (number of the input, number of its shard) for shard j of output k."""
        results = []
        for spec, origin in zip(specs, sources, strict=True):
            shards = [(arrays[i], arrays[i].spec.sharding.devices[shard]) for i, shard in origin]
            results.append(self._assemble(spec, shards, copy))
        return self._donate(arrays, results, copy)

    def bitcast(self, arrays: Sequence[Array], specs: Sequence[ArraySpec], copy: CopySemantics) -> list[Array]:
        """The same bytes under another dtype and shape, shard by shard."""
        results = []
        for array, spec in zip(arrays, specs, strict=True):
            array.check_usable()
            if spec.sharding.devices != array.spec.sharding.devices:
                raise invalid("a bitcast can't move an array to other devices")
            shapes = set(spec.sharding.shapes(spec.shape))
            if len(shapes) > 1:
                raise unimplemented("an array whose shards have different shapes can't be bitcast")
            placement = array.placement
            operation = self._dispatcher.operation("bitcast", placement.slots)
            operation.follow(array)
            result = self._new(spec, placement, operation)
            self._inherit_failures(result, array, placement.slot_of)
            message = wire.Bitcast(array=result.id, source=array.id, dtype=spec.dtype, shape=shapes.pop())
            self._dispatcher.dispatch(operation, placement.slots, wire.ToWorker(bitcast=message))
            results.append(result)
        return self._donate(arrays, results, copy)

    def _donate(self, arrays: Sequence[Array], results: list[Array], copy: CopySemantics) -> list[Array]:
        if copy is CopySemantics.DONATE_INPUT:
            self.delete(arrays)
        return results

    def _assemble(self, spec: ArraySpec, shards: Sequence[tuple[Array, int]], copy: CopySemantics) -> Array:
        for array in {source.id: source for source, _ in shards}.values():
            array.check_usable()
        if tuple(device for _, device in shards) != spec.sharding.devices:
            raise invalid(f"shards on devices {[d for _, d in shards]} don't make an array on devices {list(spec.sharding.devices)}")
        placement = self._runtime.place(spec.sharding.devices)
        result = self._new(spec, placement)
        operations: dict[int, Operation] = {}
        refs: dict[str, list[wire.ShardRef]] = {slot: [] for slot in placement.slots}
        for array, device in shards:
            slot = placement.slot_of[device]
            refs[slot].append(wire.ShardRef(array=array.id, device=device))
            if array.failures is not None and device in array.failures:
                result.mark_failed(array.failures[device], frozenset((device,)))
            for operation in array.operations:
                if slot in operation.pending:
                    operations[operation.number] = operation
                    operation.feed(result, frozenset((device,)))
        result.operations = tuple(operations.values())
        result.memory = tuple(dict.fromkeys(memory for array, _ in shards for memory in array.memory))
        messages = {slot: wire.ToWorker(assemble=wire.Assemble(array=result.id, shards=held)) for slot, held in refs.items()}
        self._dispatcher.dispatch(None, placement.slots, messages)
        return result

    def _build(self, array: Array, spec: ArraySpec, pieces: Sequence[Sequence[resharding.Piece]], copy: CopySemantics) -> Array:
        whole = all(
            len(parts) == 1 and parts[0].box is None and parts[0].device == device
            for parts, device in zip(pieces, spec.sharding.devices, strict=True)
        )
        if whole and copy is not CopySemantics.ALWAYS_COPY and spec.sharding.memory_kind == array.spec.sharding.memory_kind:
            return self._assemble(spec, [(array, device) for device in spec.sharding.devices], copy)
        placement = self._runtime.place(spec.sharding.devices)
        origins = {part.device for parts in pieces for part in parts}
        sources = {array.placement.slot_of[device] for device in origins}
        operation = self._dispatcher.operation("copy", placement.slots, sources=sources)
        operation.follow(array)
        result = self._new(spec, placement, operation)
        self._inherit_failures(result, array, origins)
        if any(
            part.box is None and part.device == device
            for device, parts in zip(spec.sharding.devices, pieces, strict=True)
            for part in parts
        ):
            result.memory += array.memory  # workers share a shard that stays where it is
        copies.build(self._runtime, operation, array, result, pieces)
        if len(sources) > 1 or sources != set(placement.slots):
            self._pin(array, operation)
        return result

    # ------------------------------------------------------------------ data back to the program

    def get(self, array: Array, handle: int, byte_strides: tuple[int, ...] | None) -> Awaitable[None]:
        """Copy the array into host buffer `handle`, dense and row-major or with the given strides; await it for the data to be there.

        Raises Failure: now for a deleted array, when awaited for what goes wrong later.
        """
        array.check_usable()
        return downloads.fetch(self._runtime, array, self.buffers.entry(handle), byte_strides)

    async def ready(self, arrays: Sequence[Array]) -> None:
        """Until all are there. Raises the first Failure as soon as one is known."""
        await all_ready(arrays)

    # ------------------------------------------------------------------ freeing

    def delete(self, arrays: Iterable[Array]) -> None:
        """Free their memory. They can't be used any more; the program may still ask about them."""
        arrays = list(arrays)
        for array in arrays:
            array.is_deleted = True
        self._free(arrays)

    def release(self, arrays: Iterable[Array]) -> None:
        """The program has no handles to them any more."""
        arrays = list(arrays)
        for array in arrays:
            array.is_deleted = array.is_released = True
            self.arrays.pop(array.id, None)
        self._free(arrays)

    def _free(self, arrays: Sequence[Array]) -> None:
        by_slots: dict[tuple[str, ...], list[int]] = {}
        for array in arrays:
            if not array.is_freed and array.pins == 0:
                array.is_freed = True
                by_slots.setdefault(array.placement.slots, []).append(array.id)
        for slots, ids in by_slots.items():
            self._dispatcher.free(slots, ids)

    def _pin(self, array: Array, operation: Operation) -> None:
        array.pins += 1
        for memory in array.memory:
            memory.readers += 1
        operation.on_drained(lambda: self._unpin(array))

    def _unpin(self, array: Array) -> None:
        array.pins -= 1
        for memory in array.memory:
            memory.readers -= 1
        if array.is_deleted:
            self._free([array])

    # ------------------------------------------------------------------ programs

    async def compile(self, request: CompileRequest) -> Program:
        """Raises Failure if it can't be compiled."""
        program = await self._runtime.programs.get(request)
        self.programs[program] = self.programs.get(program, 0) + 1
        return program

    def execute(
        self,
        program: Program,
        arguments: Sequence[Array],
        outputs: Sequence[ArraySpec],
        *,
        keep: frozenset[int] = frozenset(),
        launch: int = 0,
    ) -> Execution:
        """Run it. Arguments that it donates are deleted, except those at the indices in `keep`.

        outputs: the specs of its results. Raises Failure (INVALID_ARGUMENT) for deleted arguments or a wrong number of them.
        """
        for array in arguments:
            array.check_usable()
        if program.parameter_count is not None and program.parameter_count != len(arguments):
            raise invalid(f"{program.name} takes {program.parameter_count} arguments, got {len(arguments)}")
        donated = [index for index in program.donated if index not in keep and index < len(arguments)]
        _check_donated_once(arguments, donated)
        placement = program.placement
        operation = self._dispatcher.operation(program.name, placement.slots, spanning=program.spanning, program=True)
        results = [self._new(spec, placement, operation) for spec in outputs]
        pinned = [index for index in donated if any(memory.readers for memory in arguments[index].memory)]
        message = wire.Execute(
            program=program.number,
            arguments=[array.id for array in arguments],
            results=[array.id for array in results],
            keep_arguments=[*keep, *pinned],
            launch=launch,
        )
        failure: Failure | None = None
        for array in arguments:
            if array.failures is not None:
                failure = failure or array.failure
            elif array.operations:
                operation.follow(array)
        if failure is not None:
            operation.fail(failure)
        prepare = None if self._runtime.programs.is_loaded(program) else lambda: self._runtime.programs.load(program)
        self._dispatcher.dispatch(operation, placement.slots, wire.ToWorker(execute=message), prepare)
        self.delete(arguments[index] for index in donated)
        return Execution(results, operation)

    def transfer(self, program: StorageProgram, arguments: Sequence[Array]) -> Execution:
        """Save the arguments, or restore arrays. Raises Failure (INVALID_ARGUMENT) for deleted arguments, or others than it is for."""
        if program.saves:
            return persistence.save(self._runtime, program, arguments)
        return persistence.restore(self._runtime, program, self._new)

    async def describe(self, program: Program) -> Description:
        """Its cost analysis and optimized HLO text. Raises Failure."""
        return await self._runtime.programs.describe(program)

    def release_program(self, program: Program) -> None:
        """The program has dropped one of its handles."""
        count = self.programs.get(program, 0)
        if count > 1:
            self.programs[program] = count - 1
        elif count == 1:
            del self.programs[program]
        if count:
            self._runtime.programs.release(program)

    def close(self) -> None:
        """The program is gone: free all that it owned."""
        self.release(list(self.arrays.values()))
        for program in list(self.programs):
            while program in self.programs:
                self.release_program(program)
        self.buffers.close()
        self._runtime.sessions.pop(self.number, None)

    # ------------------------------------------------------------------

    def _new(self, spec: ArraySpec, placement: Placement, operation: Operation | None = None) -> Array:
        array = Array(next(_array_ids), spec, placement, () if operation is None else (operation,))
        if operation is not None:
            operation.feed(array)
        self.arrays[array.id] = array
        return array

    @staticmethod
    def _inherit_failures(result: Array, source: Array, devices: Iterable[int]) -> None:
        """The result is made from the shards on these devices."""
        failure = next((source.failures[device] for device in devices if device in source.failures), None) if source.failures else None
        if failure is not None:
            for operation in result.operations:
                operation.fail(failure)


def _check_donated_once(arguments: Sequence[Array], donated: Sequence[int]) -> None:
    """XLA's CPU backend may crash when a donated argument is given twice: one program must not end a worker."""
    if not donated or len({array.id for array in arguments}) == len(arguments):
        return
    for index in donated:
        if sum(array is arguments[index] for array in arguments) > 1:
            raise invalid(
                f"Attempt to donate argument {index} and to use the same buffer as another argument in the same call to Execute(). "
                "Toy example for this bug: `f(donate(a), a)`."
            )
