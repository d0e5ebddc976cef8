"""Programs: compiled or loaded for the devices of one world, and started on arrays."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
from everstep.wire.errors import Failure, invalid, unimplemented
from everstep.worker import hlo, xla
from everstep.worker.arrays import Stored
from everstep.worker.callbacks import Callbacks, Function
from everstep.worker.execution import Execution
from everstep.worker.reports import Reporter
from everstep.worker.world import Placement, World

_CALLBACKS = "everstep.host_callbacks"  # attribute of a module: ids of its host callbacks, in the order of their indices


class Program:
    """A program that can be started."""

    def __init__(
        self,
        name: str,
        module: bytes,
        placement: Placement,
        executable: xla.Executable,
        outputs: Sequence[wire.ShardInfo],
        donated: Collection[int],
        callbacks: Sequence[Function],
    ) -> None:
        """module: the compiled one, xla.HloModuleProto. outputs: what each device holds of each result. callbacks: stand for the host
        callbacks it may call.

        meets: its devices may wait for each other.
        """
        self.name = name
        self.placement = placement
        self.executable = executable
        self.callbacks = tuple(callbacks)
        if callbacks:
            results = hlo.callback_results(module)
            for index, callback in enumerate(callbacks):
                callback.results = results.get(index)
        self.meets = bool(callbacks) or hlo.has_collectives(module)
        self._takes_turns = placement.world.takes_turns(placement, self.meets)
        self._is_counted = self._takes_turns or placement.spans_workers
        self._may_follow = placement.world.can_follow and not callbacks
        self.donated = frozenset(donated)
        local = placement.local
        self._outputs = [(output.dtype, output.memory_kind or None, _shard_bytes(output, len(local.devices))) for output in outputs]
        self._handlers = [xla.result_handler(_aval(output), local.sharding(output.memory_kind or None)) for output in outputs]

    def serialize(self) -> bytes:
        """The executable, for other workers to load. Raises Failure (UNIMPLEMENTED), errors of XLA."""
        if self.callbacks and len(self.placement.local.devices) > 1 and xla.VERSION < (0, 12):
            # With tokens (ordered effects) it would end this process: jaxlib 0.10.2 dereferences a layout that tokens don't have.
            raise unimplemented("this jaxlib can't serialize programs with host callbacks over several devices")
        return bytes(self.executable.serialize())

    @property
    def waits_for_peers(self) -> bool:
        """Whether its devices may wait for those of other workers."""
        return self.meets and self.placement.spans_workers

    def must_wait(self, arguments: Sequence[Stored], keep: Collection[int]) -> bool:
        """Whether another program must end before it can be started."""
        return bool(self._before(arguments, keep)) or self.must_adopt(arguments)

    def await_turn(self, arguments: Sequence[Stored], keep: Collection[int]) -> None:
        """Wait until those have ended that must have before `run`."""
        while before := self._before(arguments, keep):  # again: another may have overtaken it meanwhile
            for execution in before:
                execution.ended.wait()

    def must_adopt(self, arguments: Sequence[Stored]) -> bool:
        """Whether an argument is still to be computed by a program of another world, without which it can't be taken over."""
        world = self.placement.world
        return any(stored.world is not world and not stored.is_ready() for stored in arguments)

    def run(
        self, arguments: Sequence[Stored], keep: Collection[int], failing: Callable[[Failure], None] | None = None
    ) -> tuple[list[Stored], Execution]:
        """Start it: it must be its turn. Returns the results, which may be long in coming, and what ends when they are there.

        keep: indices of arguments whose memory it must not take over. failing: called when a host callback has failed on one device of a
        program that spans workers: the others may be waiting for that device, and for ever. Raises Failure, errors of XLA.
        """
        local = self.placement.local
        world = local.world
        world.check()
        joined = []
        for index, stored in enumerate(arguments):
            # Not all versions of XLA survive an argument that is gone.
            whole = stored.whole if stored.local is local and stored.whole is not None else _join(self, index, stored)
            if whole.is_deleted():
                raise invalid(f"argument {index} of {self.name} was donated to another program and is no longer there")
            joined.append(whole)
        for index in keep:
            if index in self.donated:
                joined[index] = self._copy(joined[index], arguments[index].memory_kind)
        if self.placement.spans_workers:  # and no other run of it is under way
            for callback in self.callbacks:
                callback.on_failure = failing
        me = threading.get_ident()
        world.launching.add(me)
        try:
            results = self.executable.execute_sharded(joined, with_tokens=True)
        finally:
            world.launching.discard(me)
        execution = Execution(world, local.devices, results.consume_token())
        world.executions.add(execution)
        wholes = results.consume_with_handlers(self._handlers)
        stored_results = [
            Stored.of_whole(dtype, kind, local, whole, size) for (dtype, kind, size), whole in zip(self._outputs, wholes, strict=True)
        ]
        if not self.callbacks:  # nothing follows those
            for result in stored_results:
                result.made_by = execution.number
        if self._is_counted:
            # Of those whose memory it must not take over it has read copies.
            copied = self.donated.intersection(keep)
            read = [] if self.callbacks else [stored for index, stored in enumerate(arguments) if index not in copied]
            world.turns.started(execution, read, takes_turns=self._takes_turns)
        return stored_results, execution

    def _before(self, arguments: Sequence[Stored], keep: Collection[int]) -> list[Execution]:
        """What must have ended before it is started."""
        if not self._is_counted:
            return []
        turns, devices = self.placement.world.turns, self.placement.local.devices
        if not self._takes_turns:
            return turns.too_many()
        return turns.too_many() + turns.before(devices, arguments, self.donated.difference(keep), may_follow=self._may_follow)

    def _copy(self, whole: xla.Buffer, memory_kind: str | None) -> xla.Buffer:
        """Shard by shard: XLA takes the result of a program that spans workers for an array on all their devices."""
        local = self.placement.local
        copies = []
        for device, shard in zip(local.devices, xla.shards(whole), strict=True):
            alone = local.world.locals((device,))
            copies.append(xla.copy(shard, alone.device_list, alone.sharding(memory_kind)))
        return xla.join(xla.Aval(copies[0].shape, copies[0].dtype), local.sharding(memory_kind), copies)


