"""A runtime in memory: the head's interface as the frontend uses it, with numpy arrays in place of workers.

It keeps its promises: data really moves, donated arrays are gone, errors sit in arrays, and nothing is ready before it is told to be.
"""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence

import numpy as np
from frontend.hostdata import FakeBuffers, from_host, to_host

from everstep.head.members import Device
from everstep.head.persistence import StorageProgram
from everstep.head.programs import CompileRequest, Description, Output
from everstep.head.runtime import Topology
from everstep.head.specs import ArraySpec, Box, CopySemantics, HostShard, Shape, Sharding
from everstep.wire import dtypes
from everstep.wire.errors import Code, Failure, invalid, unimplemented

KINDS = ("device", "pinned_host", "unpinned_host")


def topology(slices: int = 2, devices_per_slice: int = 2) -> Topology:
    """CPU devices, one worker to a slice."""
    devices = []
    for number in range(slices * devices_per_slice):
        index, local = divmod(number, devices_per_slice)
        devices.append(Device(number, index, f"s{index}w0", local, "cpu", "cpu", KINDS, "device"))
    return Topology(tuple(devices), "cpu", "in memory")


class FakeRuntime:
    """programs: what `compile` knows, by module."""

    def __init__(self, slices: int = 2, devices_per_slice: int = 2) -> None:
        self.topology = topology(slices, devices_per_slice)
        self.sessions: list[FakeSession] = []
        self.programs: dict[bytes, FakeProgram] = {}
        self.lost: dict[int, Failure] = {}  # devices that are no more

    async def started(self) -> None:
        return None

    def open_session(self, label: str) -> FakeSession:
        session = FakeSession(self, label)
        self.sessions.append(session)
        return session


class FakeArray:
    """shards: one numpy array to a device, as soon as `there` is set."""

    def __init__(self, spec: ArraySpec) -> None:
        self.spec = spec
        self.shards: list[np.ndarray] | list[bytes] = []
        self.there = asyncio.Event()
        self.failure: Failure | None = None
        self.is_deleted = False

    @property
    def failures(self) -> dict[int, Failure] | None:
        return None if self.failure is None else dict.fromkeys(self.spec.sharding.devices, self.failure)

    def waiting_for(self) -> object | None:
        return None if self.there.is_set() else self

    def check_usable(self) -> None:
        if self.is_deleted:
            raise invalid("Array has been deleted or donated")

    def fill(self, shards: Iterable[object]) -> None:
        self.shards = list(shards)  # type: ignore[arg-type]
        self.there.set()

    def fail(self, failure: Failure) -> None:
        self.failure = self.failure or failure
        self.there.set()

    async def ready(self) -> None:
        await self.there.wait()
        if self.failure is not None:
            raise self.failure


@dataclasses.dataclass(eq=False)
class FakeProgram:
    """run: takes the shards of every argument on one device, gives those of every result. gate: executions wait for it."""

    outputs: list[Output]
    run: Callable[..., Sequence[np.ndarray]] = lambda *arguments: arguments
    output_shardings: list[bytes] | None = None
    parameter_shardings: list[bytes] | None = None
    donated: tuple[int, ...] = ()
    failure: Failure | None = None
    devices: tuple[int, ...] = (0,)
    name: str = "jit_f"
    fingerprint: bytes = b"print"
    parameter_layouts: tuple[bytes, ...] = ()
    output_layouts: tuple[bytes, ...] = ()
    layouts_error: Failure | None = None
    memory_stats: bytes = b""
    memory_stats_error: Failure | None = None
    code_size: int = 1
    description: Description | Failure = dataclasses.field(default_factory=lambda: Description({"flops": 8.0}, "HloModule f"))
    gate: asyncio.Event | None = None
    held: int = 0


class FakeExecution:
    def __init__(self, results: list[FakeArray], failure: Failure | None = None) -> None:
        self.results = results
        self.over = asyncio.Event()
        self.failure = failure

    async def done(self) -> None:
        await self.over.wait()
        if self.failure is not None:
            raise self.failure


