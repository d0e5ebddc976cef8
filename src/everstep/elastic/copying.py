"""Copies of states: one program for all leaves, so that to copy hundreds of arrays costs the loop no more than to start a step."""

from __future__ import annotations

import dataclasses
import itertools
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from everstep.elastic.once import Once
from everstep.elastic.slices import Slice

log = logging.getLogger(__name__)

Box: TypeAlias = tuple[tuple[int, int], ...]  # start and stop in each dimension


@dataclasses.dataclass(frozen=True, slots=True)
class Copied:
    """A leaf of a state, copied.

    made: the copy in its place; of what is no array of JAX, itself. beside: the same shards, each on the device that follows its own.
    holds: of each device, whose shard `beside` has there. key_impl: of random keys, whose numbers were copied.
    """

    made: Any
    beside: jax.Array | None = None
    holds: Mapping[jax.Device, jax.Device] = dataclasses.field(default_factory=dict)
    key_impl: Any = None

    def shards(self) -> Iterator[tuple[Box, jax.Device, jax.Array]]:
        """All there are: which part of the array, where, and its content."""
        shards = self.made.addressable_shards
        boxes = {shard.device: box(shard.index, self.made.shape) for shard in shards}
        for shard in shards:
            yield boxes[shard.device], shard.device, shard.data
        if self.beside is not None:
            for shard in self.beside.addressable_shards:
                yield boxes[self.holds[shard.device]], shard.device, shard.data


@dataclasses.dataclass(frozen=True, slots=True)
class Copies:
    """Of the leaves of a state, under way.

    leaves: those that are no arrays of JAX, None in the place of the others. runs: of programs, and what each has made of which leaves.
    """

    leaves: list[Any]
    runs: list[tuple[_Program, list[int], _Made]]

    def wait(self) -> None:
        """Until they are there. Raises what they fail with. What one run makes comes or fails together: to ask for each would cost more."""
        jax.block_until_ready([made.copies[0] for _, _, made in self.runs])

    def each(self) -> list[Copied]:
        """Leaf by leaf."""
        copied = [Copied(leaf) for leaf in self.leaves]
        for program, numbers, made in self.runs:
            for number, copy in zip(numbers, program.copied(made), strict=True):
                copied[number] = copy
        return copied


class Copier:
    """Makes copies, in another kind of memory, by programs compiled once for each layout."""

    def __init__(self, memory_kind: str, slices: Sequence[Slice]) -> None:
        """slices: what lies on one of them only is copied to the next one, too. None given: nothing is."""
        self._memory_kind = memory_kind
        self._slices = slices
        self._plans: Once[list[_Program]] = Once()

    def prepare(self, leaves: Sequence[Any]) -> None:
        """Compile what copying these takes: arrays, or jax.ShapeDtypeStruct with shardings."""
        self._plan([leaf for leaf in leaves if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct)])

    def copy(self, leaves: Sequence[Any]) -> Copies:
        """Copies, which are dispatched when this returns: the arrays may be donated then."""
        numbers = [number for number, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        arrays = [leaves[number] for number in numbers]
        copies = Copies([kept(leaf) for leaf in leaves], [])
        for program in self._plan(arrays):
            made = program.run([arrays[index] for index in program.indices])
            copies.runs.append((program, [numbers[index] for index in program.indices], made))
        return copies

    def _plan(self, arrays: Sequence[Any]) -> list[_Program]:
        layout = tuple((array.shape, array.dtype, array.sharding) for array in arrays)
        return self._plans.get(layout, lambda: self._made(arrays))

    def _made(self, arrays: Sequence[Any]) -> list[_Program]:
        by_devices: dict[tuple[jax.Device, ...], list[int]] = {}
        for index, array in enumerate(arrays):
            by_devices.setdefault(tuple(array.sharding.devices_indices_map(array.shape)), []).append(index)
        return [_Program(indices, [arrays[index] for index in indices], self._memory_kind, self._slices) for indices in by_devices.values()]


class _Program:
    """Copies arrays on the same devices. indices: which of all arrays they are."""

    def __init__(self, indices: list[int], arrays: Sequence[Any], memory_kind: str, slices: Sequence[Slice]) -> None:
        self.indices = indices
        abstract = [jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=array.sharding) for array in arrays]
        self._keys = [index for index, each in enumerate(abstract) if _is_key(each)]
        places = [each.sharding for each in abstract]  # of the numbers behind random keys, too, which have a dimension more
        alone = [bool(slices) and _is_anywhere_alone(each, slices) for each in abstract]
        self._holds = [_holders(place, slices) if is_alone else {} for place, is_alone in zip(places, alone, strict=True)]
        if missing := sum(is_alone and not holds for is_alone, holds in zip(alone, self._holds, strict=True)):
            log.warning("%d of %d arrays lie on one slice only and can't be copied to another: its loss loses them", missing, len(alone))
        self._moved = [index for index, holds in enumerate(self._holds) if holds]
        by_mesh: dict[Mesh, list[int]] = {}
        for index in self._moved:
            by_mesh.setdefault(places[index].mesh, []).append(index)

        def copies(arrays: list[jax.Array]) -> tuple[list[jax.Array], list[jax.Array]]:
            here = [jax.device_put(array, jax.memory.Space.Device) for array in arrays]  # nothing else is moved or computed with
            plain = [jax.random.key_data(array) if _is_key(array) else array for array in here]
            beside: dict[int, jax.Array] = {}
            for mesh, indices in by_mesh.items():
                shards = _moved([plain[i] for i in indices], mesh, [places[i].spec for i in indices], self._holds[indices[0]])
                beside |= dict(zip(indices, shards, strict=True))
            return [jnp.copy(array) for array in plain], [beside[index] for index in self._moved]

        there = [place.with_memory_kind(memory_kind) for place in places]
        program = jax.jit(copies, out_shardings=(there, [there[index] for index in self._moved]))
        with no_mesh():
            program.lower(abstract).compile()
        self._program = program  # finds that again; what lower() gives, JAX 0.10 refuses to call with numbers of less than a byte

    def run(self, arrays: Sequence[jax.Array]) -> _Made:
        with no_mesh():
            copies, beside = self._program(arrays)
        return _Made(copies, beside, {index: jax.random.key_impl(arrays[index]) for index in self._keys})

    def copied(self, made: _Made) -> list[Copied]:
        """Array by array."""
        beside = dict(zip(self._moved, made.beside, strict=True))
        return [
            Copied(copy, beside.get(index), holds, made.key_impls.get(index))
            for index, (copy, holds) in enumerate(zip(made.copies, self._holds, strict=True))
        ]