class Compiler:
    """Makes programs of what the head sends, in the threads of whoever calls."""

    def __init__(self, callbacks: Callbacks, stand_in: Callable[[Sequence[int]], World]) -> None:
        """stand_in: makes a world with devices under these ids, for programs whose own devices are away."""
        self._callbacks = callbacks
        self._stand_in = stand_in

    def compile(self, world: World | None, message: wire.Compile, artifact: bytes) -> tuple[Program, wire.Compiled]:
        """world: None to compile for devices that are away. Raises Failure, errors of XLA."""
        hlo.check_portable(artifact)
        if world is None:
            world = self._stand_in(message.devices)
        placement = world.placement(message.devices)
        options = self._options(placement, message, message.spans_workers or placement.spans_workers)
        module = xla.parse(artifact)
        with module.context:
            names = _host_callbacks(module)
            globals_ = [hlo.output_type(type_) for type_ in _main(module).type.results]
            callbacks = [self._callbacks.function(name, world) for name in names]
            executable = xla.compile_program(world.client, module, placement.device_list, options, callbacks)
        report = wire.Compiled(callbacks=names)
        compiled = xla.program_shape(executable)
        donated = describe(executable, compiled, globals_, report)
        outputs = [wire.ShardInfo(dtype=each.dtype, shape=each.shard_shape, memory_kind=each.memory_kind) for each in report.outputs]
        return Program(*compiled[:2], placement, executable, outputs, donated, callbacks), report

    def load(self, world: World, message: wire.Load, blob: bytes) -> Program:
        """Raises Failure, errors of XLA."""
        placement = world.placement(message.devices)
        options = self._options(placement, message, placement.spans_workers)
        callbacks = [self._callbacks.function(name, world) for name in message.callbacks]
        executable = xla.load_program(world.client, blob, placement.device_list, options, callbacks)
        name, module, _, _ = xla.program_shape(executable)
        return Program(name, module, placement, executable, message.outputs, hlo.donated(module), callbacks)

    def _options(self, placement: Placement, message: wire.Compile | wire.Load, spans_workers: bool) -> xla.Options:
        world = placement.world
        options = xla.parse_options(message.options, world.assignment(placement, message.replicas, message.partitions))
        world.tune(options, spans_workers)
        return options


