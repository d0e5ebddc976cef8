"""From host buffers to shards on workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from everstep.head.arrays import Array
from everstep.head.buffers import Buffer
from everstep.head.operations import Operation
from everstep.head.specs import ArraySpec, HostShard
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import invalid, unimplemented

if TYPE_CHECKING:
    from everstep.head.runtime import Runtime


def check(spec: ArraySpec, shards: Sequence[HostShard]) -> None:
    """Raises Failure (INVALID_ARGUMENT) unless every shard is given once."""
    count = len(spec.sharding.devices)
    given = sorted(index for shard in shards for index in shard.indices)
    if given != list(range(count)):
        raise invalid(f"an array of {count} shards must be given each shard once; given are {given}")
    if len({shard.shape for shard in shards}) > 1:
        raise unimplemented("an array whose shards have different shapes can't be made from host buffers")


def put(runtime: Runtime, array: Array, operation: Operation, shards: Sequence[HostShard], buffers: Sequence[Buffer]) -> None:
    """Tell the workers of `array` to make its shards. Buffers whose content is still on its way are announced when it comes."""
    spec, placement = array.spec, array.placement
    memory_kind = spec.sharding.memory_kind or ""
    messages = {
        slot: wire.ToWorker(put=wire.Put(array=array.id, dtype=spec.dtype, shape=shards[0].shape, memory_kind=memory_kind))
        for slot in placement.slots
    }
    late: list[tuple[Buffer, tuple[str, ...]]] = []
    for shard, buffer in zip(shards, buffers, strict=True):
        targets: dict[str, list[int]] = {}
        for index in shard.indices:
            device = spec.sharding.devices[index]
            targets.setdefault(placement.slot_of[device], []).append(device)
        for slot, devices in targets.items():
            messages[slot].put.shards.append(
                wire.HostShard(
                    devices=devices,
                    buffer=buffer.number,
                    data=_source(runtime, buffer, slot) if buffer.settled and buffer.failure is None else None,
                    byte_strides=shard.byte_strides or (),
                    has_strides=shard.byte_strides is not None,
                )
            )
        if buffer.failure is not None:
            operation.fail(buffer.failure)
        elif not buffer.settled:
            late.append((buffer, tuple(targets)))
    runtime.dispatcher.dispatch(operation, placement.slots, messages)
    for buffer, slots in late:
        _announce(runtime, operation, buffer, slots)


def _announce(runtime: Runtime, operation: Operation, buffer: Buffer, slots: Sequence[str]) -> None:
    def tell() -> None:
        messages = {slot: wire.ToWorker(buffer_ready=wire.BufferReady(buffer=buffer.number)) for slot in slots}
        for slot, message in messages.items():
            if buffer.failure is not None:
                message.buffer_ready.error.CopyFrom(wire.Error(code=buffer.failure.code, message=buffer.failure.message))
            else:
                message.buffer_ready.data.CopyFrom(_source(runtime, buffer, slot))
        runtime.dispatcher.follow_up(operation, slots, messages)

    buffer.when_settled(tell)


def _source(runtime: Runtime, buffer: Buffer, slot: str) -> wire.Source:
    return buffer.source(runtime.members.shares_directory(slot))
