"""Shardings and boxes: geometry."""

import numpy as np
import pytest

from everstep.head.specs import Box, Sharding
from everstep.wire.errors import Code, Failure


def covered(shape: tuple[int, ...], boxes: list[Box]) -> np.ndarray:
    """How many boxes cover each element."""
    count = np.zeros(shape, int)
    for box in boxes:
        count[tuple(slice(a, a + n) for a, n in zip(box.start, box.size, strict=True))] += 1
    return count


@pytest.mark.parametrize("shape", [(8,), (7,), (1,), (0,), (4, 6), (5, 3), (2, 0, 3)])
def test_tiles_cover_every_element_once(shape: tuple[int, ...]) -> None:
    tiles = tuple(2 if i == 0 else 3 for i in range(len(shape)))
    count = int(np.prod(tiles))
    boxes = Sharding(tuple(range(count)), None, tiles, tuple(range(count))).boxes(shape)
    assert (covered(shape, boxes) == 1).all()


def test_replicas_hold_the_same_box() -> None:
    boxes = Sharding((0, 1, 2, 3), None, (2, 1), (0, 0, 1, 1)).boxes((4, 4))
    assert boxes[0] == boxes[1] == Box((0, 0), (2, 4))
    assert boxes[2] == boxes[3] == Box((2, 0), (2, 4))


def test_a_replicated_array_fits_any_rank() -> None:
    for shape in [(), (3,), (2, 5)]:
        assert Sharding.replicated((0, 1)).boxes(shape) == [Box((0,) * len(shape), shape)] * 2


def test_unknown_cuts_and_wrong_ranks_are_told() -> None:
    with pytest.raises(Failure) as unknown:
        Sharding((0, 1)).boxes((4,))
    assert unknown.value.code is Code.UNIMPLEMENTED
    with pytest.raises(Failure) as wrong:
        Sharding((0, 1), None, (2, 1), (0, 1)).boxes((4,))
    assert wrong.value.code is Code.INVALID_ARGUMENT


def test_given_shard_shapes_need_no_cut() -> None:
    assert Sharding((0, 1), shard_shapes=((3,), (1,))).shapes((4,)) == [(3,), (1,)]


def test_intersection_and_relative_position() -> None:
    a, b = Box((0, 2), (4, 4)), Box((2, 0), (4, 4))
    common = a.intersect(b)
    assert common == Box((2, 2), (2, 2))
    assert common.relative_to(a) == Box((2, 0), (2, 2))
    assert a.intersect(Box((4, 0), (1, 1))) is None
    assert Box((), ()).intersect(Box((), ())) == Box((), ())