class FakeSession:
    def __init__(self, runtime: FakeRuntime, label: str) -> None:
        self.label = label
        self.buffers = FakeBuffers()
        self.arrays: set[FakeArray] = set()
        self.closed = asyncio.Event()
        self._runtime = runtime
        self._tasks: set[asyncio.Task[None]] = set()
        self.launches = itertools.count()
        self.stored: dict[tuple[str, str], list[np.ndarray]] = {}

    @property
    def is_closed(self) -> bool:
        return self.closed.is_set()

    # ------------------------------------------------------------------ arrays

    def _new(self, spec: ArraySpec) -> FakeArray:
        array = FakeArray(spec)
        self.arrays.add(array)
        for device in spec.sharding.devices:
            if device in self._runtime.lost:
                array.fail(self._runtime.lost[device])
        return array

    def _later(self, array: FakeArray, work: Awaitable[Iterable[object]]) -> FakeArray:
        async def do() -> None:
            try:
                array.fill(await work)
            except Failure as failure:
                array.fail(failure)

        task = asyncio.ensure_future(do())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return array

    def put(self, spec: ArraySpec, shards: Sequence[HostShard]) -> FakeArray:
        given = sorted(index for shard in shards for index in shard.indices)
        buffers = [self.buffers.take(shard.buffer) for shard in shards]
        if given != list(range(len(spec.sharding.devices))):
            raise invalid(f"each shard once, not {given}")

        async def fill() -> list[object]:
            parts: list[object] = [None] * len(spec.sharding.devices)
            for shard, buffer in zip(shards, buffers, strict=True):
                content = await buffer.content()
                for index in shard.indices:
                    parts[index] = from_host(content, spec.dtype, shard.shape, shard.byte_strides)
            return parts

        return self._later(self._new(spec), fill())

    def error_array(self, spec: ArraySpec, failure: Failure) -> FakeArray:
        array = self._new(spec)
        array.fail(failure)
        return array

    def _derive(self, spec: ArraySpec, sources: Sequence[FakeArray], make: Callable[[], Iterable[object]]) -> FakeArray:
        for source in sources:
            source.check_usable()

        async def work() -> Iterable[object]:
            for source in sources:
                await source.ready()
            return make()

        return self._later(self._new(spec), work())

    def assemble(self, spec: ArraySpec, arrays: Sequence[FakeArray], copy: CopySemantics) -> FakeArray:
        if tuple(device for array in arrays for device in array.spec.sharding.devices) != spec.sharding.devices:
            raise invalid("shards on other devices")
        return self._donate(copy, arrays, [self._derive(spec, arrays, lambda: [s for a in arrays for s in a.shards])])[0]

    def disassemble(self, array: FakeArray) -> list[FakeArray]:
        def part(number: int, device: int, shape: Shape) -> FakeArray:
            spec = ArraySpec(array.spec.dtype, shape, Sharding.single(device, array.spec.sharding.memory_kind))
            return self._derive(spec, [array], lambda: [array.shards[number]])

        shapes = array.spec.sharding.shapes(array.spec.shape)
        return [part(n, d, s) for n, (d, s) in enumerate(zip(array.spec.sharding.devices, shapes, strict=True))]

    def first_shard(self, array: FakeArray) -> FakeArray:
        if not array.spec.sharding.is_fully_replicated:
            raise invalid("not fully replicated")
        spec = dataclasses.replace(array.spec, sharding=Sharding.single(array.spec.sharding.devices[0]))
        return self._derive(spec, [array], lambda: [array.shards[0]])

    def copy(
        self, arrays: Sequence[FakeArray], devices: tuple[int, ...] | None, memory_kind: str | None, copy: CopySemantics
    ) -> list[FakeArray]:
        def one(array: FakeArray) -> FakeArray:
            old = array.spec.sharding
            sharding = dataclasses.replace(old, devices=devices or old.devices, memory_kind=memory_kind or old.memory_kind)
            if len(sharding.devices) != len(old.devices):
                raise invalid("another number of devices")
            return self._derive(dataclasses.replace(array.spec, sharding=sharding), [array], lambda: array.shards)

        return self._donate(copy, arrays, [one(array) for array in arrays])

    def remap(
        self, arrays: Sequence[FakeArray], specs: Sequence[ArraySpec], sources: Sequence[Sequence[tuple[int, int]]], copy: CopySemantics
    ) -> list[FakeArray]:
        def one(spec: ArraySpec, places: Sequence[tuple[int, int]]) -> FakeArray:
            return self._derive(spec, arrays, lambda: [arrays[a].shards[s] for a, s in places])

        return self._donate(copy, arrays, [one(spec, places) for spec, places in zip(specs, sources, strict=True)])

    def reshard(self, arrays: Sequence[FakeArray], specs: Sequence[ArraySpec], copy: CopySemantics) -> list[FakeArray]:
        def one(array: FakeArray, spec: ArraySpec) -> FakeArray:
            if array.spec.shape != spec.shape:
                raise invalid("another shape")
            spec.sharding.boxes(spec.shape)
            return self._derive(spec, [array], lambda: [_cut(_whole(array), box) for box in spec.sharding.boxes(spec.shape)])

        return self._donate(copy, arrays, [one(array, spec) for array, spec in zip(arrays, specs, strict=True)])

    def bitcast(self, arrays: Sequence[FakeArray], specs: Sequence[ArraySpec], copy: CopySemantics) -> list[FakeArray]:
        def one(array: FakeArray, spec: ArraySpec) -> FakeArray:
            shapes = spec.sharding.shapes(spec.shape)
            dtype = dtypes.to_numpy(spec.dtype)
            return self._derive(
                spec, [array], lambda: [np.frombuffer(s.tobytes(), dtype).reshape(n) for s, n in zip(array.shards, shapes, strict=True)]
            )

        return self._donate(copy, arrays, [one(array, spec) for array, spec in zip(arrays, specs, strict=True)])

    def _donate(self, copy: CopySemantics, arrays: Sequence[FakeArray], results: list[FakeArray]) -> list[FakeArray]:
        if copy is CopySemantics.DONATE_INPUT:
            self.delete(arrays)
        return results

    def get(self, array: FakeArray, handle: int, byte_strides: tuple[int, ...] | None) -> Awaitable[None]:
        array.check_usable()
        buffer = self.buffers.entry(handle)

        async def arrive() -> None:
            await array.ready()
            buffer.settle(to_host(_whole(array), byte_strides))

        return arrive()

    async def ready(self, arrays: Sequence[FakeArray]) -> None:
        for array in arrays:
            await array.ready()

    def delete(self, arrays: Iterable[FakeArray]) -> None:
        for array in arrays:
            array.is_deleted = True

    def release(self, arrays: Iterable[FakeArray]) -> None:
        for array in arrays:
            array.is_deleted = True
            self.arrays.discard(array)

    # ------------------------------------------------------------------ programs

    async def compile(self, request: CompileRequest) -> FakeProgram:
        program = self._runtime.programs.get(request.module)
        if program is None:
            raise Failure(Code.INTERNAL, "that is no module")
        if program.failure is not None:
            raise program.failure
        program.held += 1
        return dataclasses.replace(program, devices=request.devices)

    def execute(
        self, program: FakeProgram, arguments: Sequence[FakeArray], outputs: Sequence[ArraySpec], *, keep: frozenset[int], launch: int
    ) -> FakeExecution:
        for argument in arguments:
            argument.check_usable()
        results = [self._new(spec) for spec in outputs]
        execution = FakeExecution(results)

        async def run() -> None:
            try:
                if program.gate is not None:
                    await program.gate.wait()
                await self.ready(arguments)
                parts = [program.run(*shards) for shards in zip(*(a.shards for a in arguments), strict=True)]
                for number, result in enumerate(results):
                    result.fill(part[number] for part in parts)
            except Failure as failure:
                execution.failure = failure
                for result in results:
                    result.fail(failure)
            execution.over.set()

        task = asyncio.ensure_future(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.delete(arguments[index] for index in program.donated if index not in keep)
        return execution

    def transfer(self, program: StorageProgram, arguments: Sequence[FakeArray]) -> FakeExecution:
        execution = FakeExecution([self._new(spec) for spec in program.results])
        for stored, array in zip(program.arrays, arguments if program.saves else execution.results, strict=True):
            place = stored.location, stored.name
            if program.saves:
                self.stored[place] = array.shards  # type: ignore[assignment]
            elif place in self.stored:
                array.fill(self.stored[place])
            else:
                execution.failure = Failure(Code.NOT_FOUND, "there is no such array")
                array.fail(execution.failure)
        execution.over.set()
        return execution

    async def describe(self, program: FakeProgram) -> Description:
        if isinstance(program.description, Failure):
            raise program.description
        return program.description

    def release_program(self, program: FakeProgram) -> None:
        program.held -= 1

    def close(self) -> None:
        self.closed.set()
        self.arrays.clear()
        for task in self._tasks:
            task.cancel()


def _cut(whole: np.ndarray, box: Box) -> np.ndarray:
    return whole[tuple(slice(start, start + size) for start, size in zip(box.start, box.size, strict=True))]


def _whole(array: FakeArray) -> np.ndarray | bytes:
    spec = array.spec
    if len(array.shards) == 1 or spec.sharding.is_fully_replicated:
        return array.shards[0]
    if spec.sharding.tiles is None:
        raise unimplemented("where shards lie is not known")
    whole = np.empty(spec.shape, dtypes.to_numpy(spec.dtype))
    for shard, box in zip(array.shards, spec.sharding.boxes(spec.shape), strict=True):
        _cut(whole, box)[...] = shard
    return whole
