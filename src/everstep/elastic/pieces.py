"""Arrays in pieces: where copies of their shards go, and how an array is put together again from the shards that are left."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, Sharding, SingleDeviceSharding

from everstep.elastic.slices import Slice

Box: TypeAlias = tuple[tuple[int, int], ...]  # start and stop in each dimension


class MissingError(Exception):
    """A part of an array is on no device that is left."""


@dataclasses.dataclass(frozen=True, slots=True)
class Copied:
    """A leaf of a state. made: its copies; of what is no array of JAX, itself. key_impl: of random keys, whose numbers were copied."""

    made: list[Any]
    key_impl: Any = None


def copy(leaves: Sequence[Any], memory_kind: str, slices: Sequence[Slice]) -> list[Copied]:
    """Copies of leaves in another kind of memory, under way: one in its place and, if a part of it is on one slice only, one a slice on.

    slices: among which to go on; none: no second copies. JAX is asked twice for all of them: asking for each costs more than copying.
    """
    keys = [isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves]
    plain = [jax.random.key_data(leaf) if is_key else leaf for leaf, is_key in zip(leaves, keys, strict=True)]
    arrays = {number: leaf for number, leaf in enumerate(plain) if isinstance(leaf, jax.Array)}
    places = {number: leaf.sharding.with_memory_kind(memory_kind) for number, leaf in arrays.items()}
    made = {number: [one] for number, one in zip(arrays, _put(list(arrays.values()), list(places.values())), strict=True)}
    beside = {
        number: there
        for number, leaf in arrays.items()
        if (there := _next_slice(places[number], slices)) is not None and _is_anywhere_alone(leaf)
    }
    for number, one in zip(beside, _put_beside([arrays[number] for number in beside], list(beside.values())), strict=True):
        made[number].append(one)
    return [
        Copied(made[number], jax.random.key_impl(leaves[number]) if keys[number] else None)
        if number in made
        else Copied([np.array(leaf) if isinstance(leaf, np.ndarray) else leaf])
        for number, leaf in enumerate(plain)
    ]


def _put(arrays: list[Any], places: list[Any]) -> list[jax.Array]:
    return list(jax.device_put(arrays, places, may_alias=False)) if arrays else []


def _put_beside(arrays: Sequence[jax.Array], shardings: Sequence[Sharding]) -> list[jax.Array]:
    """Shard by shard: JAX can't move whole arrays to another order of devices and kind of memory at once."""
    parts, places, counts = [], [], []
    for array, sharding in zip(arrays, shardings, strict=True):
        indices = sharding.addressable_devices_indices_map(array.shape)
        boxes = {_box(shard.index, array.shape): shard.data for shard in array.addressable_shards}
        parts += [boxes[_box(index, array.shape)] for index in indices.values()]
        places += [SingleDeviceSharding(device, memory_kind=sharding.memory_kind) for device in indices]
        counts.append(len(indices))
    there = iter(_put(parts, places))
    return [
        jax.make_array_from_single_device_arrays(array.shape, sharding, list(itertools.islice(there, count)))
        for array, sharding, count in zip(arrays, shardings, counts, strict=True)
    ]


def rebuild(copied: Copied, sharding: Sharding, up: Collection[int]) -> Any:
    """The array on the devices of `sharding`, from the shards of its copies that are on slices in `up`.

    Raises MissingError if a part of it is nowhere.
    """
    first = copied.made[0]
    if not isinstance(first, jax.Array):
        return first
    if copied.key_impl is not None:
        data = rebuild(Copied(copied.made), _of_key_data(sharding, first), up)
        return jax.random.wrap_key_data(data, impl=copied.key_impl)
    found: dict[Box, list[jax.Array]] = {}
    for each in copied.made:
        for shard in each.addressable_shards:
            if _slice_of(shard.device) in up:
                found.setdefault(_box(shard.index, first.shape), []).append(shard.data)
    parts = []
    for device, index in sharding.addressable_devices_indices_map(first.shape).items():
        box = _box(index, first.shape)
        there = SingleDeviceSharding(device, memory_kind=sharding.memory_kind)
        if box in found:
            nearest = min(found[box], key=lambda piece: _distance(piece, device))
            parts.append(jax.device_put(nearest, there))
        else:
            parts.append(_put_together(found, box, there, first))
    return jax.make_array_from_single_device_arrays(first.shape, sharding, parts)


