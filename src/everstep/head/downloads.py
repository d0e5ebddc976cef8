"""From shards on workers to a host buffer."""

from __future__ import annotations

import math
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from everstep.head.arrays import Array
from everstep.head.buffers import INLINE, Buffer
from everstep.head.specs import Box
from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
from everstep.wire.errors import Failure, invalid

if TYPE_CHECKING:
    from everstep.head.runtime import Runtime


def extent(array: Array, byte_strides: tuple[int, ...] | None) -> int:
    """Bytes of the smallest buffer that holds the array with these strides. Raises Failure (INVALID_ARGUMENT) for impossible ones."""
    shape, itemsize = array.spec.shape, dtypes.host_itemsize(array.spec.dtype)
    if byte_strides is None:
        return math.prod(shape) * itemsize
    if len(byte_strides) != len(shape):
        raise invalid(f"{len(byte_strides)} byte strides for an array of {len(shape)} dimensions")
    if 0 in shape:
        return 0
    return sum((n - 1) * abs(stride) for n, stride in zip(shape, byte_strides, strict=True)) + itemsize


def fetch(runtime: Runtime, array: Array, buffer: Buffer, byte_strides: tuple[int, ...] | None) -> Awaitable[None]:
    """Dispatch the copy now. Await it for the data to be in `buffer`; it raises the Failure if that can't be."""
    size = extent(array, byte_strides)
    pieces = _pieces(array)
    by_slot: dict[str, list[tuple[int, Box | None]]] = {}
    for device, box in pieces:
        by_slot.setdefault(array.placement.slot_of[device], []).append((device, box))
    operation = runtime.dispatcher.operation("get", by_slot)
    operation.follow(array)
    inline = array.spec.dtype in (dtypes.STRING, dtypes.TOKEN) or (len(pieces) == 1 and size <= INLINE)
    failure = next((array.failures[device] for device, _ in pieces if device in array.failures), None) if array.failures else None
    if failure is not None:
        operation.fail(failure)
    reply = runtime.dispatcher.reply_to(operation)
    path = None
    try:
        if not inline and failure is None and size:
            path = buffer.new_file(size)
    except Failure as no_room:
        operation.fail(no_room)
    messages = {}
    for slot, held in by_slot.items():
        get = wire.Get(
            array=array.id,
            buffer=buffer.number,
            size=size,
            shape=array.spec.shape,
            byte_strides=byte_strides if byte_strides is not None else _dense(array),
        )
        if path is not None and runtime.members.shares_directory(slot):
            get.path = str(path)
        elif path is not None:
            get.bulk.CopyFrom(wire.Bulk(key=f"buffer/{buffer.number}"))
        for device, box in held:
            get.pieces.add(device=device, box=wire.Box(start=box.start, size=box.size) if box is not None else None)
        messages[slot] = wire.ToWorker(get=get)
    runtime.dispatcher.dispatch(operation, by_slot, messages)

    async def wait() -> None:
        try:
            await operation.done()
        except Failure as error:
            buffer.fail(error)
            raise
        if path is not None:
            buffer.fill_from(path, size)
        else:
            buffer.fill(reply.result().got.data if inline else b"")

    return wait()


def _dense(array: Array) -> tuple[int, ...]:
    strides, stride = [], dtypes.host_itemsize(array.spec.dtype)
    for n in reversed(array.spec.shape):
        strides.append(stride)
        stride *= max(n, 1)
    return tuple(reversed(strides))


def _pieces(array: Array) -> list[tuple[int, Box | None]]:
    """Shards that together are the array: of replicas one that is not lost, if there is one."""
    sharding = array.spec.sharding
    failures = array.failures or {}
    if len(sharding.devices) == 1:
        return [(sharding.devices[0], Box((0,) * len(array.spec.shape), array.spec.shape))]
    chosen: dict[Box, int] = {}
    for device, box in zip(sharding.devices, sharding.boxes(array.spec.shape), strict=True):
        if box not in chosen or (chosen[box] in failures and device not in failures):
            chosen[box] = device
    return [(device, box) for box, device in chosen.items()]
