"""Arrays in pieces: how they are put together again from those shards of their copies that are left."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Sharding, SingleDeviceSharding

from everstep.elastic import copying
from everstep.elastic.copying import Box, Copied


class MissingError(Exception):
    """A part of an array is on no device that is left."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Shard:
    """One to be made. sources: shards of copies. cuts: of each source where it begins, how much, and where that goes; None: it is all."""

    place: SingleDeviceSharding
    shape: tuple[int, ...]
    sources: list[Any]
    cuts: tuple[Any, ...] | None = None

    @property
    def way(self) -> SingleDeviceSharding:
        """Where its sources are to go: programs take them from device memory only."""
        (device,) = self.place.device_set
        return self.place if self.cuts is None else SingleDeviceSharding(device)

    def made_from(self, sources: list[jax.Array]) -> jax.Array:
        """sources: moved to its place."""
        if self.cuts is None:
            return sources[0]
        with copying.no_mesh():
            made: jax.Array = jax.device_put(_assemble(sources, self.cuts, self.shape), self.place)
        return made


def rebuild(leaves: Sequence[Copied], shardings: Sequence[Sharding], up: Collection[jax.Device]) -> list[Any]:
    """The arrays on the devices of `shardings`, from the shards of their copies that are on devices in `up`.

    JAX is asked once for all that has to move. Raises MissingError if a part of one is nowhere.
    """
    shards = [list(_shards(copied, sharding, up)) for copied, sharding in zip(leaves, shardings, strict=True)]
    moves = [(source, shard.way) for each in shards for shard in each for source in shard.sources]
    moved = iter(jax.device_put([source for source, _ in moves], [way for _, way in moves], may_alias=False) if moves else ())
    return [
        _array(copied, sharding, [shard.made_from(list(itertools.islice(moved, len(shard.sources)))) for shard in each])
        if isinstance(copied.made, jax.Array)
        else copying.kept(copied.made)
        for copied, sharding, each in zip(leaves, shardings, shards, strict=True)
    ]


def _array(copied: Copied, sharding: Sharding, shards: list[jax.Array]) -> jax.Array:
    array = jax.make_array_from_single_device_arrays(copied.made.shape, sharding, shards)
    return array if copied.key_impl is None else jax.random.wrap_key_data(array, impl=copied.key_impl)


def _shards(copied: Copied, sharding: Sharding, up: Collection[jax.Device]) -> Iterator[_Shard]:
    """Those that the array is to have, each from the nearest copy of it, or from parts of those that overlap it."""
    if not isinstance(copied.made, jax.Array):
        return
    found: dict[Box, list[jax.Array]] = {}
    for box, device, piece in copied.shards():
        if device in up:
            found.setdefault(box, []).append(piece)
    for device, index in sharding.addressable_devices_indices_map(copied.made.shape).items():
        box = copying.box(index, copied.made.shape)
        place = SingleDeviceSharding(device, memory_kind=sharding.memory_kind)
        shape = tuple(stop - start for start, stop in box)
        if not _volume(box):
            yield _Shard(place, shape, [np.zeros(shape, copied.made.dtype)])
            continue
        if box in found:
            yield _Shard(place, shape, [min(found[box], key=lambda piece: _distance(piece, device))])
            continue
        overlaps = {held: common for held in found if (common := _intersection(held, box)) is not None}
        if sum(map(_volume, overlaps.values())) < _volume(box):
            raise MissingError(f"an array of shape {copied.made.shape} lacks a part of {box}")
        cuts = tuple(
            (
                tuple(start - low for (start, _), (low, _) in zip(common, held, strict=True)),
                tuple(stop - start for start, stop in common),
                tuple(start - low for (start, _), (low, _) in zip(common, box, strict=True)),
            )
            for held, common in overlaps.items()
        )
        yield _Shard(place, shape, [found[held][0] for held in overlaps], cuts)


@functools.partial(jax.jit, static_argnums=(1, 2))
def _assemble(sources: list[jax.Array], cuts: Any, shape: tuple[int, ...]) -> jax.Array:
    """cuts: as in _Shard."""
    plain = [copying.as_bits(source) for source in sources]
    whole = jnp.zeros(shape, plain[0].dtype)
    for source, (start, size, to) in zip(plain, cuts, strict=True):
        part = jax.lax.slice(source, start, tuple(a + b for a, b in zip(start, size, strict=True)))
        whole = jax.lax.dynamic_update_slice(whole, part, to)
    return copying.of_bits(whole, sources[0].dtype)


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
