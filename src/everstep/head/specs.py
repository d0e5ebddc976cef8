"""What an array is: element type, shape, and how its shards lie on devices."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Sequence
from typing import TypeAlias

from everstep.wire.errors import invalid, unimplemented

Shape: TypeAlias = tuple[int, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Box:
    """A hyper-rectangle inside an array: `start[i] .. start[i] + size[i]` in dimension i."""

    start: Shape
    size: Shape

    @property
    def elements(self) -> int:
        return math.prod(self.size)

    def intersect(self, other: Box) -> Box | None:
        """The part that both cover, or None."""
        start = tuple(map(max, self.start, other.start))
        stop = (min(a + n, b + m) for a, n, b, m in zip(self.start, self.size, other.start, other.size, strict=True))
        size = tuple(e - s for s, e in zip(start, stop, strict=True))
        return Box(start, size) if all(n > 0 for n in size) else None

    def relative_to(self, outer: Box) -> Box:
        """The same box with its start counted from the start of `outer`."""
        return Box(tuple(a - b for a, b in zip(self.start, outer.start, strict=True)), self.size)


@dataclasses.dataclass(frozen=True, slots=True)
class Sharding:
    """Where shards lie: `devices[i]` holds shard i.

    tiles: how many tiles each dimension is cut into, with `tile_of[i]` the tile (row-major number) that shard i holds:
        several shards with one tile are replicas. None: the cut is not known (only whole shards can be handled).
    shard_shapes: the shapes of the shards where they are given and not computed from tiles.
    source: what the frontend made it from, so that it can tell the program the same again. Not looked into here.
    """

    devices: tuple[int, ...]
    memory_kind: str | None = None
    tiles: Shape | None = None
    tile_of: tuple[int, ...] | None = None
    shard_shapes: tuple[Shape, ...] | None = None
    source: object = dataclasses.field(default=None, compare=False)

    @staticmethod
    def single(device: int, memory_kind: str | None = None) -> Sharding:
        """All of the array on one device."""
        return Sharding((device,), memory_kind, (), (0,))

    @staticmethod
    def replicated(devices: Sequence[int], memory_kind: str | None = None) -> Sharding:
        """All of the array on each of the devices."""
        return Sharding(tuple(devices), memory_kind, (), (0,) * len(devices))

    @property
    def is_fully_replicated(self) -> bool:
        return self.tiles is not None and math.prod(self.tiles) == 1

    def boxes(self, shape: Shape) -> list[Box]:
        """The part of an array of `shape` that each shard holds. Dimensions that tiles don't divide leave a short last tile.

        Raises Failure (UNIMPLEMENTED) if the cut is not known, (INVALID_ARGUMENT) if it does not fit the shape.
        """
        if self.tiles is None or self.tile_of is None:
            raise unimplemented("this sharding does not say which part of the array each shard holds")
        tiles = self.tiles or (1,) * len(shape)
        if len(tiles) != len(shape):
            raise invalid(f"a sharding of {len(tiles)} dimensions does not fit shape {shape}")
        step = [-(-n // t) for n, t in zip(shape, tiles, strict=True)]
        cache: dict[int, Box] = {}
        for tile in set(self.tile_of):
            start, rest = [], tile
            for n, t, s in zip(reversed(shape), reversed(tiles), reversed(step), strict=True):
                rest, index = divmod(rest, t)
                start.append(min(index * s, n))
            start.reverse()
            size = tuple(min(s, n - a) for n, a, s in zip(shape, start, step, strict=True))
            cache[tile] = Box(tuple(start), size)
        return [cache[tile] for tile in self.tile_of]

    def shapes(self, shape: Shape) -> list[Shape]:
        """The shape of each shard of an array of `shape`. Raises as `boxes` does."""
        if self.shard_shapes is not None:
            return list(self.shard_shapes)
        return [box.size for box in self.boxes(shape)]


@dataclasses.dataclass(frozen=True, slots=True)
class ArraySpec:
    """dtype is a name of wire/dtypes.py, shape the global one."""

    dtype: str
    shape: Shape
    sharding: Sharding

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


class CopySemantics(enum.Enum):
    """What becomes of the input of an operation that makes one array from another."""

    ALWAYS_COPY = 1
    REUSE_INPUT = 2  # share memory where possible
    DONATE_INPUT = 3  # the input is gone afterwards


@dataclasses.dataclass(frozen=True, slots=True)
class HostShard:
    """Content for some shards of a new array, from a host buffer of the session.

    indices: numbers of the shards that get it. shape: of a shard. byte_strides: of the host data, None if dense and row-major.
    buffer: handle in the session's host buffers; it is consumed.
    """

    indices: tuple[int, ...]
    shape: Shape
    byte_strides: tuple[int, ...] | None
    buffer: int
