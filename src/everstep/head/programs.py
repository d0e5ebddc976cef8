"""Programs: each compiled once, by one worker, and loaded by the others from what it serialized."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import hashlib
import itertools
import json
import logging
import pathlib
from collections.abc import Callable, Sequence

from everstep.head.arrays import Placement
from everstep.head.dispatch import Dispatcher
from everstep.head.members import Member, Members
from everstep.head.specs import Shape
from everstep.head.worlds import World, Worlds
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure

log = logging.getLogger(__name__)

COMPILE_ATTEMPTS = 3  # a program that ends worker after worker must not end them all
IDLE_PROGRAMS = 512  # so many programs that no session holds stay loaded

# What a compile ends with whose worker dies, or whose world is broken up.
_AWAY = {Code.DATA_LOSS, Code.ABORTED, Code.NOT_FOUND}

_numbers = itertools.count(1)


@dataclasses.dataclass(frozen=True, slots=True)
class CompileRequest:
    """module: portable StableHLO artifact. options: xla.CompileOptionsProto. devices: [replicas x partitions], row-major."""

    module: bytes
    options: bytes
    devices: tuple[int, ...]
    replicas: int
    partitions: int


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """One result of a program. `shape` is the global one, `shard_shape` that of each device's part."""

    dtype: str
    shape: Shape
    shard_shape: Shape
    memory_kind: str


@dataclasses.dataclass(frozen=True, slots=True)
class Description:
    """What is rarely asked about a program."""

    cost_analysis: dict[str, float] | Failure
    hlo_text: str


class Executable:
    """What a compiler made of a module: independent of devices and worlds."""

    def __init__(self, key: bytes, request: CompileRequest, report: wire.Compiled, blob: asyncio.Future[wire.Source]) -> None:
        self.key = key
        self.request = request
        self.report = report
        self.outputs = [Output(o.dtype, tuple(o.shape), tuple(o.shard_shape), o.memory_kind) for o in report.outputs]
        self.blob = blob
        self.programs = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Compiled:
    """How an executable came about: under which number of a program, by which worker, in which world (None: in none)."""

    number: int
    by: str
    world: World | None


class Program:
    """An executable on certain devices, shared by all sessions that asked for it."""

    def __init__(self, number: int, executable: Executable, devices: tuple[int, ...], placement: Placement) -> None:
        self.number = number
        self.executable = executable
        self.devices = devices
        self.placement = placement
        self.users = 0
        self.loaded: dict[str, int] = {}  # slot -> number of the world in which it is loaded there
        report = executable.report
        self.name: str = report.name
        self.fingerprint: bytes = report.fingerprint
        self.outputs = executable.outputs
        self.parameter_shardings = list(report.parameter_shardings) if report.has_parameter_shardings else None
        self.output_shardings = list(report.output_shardings) if report.has_output_shardings else None
        self.parameter_layouts = list(report.parameter_layouts)
        self.output_layouts = list(report.output_layouts)
        self.layouts_error = _failure(report, "layouts_error")
        self.donated = tuple(report.donated)
        self.memory_stats: bytes = report.memory_stats
        self.memory_stats_error = _failure(report, "memory_stats_error")
        self.code_size: int = report.code_size
        self.parameter_count = len(self.parameter_layouts) if self.layouts_error is None else None

    @property
    def spanning(self) -> bool:
        """Whether it runs on several workers."""
        return len(self.placement.slots) > 1


