"""Two workers of two devices each in one world."""

from __future__ import annotations

import numpy as np
import pytest
from harness import TOKEN, Failed, Head

from everstep.wire import bulk
from everstep.wire import channel_pb2 as wire
from everstep.wire.credentials import Credentials

ONES = np.ones((2, 2), np.float32)


def devices(head: Head) -> list[int]:
    return [device for peer in head.peers for device in peer.devices]


def test_sum_across_workers(pair: Head) -> None:
    program = pair.spanning("sum4", pair.peers, devices(pair))
    array = pair.put({device: index * ONES for index, device in enumerate(devices(pair))})
    doubled, total = pair.execute(pair.peers, program, [array], 2)
    for index, device in enumerate(devices(pair)):
        np.testing.assert_array_equal(pair.get(doubled, device), 2 * index * ONES)
        assert pair.get(total, device, shape=()) == 24


def test_all_reduces_are_not_combined(pair: Head) -> None:
    """A peer's death in a combined one would take this worker along. Alone it is as XLA does it."""
    program = pair.spanning("twosums4", pair.peers, devices(pair))
    alone, _ = pair.compile(pair.peers[0], "twosums2", pair.peers[0].devices)
    counts = []
    for each in (program, alone):
        text = pair.ask(pair.peers[:1], describe=wire.Describe(program=each, hlo_text=True))[0].hlo_text
        counts.append(text.count(" all-reduce("))
    assert counts == [2, 1]


def test_many_steps_in_flight(pair: Head) -> None:
    program = pair.spanning("step4", pair.peers, devices(pair))
    array = pair.put({device: np.full((2, 2), 2.0**-40, np.float32) for device in devices(pair)})
    sent = []
    for _ in range(20):
        step, (array,) = pair.start(pair.peers, program, [array], 1)
        sent += step
    pair.reports(sent)
    assert pair.get(array, devices(pair)[0])[0, 0] == np.float32(17.0**20 * 2.0**-40)


def test_a_result_that_must_survive_its_donation(pair: Head) -> None:
    program = pair.spanning("step4", pair.peers, devices(pair))
    array = pair.put(dict.fromkeys(devices(pair), ONES))
    (first,) = pair.execute(pair.peers, program, [array], 1)
    (second,) = pair.execute(pair.peers, program, [first], 1, keep=[0])
    for device in devices(pair):
        np.testing.assert_array_equal(pair.get(first, device), 17 * ONES)
        np.testing.assert_array_equal(pair.get(second, device), 17 * 17 * ONES)


def test_a_part_of_the_devices(pair: Head) -> None:
    """A program over one device of each worker, and one that leaves a worker out."""
    left, right = pair.peers
    mixed = [right.devices[1], left.devices[0]]
    program = pair.spanning("sum2", [right, left], mixed)
    array = pair.put({mixed[0]: ONES, mixed[1]: 2 * ONES})
    doubled, total = pair.execute(pair.peers, program, [array], 2)
    np.testing.assert_array_equal(pair.get(doubled, mixed[0]), 2 * ONES)
    assert pair.get(total, mixed[1], shape=()) == 12
    alone = pair.spanning("sum2", [right], right.devices)
    array = pair.put(dict.fromkeys(right.devices, ONES))
    _, total = pair.execute([right], alone, [array], 2)
    assert pair.get(total, right.devices[0], shape=()) == 8


def test_blob_over_bulk(pair: Head) -> None:
    left, right = pair.peers
    program, _ = pair.compile(left, "double", [left.devices[0]])
    left.message("blob_ready", lambda m: m.program == program)
    loaded = pair.number()
    source = wire.Source(bulk=wire.Bulk(address=left.hello.bulk_address, key=f"blob/{program}"))
    load = wire.Load(
        program=loaded,
        world=pair.world,
        blob=source,
        options=pair.artifacts["double"].options,
        devices=[right.devices[0]],
        replicas=1,
        partitions=1,
        outputs=[wire.ShardInfo(dtype="f32", shape=[2, 2], memory_kind="device")],
    )
    pair.ask([right], load=load)
    array = pair.put({right.devices[0]: ONES})
    (result,) = pair.execute([right], loaded, [array], 1)
    np.testing.assert_array_equal(pair.get(result, right.devices[0]), 2 * ONES)


