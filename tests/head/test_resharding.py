"""Any layout into any other: carried out with NumPy, the plan must give back the array."""

import itertools

import numpy as np
import pytest

from everstep.head.resharding import plan
from everstep.head.specs import ArraySpec, Box, Sharding
from everstep.wire.errors import Code, Failure

LAYOUTS = {
    "replicated": Sharding.replicated((0, 1, 2, 3)),
    "rows": Sharding((0, 1, 2, 3), None, (4, 1), (0, 1, 2, 3)),
    "columns": Sharding((3, 2, 1, 0), None, (1, 4), (0, 1, 2, 3)),
    "grid": Sharding((0, 1, 2, 3), None, (2, 2), (0, 1, 2, 3)),
    "half": Sharding((0, 1, 2, 3), None, (2, 1), (0, 1, 0, 1)),
    "elsewhere": Sharding((6, 7), None, (2, 1), (1, 0)),
    "single": Sharding.single(5),
}


def cut(box: Box) -> tuple[slice, ...]:
    return tuple(slice(a, a + n) for a, n in zip(box.start, box.size, strict=True))


@pytest.mark.parametrize(("source", "target"), list(itertools.product(LAYOUTS, LAYOUTS)))
@pytest.mark.parametrize("shape", [(8, 8), (5, 7), (1, 1), (0, 4)])
def test_plan(source: str, target: str, shape: tuple[int, ...]) -> None:
    value = np.arange(np.prod(shape)).reshape(shape)
    a, b = ArraySpec("s64", shape, LAYOUTS[source]), ArraySpec("s64", shape, LAYOUTS[target])
    held = {d: value[cut(box)] for d, box in zip(a.sharding.devices, a.sharding.boxes(shape), strict=True)}
    pieces = plan(a, b, lambda x, y: abs(x - y))
    for box, parts in zip(b.sharding.boxes(shape), pieces, strict=True):
        shard = np.full(box.size, -1)
        for part in parts:
            data = held[part.device] if part.box is None else held[part.device][cut(part.box)]
            shard[cut(Box(part.to, data.shape))] = data
        np.testing.assert_array_equal(shard, value[cut(box)])


def test_the_nearest_replica_is_read() -> None:
    spec = ArraySpec("f32", (4,), LAYOUTS["replicated"])
    target = ArraySpec("f32", (4,), Sharding((3, 0), None, (2,), (0, 1)))
    assert [[p.device for p in parts] for parts in plan(spec, target, lambda a, b: abs(a - b))] == [[3], [0]]


def test_unknown_cuts_can_only_move_as_they_are() -> None:
    unknown = ArraySpec("f32", (4,), Sharding((0, 1), shard_shapes=((2,), (2,))))
    moved = ArraySpec("f32", (4,), Sharding((2, 3), shard_shapes=((2,), (2,))))
    assert [[p.device for p in parts] for parts in plan(unknown, moved, lambda a, b: 0)] == [[0], [1]]
    with pytest.raises(Failure) as error:
        plan(unknown, ArraySpec("f32", (4,), Sharding.single(0)), lambda a, b: 0)
    assert error.value.code is Code.UNIMPLEMENTED


def test_the_shape_must_stay() -> None:
    with pytest.raises(Failure) as error:
        plan(ArraySpec("f32", (4,), Sharding.single(0)), ArraySpec("f32", (2, 2), Sharding.single(0)), lambda a, b: 0)
    assert error.value.code is Code.INVALID_ARGUMENT
