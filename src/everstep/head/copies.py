"""From shards to shards: on the same worker, or straight from one worker to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from everstep.head.arrays import Array
from everstep.head.operations import Operation
from everstep.head.resharding import Piece
from everstep.wire import channel_pb2 as wire

if TYPE_CHECKING:
    from everstep.head.runtime import Runtime


def build(runtime: Runtime, operation: Operation, source: Array, result: Array, pieces: Sequence[Sequence[Piece]]) -> None:
    """Tell the workers of `result` to put its shards together: `pieces[i]` of shards of `source` make shard i."""
    spec, placement = result.spec, result.placement
    memory_kind = spec.sharding.memory_kind or ""
    messages = {
        slot: wire.ToWorker(build=wire.Build(array=result.id, dtype=spec.dtype, memory_kind=memory_kind)) for slot in placement.slots
    }
    for device, shape, parts in zip(spec.sharding.devices, spec.sharding.shapes(spec.shape), pieces, strict=True):
        shard = messages[placement.slot_of[device]].build.shards.add(device=device, shape=shape)
        for part in parts:
            shard.pieces.add(
                **{"from": wire.ShardRef(array=source.id, device=part.device)},
                box=wire.Box(start=part.box.start, size=part.box.size) if part.box is not None else None,
                to=part.to,
            )
    runtime.dispatcher.dispatch(operation, placement.slots, messages, lambda: _address(runtime, source, messages))


def _address(runtime: Runtime, source: Array, messages: Mapping[str, wire.ToWorker]) -> None:
    """Fill in where to read the shards that other workers hold. Raises Failure (DATA_LOSS) if one of these is away."""
    for slot, message in messages.items():
        for shard in message.build.shards:
            for piece in shard.pieces:
                holder = source.placement.slot_of[getattr(piece, "from").device]
                if holder != slot:
                    member = runtime.members.up(holder)
                    if member is None:
                        raise runtime.members.away(holder)
                    piece.bulk_address = member.bulk_address