def test_build_across_workers(pair: Head) -> None:
    """Rows here become columns there: each new shard is made of pieces of two workers."""
    left, right = pair.peers
    content = np.arange(32, dtype=np.int32).reshape(4, 8)
    rows = pair.put({left.devices[0]: content[:2], right.devices[0]: content[2:]})
    columns = pair.number()
    holders = ((left, left.devices[0]), (right, right.devices[0]))
    sent = []
    for number, peer in enumerate((left, right)):
        build = wire.Build(array=columns, dtype="s32")
        shard = build.shards.add(device=peer.devices[1], shape=[4, 4])
        for half, (holder, device) in enumerate(holders):
            address = "" if holder is peer else holder.hello.bulk_address
            box = wire.Box(start=[0, 4 * number], size=[2, 4])
            shard.pieces.add(**{"from": wire.ShardRef(array=rows, device=device)}, bulk_address=address, box=box, to=[2 * half, 0])
        sent += pair.send([peer], build=build)
    pair.reports(sent)
    np.testing.assert_array_equal(pair.get(columns, left.devices[1], "s32", (4, 4)), content[:, :4])
    np.testing.assert_array_equal(pair.get(columns, right.devices[1], "s32", (4, 4)), content[:, 4:])


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s4", "pred"])
def test_move_to_another_worker(pair: Head, dtype: str) -> None:
    """Asked for before it is there."""
    from everstep.wire import dtypes

    left, right = pair.peers
    content = np.array([[1, 0], [1, 1]]).astype(dtypes.to_numpy(dtype))
    array, moved = pair.number(), pair.number()
    piece = wire.Piece(**{"from": wire.ShardRef(array=array, device=left.devices[0])}, bulk_address=left.hello.bulk_address)
    shards = [wire.BuildShard(device=right.devices[0], shape=[2, 2], pieces=[piece])]
    sent = pair.send([right], build=wire.Build(array=moved, dtype=dtype, shards=shards))
    data = wire.Source(inline=content.tobytes(), size=content.nbytes)
    shard = wire.HostShard(devices=[left.devices[0]], data=data)
    pair.ask([left], put=wire.Put(array=array, dtype=dtype, shape=[2, 2], shards=[shard]))
    pair.reports(sent)
    np.testing.assert_array_equal(pair.get(moved, right.devices[0], dtype), content)


def test_move_of_a_failed_array(pair: Head) -> None:
    left, right = pair.peers
    program, _ = pair.compile(left, "double", [left.devices[0]])
    running, (failed,) = pair.start([left], program, [424242], 1)
    with pytest.raises(Failed):
        pair.reports(running)
    piece = wire.Piece(**{"from": wire.ShardRef(array=failed, device=left.devices[0])}, bulk_address=left.hello.bulk_address)
    shards = [wire.BuildShard(device=right.devices[0], shape=[2, 2], pieces=[piece])]
    with pytest.raises(Failed, match="array 424242 is not on this worker"):
        pair.ask([right], build=wire.Build(array=pair.number(), dtype="f32", shards=shards))


def test_get_over_bulk(pair: Head) -> None:
    """Rows of two workers, and columns of one, land in a buffer of another process."""
    buffer = bytearray(64)

    def nothing(key: str) -> bytes:
        raise AssertionError(key)

    server = bulk.Server("127.0.0.1:0", Credentials(TOKEN), nothing, lambda key: memoryview(buffer))
    try:
        content = np.arange(16, dtype=np.float32).reshape(4, 4)
        for strides, shape in (((16, 4), (2, 4)), ((4, 16), (2, 4))):
            array = pair.put({peer.devices[0]: content[2 * n : 2 * n + 2] for n, peer in enumerate(pair.peers)})
            sent = []
            for number, peer in enumerate(pair.peers):
                piece = wire.GetPiece(device=peer.devices[0], box=wire.Box(start=[2 * number, 0], size=shape))
                get = wire.Get(array=array, size=64, shape=[4, 4], byte_strides=strides, pieces=[piece])
                get.bulk.CopyFrom(wire.Bulk(address=server.address, key="buffer/1"))
                sent += pair.send([peer], get=get)
            pair.reports(sent)
            np.testing.assert_array_equal(np.ndarray((4, 4), np.float32, buffer=buffer, strides=strides), content)
    finally:
        server.close()
