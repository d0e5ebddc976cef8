"""Who writes what, and how a save or a restore ends."""

from __future__ import annotations

import asyncio
import functools
import itertools
import types
from collections.abc import Awaitable, Callable, Sequence

import pytest
from head.test_dispatch import Scene

from everstep.head import persistence
from everstep.head.arrays import Array, Placement
from everstep.head.members import Members
from everstep.head.operations import Operation
from everstep.head.persistence import StorageExecution, StorageProgram, StoredArray
from everstep.head.specs import ArraySpec, Sharding
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure

ROWS = Sharding((0, 1, 2, 3), "device", (2, 1), (0, 1, 0, 1))  # each half on both slices
COPIES = Sharding.replicated((0, 1, 2, 3), "device")


def scenario(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    @functools.wraps(test)
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    return run


class Storing(Scene):
    """Two slices of two devices each."""

    def __init__(self) -> None:
        super().__init__()
        members = Members(2, 1, 2)
        for name, link in self.links.items():
            devices = [wire.DeviceInfo(platform="cpu")] * 2
            members.join(wire.Hello(name=name, incarnation=1, devices=devices), link).is_up = True
        self.members = self.dispatcher._members = members
        self.dispatcher.open()
        self.numbers = itertools.count(1)
        self.runtime = types.SimpleNamespace(dispatcher=self.dispatcher, members=members, place=self.place)

    def place(self, devices: Sequence[int]) -> Placement:
        return Placement(devices, self.members.slot_of_device)

    def new(self, spec: ArraySpec, placement: Placement, operation: Operation) -> Array:
        array = Array(next(self.numbers), spec, placement, (operation,))
        operation.feed(array)
        return array

    def save(self, arrays: dict[str, Array], timeout: float | None = None) -> StorageExecution:
        stored = [StoredArray("/dir", name, ArraySpec("", array.spec.shape, array.spec.sharding)) for name, array in arrays.items()]
        return persistence.save(self.runtime, StorageProgram(True, tuple(stored), timeout), list(arrays.values()))  # type: ignore[arg-type]

    def array(self, sharding: Sharding, shape: tuple[int, ...] = (4, 2)) -> Array:
        return Array(next(self.numbers), ArraySpec("f32", shape, sharding), self.place(sharding.devices))

    def told(self, name: str) -> list[tuple[str, list[int]]]:
        """What a worker is to save or restore: names and devices."""
        (message,) = self.links[name].sent
        body = getattr(message, str(message.WhichOneof("body")))
        return [(stored.name, [piece.device for piece in stored.pieces]) for stored in body.arrays]

    def abandoned(self, name: str) -> list[int]:
        return [message.abandon.operation for message in self.links[name].sent if message.HasField("abandon")]


@scenario
async def test_each_part_is_written_once_and_the_work_is_shared() -> None:
    scene = Storing()
    scene.save({"rows": scene.array(ROWS), "copies": scene.array(COPIES), "more": scene.array(COPIES)})
    assert scene.told("s0w0") == [("rows", [0]), ("copies", [0])]
    assert scene.told("s1w0") == [("rows", [3]), ("more", [2])]
    (message,) = scene.links["s1w0"].sent
    rows = message.save.arrays[0]
    assert (rows.location, rows.dtype, list(rows.shape), list(rows.tile)) == ("/dir", "f32", [4, 2], [2, 2])
    assert (list(rows.pieces[0].box.start), list(rows.pieces[0].box.size)) == ([2, 0], [2, 2])


@scenario
async def test_replicas_that_live_are_written() -> None:
    scene = Storing()
    lost = Failure(Code.DATA_LOSS, "worker s0w0 is lost")
    array = scene.array(ROWS)
    array.mark_failed(lost, frozenset((0, 1)))
    execution = scene.save({"rows": array})
    assert scene.told("s1w0") == [("rows", [2, 3])]
    scene.done("s1w0", execution.operation)
    await execution.done()
    array.mark_failed(lost, frozenset((2,)))
    with pytest.raises(Failure, match="s0w0 is lost"):
        await scene.save({"rows": array}).done()


@scenario
async def test_a_failure_is_told_when_the_others_have_let_go() -> None:
    scene = Storing()
    execution = scene.save({"rows": scene.array(ROWS)})
    ending = asyncio.ensure_future(execution.done())
    await asyncio.sleep(0)
    scene.lose("s1w0")
    for _ in range(10):
        await asyncio.sleep(0)
    assert scene.abandoned("s0w0") == [execution.operation.number]
    assert not ending.done()
    scene.done("s0w0", execution.operation, Code.ABORTED, "it was abandoned")
    with pytest.raises(Failure, match=r"s1w0.*is lost") as caught:
        await ending
    assert caught.value.code is Code.DATA_LOSS


@scenario
async def test_time_runs_out() -> None:
    scene = Storing()
    execution = scene.save({"rows": scene.array(ROWS)}, timeout=0.01)
    scene.done("s0w0", execution.operation)
    with pytest.raises(Failure, match=r"saving to /dir has not ended in 0.01 s; still at it: s1w0") as caught:
        await execution.done()
    assert caught.value.code is Code.DEADLINE_EXCEEDED
    assert scene.abandoned("s1w0") == [execution.operation.number]
    assert not scene.abandoned("s0w0")


@scenario
async def test_a_program_that_ends_leaves_no_save_behind() -> None:
    scene = Storing()
    execution = scene.save({"rows": scene.array(ROWS)})
    ending = asyncio.ensure_future(execution.done())
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert scene.abandoned("s0w0") == scene.abandoned("s1w0") == [execution.operation.number]


@scenario
async def test_restore() -> None:
    scene = Storing()
    stored = tuple(StoredArray("/dir", name, ArraySpec("f32", (4, 2), ROWS)) for name in "ab")
    execution = persistence.restore(scene.runtime, StorageProgram(False, stored, None), scene.new)  # type: ignore[arg-type]
    assert scene.told("s0w0") == [("a", [0, 1]), ("b", [0, 1])]
    assert scene.told("s1w0") == [("a", [2, 3]), ("b", [2, 3])]
    scene.done("s0w0", execution.operation)
    scene.done("s1w0", execution.operation, Code.NOT_FOUND, "there is no such array")
    with pytest.raises(Failure, match="no such array"):
        await execution.done()
    for array in execution.results:
        assert array.failures is not None
        assert set(array.failures) == {2, 3}


@scenario
async def test_other_arguments_than_it_is_for() -> None:
    scene = Storing()
    stored = StoredArray("/dir", "rows", ArraySpec("", (4, 4), ROWS))
    for arguments in ([], [scene.array(ROWS)]):
        with pytest.raises(Failure) as caught:
            persistence.save(scene.runtime, StorageProgram(True, (stored,), None), arguments)  # type: ignore[arg-type]
        assert caught.value.code is Code.INVALID_ARGUMENT