class Programs:
    """All programs of the run, and the executables that may be asked for again."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        members: Members,
        worlds: Worlds,
        place: Callable[[Sequence[int]], Placement],
        directory: pathlib.Path,
    ) -> None:
        self._dispatcher = dispatcher
        self._members = members
        self._worlds = worlds
        self._place = place
        self._directory = directory
        self._executables: dict[bytes, asyncio.Task[tuple[Executable, Compiled]]] = {}
        self._programs: dict[tuple[bytes, tuple[int, ...]], Program] = {}
        self._by_number: dict[int, Executable] = {}  # of the program with which it was compiled
        self._blobs: dict[int, asyncio.Future[wire.Source]] = {}  # likewise
        self._compilers: dict[int, Member] = {}  # of those that are not serialized yet
        self._idle: collections.OrderedDict[tuple[bytes, tuple[int, ...]], Program] = collections.OrderedDict()

    def __len__(self) -> int:
        return len(self._programs) - len(self._idle)

    @property
    def world(self) -> World | None:
        """The one in which programs run at the moment."""
        return self._worlds.current

    async def get(self, request: CompileRequest) -> Program:
        """The program for a request: compiled now, or long ago. One more user. Raises Failure if it can't be compiled."""
        placement = self._place(request.devices)
        key = _key(request, spanning=len(placement.slots) > 1)
        program = self._programs.get((key, request.devices))
        if program is None:
            task = self._executables.get(key)
            if task is None:
                task = self._executables[key] = asyncio.ensure_future(self._compile(key, request, placement))
            try:
                executable, compiled = await asyncio.shield(task)
            except Failure:
                if self._executables.get(key) is task:
                    del self._executables[key]
                raise
            if placement.slots != (compiled.by,) or request.devices != executable.request.devices or compiled.world is None:
                await asyncio.wait([executable.blob])
            program = self._programs.get((key, request.devices))
            if program is None:
                program = self._add(key, executable, compiled, request.devices, placement)
        program.users += 1
        self._idle.pop((key, request.devices), None)
        return program

    def is_loaded(self, program: Program) -> bool:
        """Whether all its workers have it or have been told to load it, in the present world."""
        world = self.world
        return world is not None and all(program.loaded.get(slot) == world.number for slot in program.placement.slots)

    def load(self, program: Program) -> None:
        """See to it that all its workers have it or are told to load it, in the present world. Raises Failure if they can't."""
        world = self.world
        if world is None:
            raise self._members.away(program.placement.slots[0])
        for slot in program.placement.slots:
            if program.loaded.get(slot) == world.number:
                continue
            member = self._members.up(slot)
            if member is not None:
                member.link.send(self._load_message(program, world, member))
                program.loaded[slot] = world.number

    def release(self, program: Program) -> None:
        """One user less. A program without users stays loaded for a while: it may be asked for again."""
        program.users -= 1
        if program.users > 0:
            return
        key = (program.executable.key, program.devices)
        if program.executable.report.callbacks:  # it can't be: its callbacks have ids that are used once
            self._unload(key, program)
            return
        self._idle[key] = program
        while len(self._idle) > IDLE_PROGRAMS:
            self._unload(*self._idle.popitem(last=False))

    def blob_ready(self, message: wire.BlobReady, member: Member) -> None:
        """A worker has serialized what it compiled."""
        future = self._blobs.get(message.program)
        if future is None:  # it was unloaded before it was serialized
            self._blob_path(message.program).unlink(missing_ok=True)
            return
        if future.done():
            return
        self._compilers.pop(message.program, None)
        if message.HasField("error"):
            future.set_exception(Failure(Code(message.error.code), message.error.message))
        elif member.shares_directory:
            future.set_result(wire.Source(path=str(self._blob_path(message.program)), size=message.size))
        else:
            bulk = wire.Bulk(address=member.bulk_address, key=f"blob/{message.program}")
            future.set_result(wire.Source(bulk=bulk, size=message.size))

    def lose(self, member: Member, failure: Failure) -> None:
        """A worker is gone, and with it what it had not serialized yet: others must compile that themselves."""
        for number in [number for number, compiler in self._compilers.items() if compiler is member]:
            del self._compilers[number]
            self._blobs[number].set_exception(failure)
        for number, blob in self._blobs.items():
            if blob.done() and not blob.exception() and blob.result().bulk.address == member.bulk_address:
                self._blobs[number] = self._by_number[number].blob = _failed(failure)

    async def describe(self, program: Program) -> Description:
        """Ask a worker that has it. Raises Failure."""
        await self._dispatcher.opened()
        self.load(program)
        member = self._members.up(program.placement.slots[0])
        if member is None:
            raise self._members.away(program.placement.slots[0])
        describe = wire.Describe(program=program.number, cost_analysis=True, hlo_text=True)
        operation, reply = self._dispatcher.ask("describe program", member, wire.ToWorker(describe=describe))
        await operation.done()
        described = reply.result().described
        return Description(_cost_analysis(described), described.hlo_text)

    async def _compile(self, key: bytes, request: CompileRequest, placement: Placement) -> tuple[Executable, Compiled]:
        """Have it compiled by a worker that it is to run on or, while some of these are away, by any: what it makes is the same.

        A worker may die of it or meanwhile: then another one does it.
        """
        for attempt in itertools.count(1):
            await self._dispatcher.opened()
            world = self.world
            there = [member for slot in placement.slots if (member := self._members.up(slot)) is not None]
            candidates = there or [member for member in self._members if member.is_up]
            if world is None or not candidates:
                raise self._members.away(placement.slots[0])
            inside = world if len(there) == len(placement.slots) else None
            try:
                return await self._compile_on(candidates[0], inside, key, request, placement)
            except Failure as failure:
                if failure.code not in _AWAY or world is self.world or attempt == COMPILE_ATTEMPTS:
                    raise
                log.warning("compiling again: %s", failure.message)
        raise AssertionError

    async def _compile_on(
        self, member: Member, world: World | None, key: bytes, request: CompileRequest, placement: Placement
    ) -> tuple[Executable, Compiled]:
        number = next(_numbers)
        message = wire.ToWorker(compile=self._compile_message(number, world, request, request.devices, placement, member))
        # It may be ready before this task hears that the program is compiled.
        blob: asyncio.Future[wire.Source] = asyncio.get_running_loop().create_future()
        blob.add_done_callback(lambda future: future.cancelled() or future.exception())  # not an error if nobody asks
        self._blobs[number] = blob
        self._compilers[number] = member
        operation, reply = self._dispatcher.ask("compile", member, message)
        try:
            await operation.done()
        except Failure:
            del self._blobs[number]
            self._compilers.pop(number, None)
            raise
        executable = self._by_number[number] = Executable(key, request, reply.result().compiled, blob)
        return executable, Compiled(number, member.slot.name, world)

    def _add(self, key: bytes, executable: Executable, compiled: Compiled, devices: tuple[int, ...], placement: Placement) -> Program:
        first = executable.programs == 0 and devices == executable.request.devices
        program = Program(compiled.number if first else next(_numbers), executable, devices, placement)
        executable.programs += 1
        if first and compiled.world is not None:
            program.loaded[compiled.by] = compiled.world.number
        self._programs[key, devices] = program
        if self.world is not None:
            self.load(program)
        return program

    def _load_message(self, program: Program, world: World, member: Member) -> wire.ToWorker:
        executable, request = program.executable, program.executable.request
        if not executable.blob.done() or executable.blob.exception() is not None:
            message = self._compile_message(program.number, world, request, program.devices, program.placement, None)
            return wire.ToWorker(compile=message)
        outputs = [wire.ShardInfo(dtype=o.dtype, shape=o.shard_shape, memory_kind=o.memory_kind) for o in executable.outputs]
        return wire.ToWorker(
            load=wire.Load(
                program=program.number,
                world=world.number,
                blob=executable.blob.result(),
                options=request.options,
                devices=program.devices,
                replicas=request.replicas,
                partitions=request.partitions,
                outputs=outputs,
                callbacks=executable.report.callbacks,
            )
        )

    def _compile_message(
        self,
        number: int,
        world: World | None,
        request: CompileRequest,
        devices: tuple[int, ...],
        placement: Placement,
        blob_for: Member | None,
    ) -> wire.Compile:
        return wire.Compile(
            program=number,
            world=world.number if world is not None else 0,
            spans_workers=len(placement.slots) > 1,
            module=wire.Source(inline=request.module, size=len(request.module)),
            options=request.options,
            devices=devices,
            replicas=request.replicas,
            partitions=request.partitions,
            blob_path=str(self._blob_path(number)) if blob_for is not None and blob_for.shares_directory else "",
        )

    def _blob_path(self, number: int) -> pathlib.Path:
        return self._directory / f"program-{number}"

    def _unload(self, key: tuple[bytes, tuple[int, ...]], program: Program) -> None:
        del self._programs[key]
        self._dispatcher.dispatch(None, program.placement.slots, wire.ToWorker(unload=wire.Unload(programs=[program.number])))
        executable = program.executable
        executable.programs -= 1
        if executable.programs == 0:
            self._executables.pop(executable.key, None)
            numbers = [number for number, known in self._by_number.items() if known is executable]
            for number in numbers:
                del self._by_number[number], self._blobs[number]
                self._compilers.pop(number, None)
                self._blob_path(number).unlink(missing_ok=True)


def _key(request: CompileRequest, spanning: bool) -> bytes:
    digest = hashlib.sha256()
    for part in (request.module, request.options):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    digest.update(f"{request.replicas} {request.partitions} {spanning}".encode())
    return digest.digest()


def _failed(failure: Failure) -> asyncio.Future[wire.Source]:
    blob: asyncio.Future[wire.Source] = asyncio.get_running_loop().create_future()
    blob.set_exception(failure)
    blob.exception()  # not an error if nobody asks
    return blob


def _failure(report: wire.Compiled, field: str) -> Failure | None:
    if not report.HasField(field):
        return None
    error = getattr(report, field)
    return Failure(Code(error.code), error.message)


def _cost_analysis(described: wire.Described) -> dict[str, float] | Failure:
    if described.HasField("cost_analysis_error"):
        return Failure(Code(described.cost_analysis_error.code), described.cost_analysis_error.message)
    return {str(name): float(value) for name, value in json.loads(described.cost_analysis or "{}").items()}
