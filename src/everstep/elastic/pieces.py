"""Arrays in pieces: how one is put together again from those shards of its copies that are left."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Sharding, SingleDeviceSharding

from everstep.elastic import copying
from everstep.elastic.copying import Box, Copied


class MissingError(Exception):
    """A part of an array is on no device that is left."""


def rebuild(copied: Copied, sharding: Sharding, up: Collection[jax.Device]) -> Any:
    """The array on the devices of `sharding`, from the shards of its copies that are on devices in `up`.

    Raises MissingError if a part of it is nowhere.
    """
    made = copied.made
    if not isinstance(made, jax.Array):
        return made
    if copied.key_impl is not None:
        data = rebuild(dataclasses.replace(copied, key_impl=None), copying.of_key_data(sharding, made.ndim), up)
        return jax.random.wrap_key_data(data, impl=copied.key_impl)
    found: dict[Box, list[jax.Array]] = {}
    for box, device, piece in copied.shards():
        if device in up:
            found.setdefault(box, []).append(piece)
    parts = []
    for device, index in sharding.addressable_devices_indices_map(made.shape).items():
        box = copying.box(index, made.shape)
        there = SingleDeviceSharding(device, memory_kind=sharding.memory_kind)
        if box in found:
            nearest = min(found[box], key=lambda piece: _distance(piece, device))
            parts.append(jax.device_put(nearest, there))
        else:
            parts.append(_put_together(found, box, there, made))
    return jax.make_array_from_single_device_arrays(made.shape, sharding, parts)


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


def _distance(piece: jax.Array, device: jax.Device) -> int:
    (holder,) = piece.devices()
    if holder == device:
        return 0
    return 1 if getattr(holder, "slice_index", 0) == getattr(device, "slice_index", 0) else 2


def _intersection(a: Box, b: Box) -> Box | None:
    common = tuple((max(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True))
    return common if all(start < stop for start, stop in common) else None


def _volume(box: Box) -> int:
    return math.prod(stop - start for start, stop in box)
