"""Cuts as decoded here against what JAX and XLA make of the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax._src import op_shardings
from jaxlib import xla_client

from everstep.frontend.codec.op_sharding import Cut, cut
from everstep.head.specs import Box, Sharding
from everstep.wire.errors import Code, Failure
from everstep.wire.ifrt import xla_pb2 as xla

OP = xla.OpSharding
SIZES = st.lists(st.sampled_from((1, 1, 2, 2, 3, 4)), min_size=1, max_size=4).filter(lambda sizes: math.prod(sizes) <= 48)


def in_xla(message: xla.OpSharding) -> xla_client.HloSharding:
    theirs = xla_client.OpSharding()
    theirs.ParseFromString(message.SerializeToString())
    return xla_client.HloSharding.from_proto(theirs)


def boxes_of(found: Cut, shape: tuple[int, ...]) -> list[Box]:
    return Sharding(tuple(range(len(found.tile_of))), None, found.tiles, found.tile_of).boxes(shape)


def boxes_in_jax(sharding: xla_client.HloSharding, shape: tuple[int, ...], devices: int) -> list[Box]:
    boxes = []
    for slices in op_shardings.op_sharding_to_numpy_indices(sharding, shape, devices):
        bounds = [part.indices(size) for part, size in zip(slices, shape, strict=True)]
        boxes.append(Box(tuple(start for start, _, _ in bounds), tuple(stop - start for start, stop, _ in bounds)))
    return boxes


@st.composite
def tiled(draw: st.DrawFn) -> tuple[xla.OpSharding, tuple[int, ...]]:
    """A tile assignment, and a shape that it cuts evenly."""
    dims = draw(SIZES)
    count = math.prod(dims)
    message = OP(type=OP.OTHER, tile_assignment_dimensions=dims)
    rank = len(dims)
    match draw(st.sampled_from(("plain", "replicated", "subgroups"))):
        case "replicated":
            message.replicate_on_last_tile_dim = True
            rank -= 1
        case "subgroups":
            message.last_tile_dims.append(OP.REPLICATED)
            rank -= 1
    if draw(st.booleans()):
        message.tile_assignment_devices.extend(draw(st.permutations(range(count))))
    else:
        reshape = draw(st.permutations(dims))
        message.iota_reshape_dims.extend(reshape)
        message.iota_transpose_perm.extend(draw(st.permutations(range(len(reshape)))))
    multiples = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    return message, tuple(size * multiple for size, multiple in zip(dims[:rank], multiples, strict=True))


@st.composite
def meshed(draw: st.DrawFn) -> tuple[xla.OpSharding, tuple[int, ...]]:
    """A sharding over the axes of a mesh, and a shape that it cuts evenly."""
    sizes = draw(SIZES)
    count = math.prod(sizes)
    named = xla.NamedSharding()
    for number, size in enumerate(sizes):
        named.mesh.axes.add(name=f"axis{number}", size=size)
    match draw(st.sampled_from(("iota", "listed", "transposed"))):
        case "listed":
            order = draw(st.permutations(range(count)))
            if order != list(range(count)):  # XLA wants the shortest form
                named.mesh.device_ids.extend(order)
        case "transposed":
            perm = draw(st.permutations(range(len(sizes))))
            if math.prod(sizes) > 1 and _moves(sizes, perm):
                named.mesh.iota_transform.reshape_dims.extend(sizes)
                named.mesh.iota_transform.transpose_perm.extend(perm)
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 3)) for _ in range(rank)]
    dims = [named.dim_shardings.add(is_closed=True) for _ in range(rank)]
    for number in draw(st.permutations(range(len(sizes)))):
        where = draw(st.integers(-1, rank - 1))
        if where >= 0 and sizes[number] > 1:
            axis = dims[where].axes.add(mesh_axis_index=number)
            part = sizes[number]
            if part == 4 and draw(st.booleans()):
                part = 2
                axis.sub_axis_info.CopyFrom(xla.AxisRef.SubAxis(pre_size=draw(st.sampled_from((1, 2))), size=2))
            shape[where] *= part
    return OP(type=OP.OTHER, named_sharding=named), tuple(shape)


def _moves(sizes: Sequence[int], perm: Sequence[int]) -> bool:
    count = math.prod(sizes)
    return not np.array_equal(np.arange(count).reshape(sizes).transpose(perm).reshape(-1), np.arange(count))


@given(tiled())
def test_tiles_lie_where_jax_has_them(case: tuple[xla.OpSharding, tuple[int, ...]]) -> None:
    message, shape = case
    count = math.prod(message.tile_assignment_dimensions)
    assert boxes_of(cut(message, count), shape) == boxes_in_jax(in_xla(message), shape, count)


@given(meshed())
def test_meshes_cut_as_xla_says(case: tuple[xla.OpSharding, tuple[int, ...]]) -> None:
    message, shape = case
    count = math.prod(axis.size for axis in message.named_sharding.mesh.axes)
    found = cut(message, count)
    theirs = in_xla(message).v3_to_v2_sharding()
    assert boxes_of(found, shape) == boxes_in_jax(theirs, shape, count)
    again = OP.FromString(theirs.to_proto().SerializeToString())
    assert boxes_of(cut(again, count), shape) == boxes_of(found, shape)


@given(tiled(), st.data())
def test_uneven_shapes_end_in_short_tiles(case: tuple[xla.OpSharding, tuple[int, ...]], data: st.DataObject) -> None:
    message, even = case
    shape = tuple(data.draw(st.integers(0, size)) for size in even)
    count = math.prod(message.tile_assignment_dimensions)
    covered = np.zeros(shape, dtype=int)
    for box in {(box.start, box.size) for box in boxes_of(cut(message, count), shape) if box.elements}:
        covered[tuple(slice(start, start + size) for start, size in zip(*box, strict=True))] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("kind", [OP.MANUAL, OP.UNREDUCED])
def test_shards_in_one_place_may_differ(kind: int) -> None:
    whole = OP(type=kind)  # type: ignore[arg-type]
    assert cut(whole, 4) == Cut((), (0, 0, 0, 0), distinct=True)
    assert cut(whole, 1) == Cut((), (0,))
    grouped = OP(type=OP.OTHER, tile_assignment_dimensions=[2, 2], last_tile_dims=[kind], iota_reshape_dims=[4], iota_transpose_perm=[0])  # type: ignore[list-item]
    assert cut(grouped, 4) == Cut((2,), (0, 0, 1, 1), distinct=True)


def test_whole_arrays() -> None:
    assert cut(OP(type=OP.REPLICATED), 3) == Cut((), (0, 0, 0))
    assert cut(OP(type=OP.MAXIMAL, tile_assignment_devices=[0]), 1) == Cut((), (0,))
    assert cut(OP(type=OP.MAXIMAL, tile_assignment_devices=[1]), 2) == Cut((), (0, 0))
    assert cut(OP(named_sharding=xla.NamedSharding()), 2) == Cut((), (0, 0))


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (OP(type=OP.UNKNOWN), Code.UNIMPLEMENTED),
        (OP(type=OP.TUPLE), Code.UNIMPLEMENTED),
        (OP(type=OP.OTHER, tile_assignment_dimensions=[2]), Code.INVALID_ARGUMENT),
        (OP(type=OP.OTHER, tile_assignment_dimensions=[-2, -2]), Code.INVALID_ARGUMENT),
        (OP(type=OP.OTHER, tile_assignment_dimensions=[1 << 40, 1 << 40]), Code.INVALID_ARGUMENT),
        (OP(type=OP.OTHER, tile_assignment_dimensions=[4], tile_assignment_devices=[0, 1, 2, 2]), Code.INVALID_ARGUMENT),
        (OP(type=OP.OTHER, tile_assignment_dimensions=[4], last_tile_dims=[OP.MANUAL, OP.REPLICATED]), Code.INVALID_ARGUMENT),
        (OP(type=OP.OTHER, tile_assignment_dimensions=[4], iota_reshape_dims=[2, 2], iota_transpose_perm=[0, 0]), Code.INVALID_ARGUMENT),
        (OP(type=OP.OTHER, tile_assignment_dimensions=[4], iota_reshape_dims=[1 << 50], iota_transpose_perm=[0]), Code.INVALID_ARGUMENT),
        (OP(named_sharding=xla.NamedSharding(mesh=xla.Mesh(axes=[xla.Mesh.Axis(size=3)]))), Code.INVALID_ARGUMENT),
        (OP(named_sharding=xla.NamedSharding(mesh=xla.Mesh(device_ids=[1]))), Code.UNIMPLEMENTED),
    ],
)
def test_nonsense_is_told(message: xla.OpSharding, code: Code) -> None:
    with pytest.raises(Failure) as caught:
        cut(message, 4)
    assert caught.value.code is code


def test_axes_that_are_not_there_are_told() -> None:
    mesh = xla.Mesh(axes=[xla.Mesh.Axis(size=4)])
    for axis in (
        xla.AxisRef(mesh_axis_index=1),
        xla.AxisRef(sub_axis_info=xla.AxisRef.SubAxis(pre_size=3, size=2)),
        xla.AxisRef(mesh_axis_index=-1),
    ):
        named = xla.NamedSharding(mesh=mesh, dim_shardings=[xla.NamedSharding.DimensionSharding(axes=[axis])])
        with pytest.raises(Failure):
            cut(OP(named_sharding=named), 4)