@dataclasses.dataclass(frozen=True, slots=True)
class _Made:
    """By one run of a program. beside: of those that have second copies. key_impls: of those that are random keys, by index."""

    copies: list[jax.Array]
    beside: list[jax.Array]
    key_impls: dict[int, Any]


def _moved(arrays: Sequence[jax.Array], mesh: Mesh, specs: Sequence[P], holds: Mapping[jax.Device, jax.Device]) -> list[jax.Array]:
    """Each shard on the device that is to hold it. In one piece for each dtype: each piece costs a meeting of all devices."""
    place = {device: number for number, device in enumerate(mesh.devices.flat)}
    order = [(place[origin], place[device]) for device, origin in holds.items()]

    def move(*originals: jax.Array) -> list[jax.Array]:
        shards = [as_bits(original) for original in originals]
        by_dtype: dict[Any, list[int]] = {}
        for number, shard in enumerate(shards):
            by_dtype.setdefault(shard.dtype, []).append(number)
        moved = list(shards)
        for numbers in by_dtype.values():
            flat = jax.lax.ppermute(jnp.concatenate([shards[number].ravel() for number in numbers]), mesh.axis_names, order)
            ends = itertools.accumulate(shards[number].size for number in numbers)
            for number, end in zip(numbers, ends, strict=True):
                moved[number] = flat[end - shards[number].size : end].reshape(shards[number].shape)
        return [of_bits(bits, original.dtype) for bits, original in zip(moved, originals, strict=True)]

    return list(jax.shard_map(move, mesh=mesh, in_specs=tuple(specs), out_specs=list(specs), check_vma=False)(*arrays))


def as_bits(array: jax.Array) -> jax.Array:
    """As integers of whole bytes: XLA moves some kinds of numbers as others, which changes what NaNs carry, and crashes on some that are
    smaller than a byte."""
    if jnp.issubdtype(array.dtype, jnp.floating):
        array = jax.lax.bitcast_convert_type(array, f"uint{_width(array.dtype)}")
    if jnp.issubdtype(array.dtype, jnp.integer) and _width(array.dtype) < 8:
        array = array.astype(jnp.uint8)
    return array


def of_bits(bits: jax.Array, dtype: Any) -> jax.Array:
    """The reverse."""
    if jnp.issubdtype(dtype, jnp.floating):
        return jax.lax.bitcast_convert_type(bits.astype(f"uint{_width(dtype)}"), dtype)
    return bits.astype(dtype)


def _width(dtype: Any) -> int:
    """In bits, of real numbers."""
    of = jnp.finfo if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo
    return int(of(dtype).bits)


def no_mesh() -> Any:
    """A context without the mesh that the caller may have set: what is done here is for others."""
    return jax.set_mesh(Mesh(np.empty((), object), ()))


def _holders(sharding: Any, slices: Sequence[Slice]) -> dict[jax.Device, jax.Device]:
    """Of each device, whose shard it is to hold besides its own: that of one of the slice before.

    Nothing if it can't be: one slice has more than half of the devices, or no mesh describes them.
    """
    if not isinstance(sharding, NamedSharding):
        return {}
    used = set(sharding.mesh.devices.flat)
    devices = [device for each in slices for device in each.devices if device in used]
    most = max((len(used.intersection(each.devices)) for each in slices), default=0)
    if 2 * most > len(devices) or len(devices) < len(used):
        return {}
    return {devices[(number + most) % len(devices)]: device for number, device in enumerate(devices)}


def _is_anywhere_alone(array: Any, slices: Sequence[Slice]) -> bool:
    """Whether a part of it is on one slice only."""
    slice_of = {device: each.index for each in slices for device in each.devices}
    holders: dict[Box, set[int | None]] = {}
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        holders.setdefault(box(index, array.shape), set()).add(slice_of.get(device))
    return any(len(each) == 1 for each in holders.values())


def kept(leaf: Any) -> Any:
    """What is kept of a leaf, unless a program copies it."""
    return None if isinstance(leaf, jax.Array) else np.array(leaf) if isinstance(leaf, np.ndarray) else leaf


def _is_key(array: Any) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def box(index: Any, shape: tuple[int, ...]) -> Box:
    """index: slices, as JAX gives them."""
    return tuple((cut.start or 0, extent if cut.stop is None else cut.stop) for cut, extent in zip(index, shape, strict=True))