def describe(
    executable: xla.Executable, compiled: xla.ProgramShape, outputs: Sequence[tuple[str, tuple[int, ...]]], report: wire.Compiled
) -> tuple[int, ...]:
    """Fill in what is known of a compiled program; returns the numbers of its donated parameters.

    outputs: dtype and global shape of each result.
    """
    report.name, module, parameters, results = compiled
    report.fingerprint = executable.fingerprint or b""
    report.code_size = executable.size_of_generated_code_in_bytes()
    donated = hlo.donated(module)
    report.donated.extend(donated)
    parameter_shardings, output_shardings = executable.get_parameter_shardings(), executable.get_output_shardings()
    if parameter_shardings is not None:
        report.has_parameter_shardings = True
        report.parameter_shardings.extend(sharding.SerializeToString() for sharding in parameter_shardings)
    if output_shardings is not None:
        report.has_output_shardings = True
        report.output_shardings.extend(sharding.SerializeToString() for sharding in output_shardings)
    report.parameter_layouts.extend(hlo.layout(shape.to_serialized_proto()) for shape in parameters)
    report.output_layouts.extend(hlo.layout(shape.to_serialized_proto()) for shape in results)
    kinds = executable.get_output_memory_kinds()
    for (dtype, shape), shard, kind in zip(outputs, results, kinds[0] if kinds else (), strict=True):
        shard_shape = () if dtype == dtypes.TOKEN else shard.dimensions()
        report.outputs.add(dtype=dtype, shape=shape, shard_shape=shard_shape, memory_kind=kind)
    try:
        report.memory_stats = hlo.memory_stats(executable.get_compiled_memory_stats())
    except Exception as error:
        report.memory_stats_error.CopyFrom(Reporter.error(xla.failure(error)))
    return donated


def analyse(program: Program, message: wire.Describe, report: wire.Described) -> None:
    """Answer questions that are rarely asked."""
    if message.cost_analysis:
        try:
            costs = program.executable.cost_analysis()
            report.cost_analysis = json.dumps({name: float(value) for name, value in costs.items() if isinstance(value, (int, float))})
        except Exception as error:
            report.cost_analysis_error.CopyFrom(Reporter.error(xla.failure(error)))
    if message.hlo_text:
        report.hlo_text = program.executable.get_hlo_text()


def _join(program: Program, index: int, stored: Stored) -> xla.Buffer:
    try:
        return stored.joined(program.placement.local)
    except Failure as failure:
        raise Failure(failure.code, f"argument {index} of {program.name}: {failure.message}") from None


def _main(module: Any) -> Any:
    for operation in module.body.operations:
        if operation.operation.name == "func.func" and str(operation.attributes["sym_name"]) == '"main"':
            return operation
    raise invalid("the program has no function main")


def _host_callbacks(module: Any) -> list[str]:
    attributes = module.operation.attributes
    if _CALLBACKS not in attributes:
        return []
    return [name.value for name in attributes[_CALLBACKS]]


def _aval(output: wire.ShardInfo) -> xla.Aval:
    if output.dtype == dtypes.TOKEN:
        return xla.Aval((0,), dtypes.to_numpy("pred"))
    return xla.Aval(output.shape, dtypes.to_numpy(output.dtype))


def _shard_bytes(output: wire.ShardInfo, shards: int) -> int:
    size = dtypes.host_itemsize(output.dtype) * shards
    for extent in output.shape:
        size *= extent
    return size
