"""XLA's own description of a cut: which part of an array each position of a device list holds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from everstep.head.specs import Shape
from everstep.wire.errors import invalid, unimplemented
from everstep.wire.ifrt import xla_pb2 as xla

_Type = xla.OpSharding
_SEVERAL_VALUES = (_Type.MANUAL, _Type.UNREDUCED)  # shards that lie in the same place are not copies of each other


@dataclasses.dataclass(frozen=True, slots=True)
class Cut:
    """tiles: number of tiles per dimension, () for one tile. tile_of: the tile (row-major number) of each shard.

    distinct: shards with one tile may still differ (manual and unreduced shardings), so tiles only tell the shapes.
    """

    tiles: Shape
    tile_of: tuple[int, ...]
    distinct: bool = False


def cut(sharding: xla.OpSharding, shards: int) -> Cut:
    """How `sharding` cuts an array into that many shards.

    Raises Failure: INVALID_ARGUMENT if it is not for so many shards or contradicts itself, UNIMPLEMENTED for unknown cuts.
    """
    if sharding.HasField("named_sharding"):
        return _cut_by_mesh(sharding.named_sharding, shards)
    match sharding.type:
        case _Type.REPLICATED:
            return Cut((), (0,) * shards)
        case _Type.OTHER:
            return _cut_by_tiles(sharding, shards)
        case _Type.MANUAL | _Type.UNREDUCED:
            return Cut((), (0,) * shards, distinct=shards > 1)
        case _Type.MAXIMAL:  # results of host callbacks, say: computed for one device, given to all
            return Cut((), (0,) * shards)
        case kind:
            raise unimplemented(f"a sharding of type {_name(kind)} over {shards} devices does not say what each of them holds")


def _cut_by_tiles(sharding: xla.OpSharding, shards: int) -> Cut:
    dims = tuple(sharding.tile_assignment_dimensions)
    meanings = list(sharding.last_tile_dims) or [_Type.REPLICATED] * sharding.replicate_on_last_tile_dim
    if min(dims, default=1) < 1 or math.prod(dims) != shards:
        raise invalid(f"a tile assignment of {dims} is not for {shards} devices")
    if len(meanings) > len(dims):
        raise invalid(f"a tile assignment of {dims} has no {len(meanings)} trailing dimensions")
    rank = len(dims) - len(meanings)
    copies = math.prod(dims[rank:])
    distinct = any(size > 1 and meaning in _SEVERAL_VALUES for size, meaning in zip(dims[rank:], meanings, strict=True))
    order = _order(sharding.tile_assignment_devices, sharding.iota_reshape_dims, sharding.iota_transpose_perm, shards)
    tile_of = np.empty(shards, dtype=np.int64)
    tile_of[order] = np.arange(shards) // copies
    return _cut(dims[:rank], tile_of, distinct)


def _cut_by_mesh(sharding: xla.NamedSharding, shards: int) -> Cut:
    mesh = sharding.mesh
    sizes = [axis.size for axis in mesh.axes]
    if not sizes and len(mesh.device_ids) <= 1:  # no mesh: replicated, or on one device
        if mesh.device_ids and shards > 1:
            raise unimplemented("a sharding on one device of several does not say what the others hold")
        return Cut((), (0,) * shards)
    if min(sizes, default=0) < 1 or math.prod(sizes) != shards:
        raise invalid(f"a mesh of {sizes} is not for {shards} devices")
    order = _order(mesh.device_ids, mesh.iota_transform.reshape_dims, mesh.iota_transform.transpose_perm, shards)
    coordinates = np.unravel_index(np.arange(shards), sizes)

    def part(axis: xla.AxisRef) -> tuple[int, np.ndarray]:
        """How many parts an axis has, and in which of them each place of the mesh lies."""
        if not 0 <= axis.mesh_axis_index < len(sizes):
            raise invalid(f"a mesh of {len(sizes)} axes has no axis {axis.mesh_axis_index}")
        size, coordinate = sizes[axis.mesh_axis_index], coordinates[axis.mesh_axis_index]
        if not axis.HasField("sub_axis_info"):
            return size, coordinate
        before, here = axis.sub_axis_info.pre_size, axis.sub_axis_info.size
        if before < 1 or here < 1 or size % (before * here):
            raise invalid(f"an axis of size {size} has no part {before} x {here}")
        return here, coordinate // (size // (before * here)) % here

    tiles: list[int] = []
    tile_at = np.zeros(shards, dtype=np.int64)
    for dimension in sharding.dim_shardings:
        tiles.append(1)
        for axis in dimension.axes:
            size, place = part(axis)
            tiles[-1] *= size
            tile_at = tile_at * size + place
    tile_of = np.empty(shards, dtype=np.int64)
    tile_of[order] = tile_at
    distinct = any(part(axis)[0] > 1 for axis in (*sharding.manual_axes, *sharding.unreduced_axes))
    return _cut(tuple(tiles), tile_of, distinct)


def _order(explicit: Sequence[int], reshape: Sequence[int], transpose: Sequence[int], count: int) -> np.ndarray:
    """The devices in the order of an assignment: given one by one, or as a transposed iota, or plainly counted."""
    if explicit:
        order = np.asarray(explicit, dtype=np.int64)
        if not np.array_equal(np.sort(order), np.arange(count)):
            raise invalid(f"a sharding over {count} devices must name each of them once")
        return order
    if not reshape:
        return np.arange(count)
    if min(reshape) < 1 or math.prod(reshape) != count or sorted(transpose) != list(range(len(reshape))):
        raise invalid(f"an assignment of {count} devices can't be {list(reshape)} transposed by {list(transpose)}")
    return np.arange(count).reshape(reshape).transpose(transpose).reshape(-1)


def _cut(tiles: Shape, tile_of: np.ndarray, distinct: bool) -> Cut:
    return Cut(tiles if math.prod(tiles) > 1 else (), tuple(tile_of.tolist()), distinct)


def _name(kind: int) -> str:
    return _Type.Type.Name(kind) if kind in _Type.Type.values() else str(kind)