def _next_slice(sharding: Sharding, slices: Sequence[Slice]) -> Sharding | None:
    """The same sharding with each device replaced by the one in its place in the next slice that is used; None if that can't be."""
    if not isinstance(sharding, NamedSharding):
        return None
    devices = sharding.mesh.devices
    used = {_slice_of(device) for device in devices.flat}
    among = [each for each in slices if each.index in used]
    if len(among) < 2 or len({len(each.devices) for each in among}) > 1:
        return None
    following = {
        device: other
        for each, after in zip(among, [*among[1:], among[0]], strict=True)
        for device, other in zip(each.devices, after.devices, strict=True)
    }
    moved = np.vectorize(following.__getitem__, otypes=[object])(devices)
    mesh = jax.sharding.Mesh(moved, sharding.mesh.axis_names, axis_types=sharding.mesh.axis_types)
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


def _is_anywhere_alone(leaf: jax.Array) -> bool:
    """Whether a part of it is on one slice only."""
    holders: dict[Box, set[int]] = {}
    for device, index in leaf.sharding.devices_indices_map(leaf.shape).items():
        holders.setdefault(_box(index, leaf.shape), set()).add(_slice_of(device))
    return any(len(each) == 1 for each in holders.values())


def _put_together(found: dict[Box, list[jax.Array]], box: Box, there: SingleDeviceSharding, like: jax.Array) -> jax.Array:
    """A shard that no copy has as it is, from parts of shards that overlap it."""
    overlaps = {held: common for held in found if (common := _intersection(held, box)) is not None}
    covered = sum(_volume(common) for common in overlaps.values())
    if covered < _volume(box):
        raise MissingError(f"an array of shape {like.shape} lacks a part of {box}")
    sources = [jax.device_put(found[held][0], there) for held in overlaps]
    cuts = tuple(
        (
            tuple(start - low for (start, _), (low, _) in zip(common, held, strict=True)),
            tuple(stop - start for start, stop in common),
            tuple(start - low for (start, _), (low, _) in zip(common, box, strict=True)),
        )
        for held, common in overlaps.items()
    )
    result: jax.Array = _assemble(sources, cuts, tuple(stop - start for start, stop in box))
    placed: jax.Array = jax.device_put(result, there)
    return placed


@functools.partial(jax.jit, static_argnums=(1, 2))
def _assemble(sources: list[jax.Array], cuts: Any, shape: tuple[int, ...]) -> jax.Array:
    """cuts: of each source where it begins, how much, and where that goes."""
    whole = jnp.zeros(shape, sources[0].dtype)
    for source, (start, size, to) in zip(sources, cuts, strict=True):
        part = jax.lax.slice(source, start, tuple(a + b for a, b in zip(start, size, strict=True)))
        whole = jax.lax.dynamic_update_slice(whole, part, to)
    return whole


def _of_key_data(sharding: Sharding, data: jax.Array) -> Sharding:
    """For the numbers behind random keys, which have a dimension more."""
    if isinstance(sharding, NamedSharding):
        spec = [*sharding.spec, *[None] * (data.ndim - len(sharding.spec))]
        return NamedSharding(sharding.mesh, jax.sharding.PartitionSpec(*spec), memory_kind=sharding.memory_kind)
    return sharding


def _slice_of(device: jax.Device) -> int:
    return int(getattr(device, "slice_index", 0) or 0)


def _distance(piece: jax.Array, device: jax.Device) -> int:
    (holder,) = piece.devices()
    return 0 if holder == device else 1 if _slice_of(holder) == _slice_of(device) else 2


def _box(index: Any, shape: tuple[int, ...]) -> Box:
    return tuple((cut.start or 0, extent if cut.stop is None else cut.stop) for cut, extent in zip(index, shape, strict=True))


def _intersection(a: Box, b: Box) -> Box | None:
    common = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return common if all(start < stop for start, stop in common) else None


def _volume(box: Box) -> int:
    return math.prod(stop - start for start, stop in box)
