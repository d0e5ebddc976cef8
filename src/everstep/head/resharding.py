"""How the shards of one layout are put together from those of another. Geometry only: no data, no devices touched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

from everstep.head.specs import ArraySpec, Box, Shape
from everstep.wire.errors import Failure, invalid


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """A part of a new shard: `box` of the source shard on `device` (None: all of it) goes to `to` in the new shard."""

    device: int
    box: Box | None
    to: Shape


def plan(source: ArraySpec, target: ArraySpec, distance: Callable[[int, int], int], lost: Collection[int] = ()) -> list[list[Piece]]:
    """For each shard of `target` the pieces of shards of `source` that fill it.

    distance(a, b): how far device a is from device b; among replicas the nearest is read. lost: devices whose shards are
    gone: they are read only where there is no replica.
    Raises Failure (INVALID_ARGUMENT) if the shapes differ, (UNIMPLEMENTED) if a cut is not known.
    """
    if source.shape != target.shape:
        raise invalid(f"resharding can't change the shape {source.shape} to {target.shape}")
    if source.sharding.tiles is None or target.sharding.tiles is None:
        return _shard_by_shard(source, target)
    replicas: dict[Box, list[int]] = {}
    for device, box in zip(source.sharding.devices, source.sharding.boxes(source.shape), strict=True):
        replicas.setdefault(box, []).append(device)
    plans = []
    for device, box in zip(target.sharding.devices, target.sharding.boxes(target.shape), strict=True):
        pieces = []
        for held, devices in replicas.items():
            common = held.intersect(box)
            if common is None:
                continue
            nearest = min(devices, key=lambda candidate: (candidate in lost, distance(candidate, device)))
            inside = common.relative_to(held)
            pieces.append(Piece(nearest, None if inside.size == held.size else inside, common.relative_to(box).start))
        plans.append(pieces)
    return plans


def _shard_by_shard(source: ArraySpec, target: ArraySpec) -> list[list[Piece]]:
    """Where the cut is not known: the same number of shards, each moved as a whole."""
    devices = source.sharding.devices
    if len(devices) != len(target.sharding.devices):
        # The sharding that is not known can't be laid out otherwise.
        unknown = source if source.sharding.tiles is None else target
        try:
            unknown.sharding.boxes(unknown.shape)
        except Failure as failure:
            raise failure from None
    return [[Piece(device, None, ())] for device in devices]
