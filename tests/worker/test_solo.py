"""One worker of two devices: programs, donation, errors, order."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from harness import Failed, Head, put_message

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code

ONES = np.ones((2, 2), np.float32)


# ---------------------------------------------------------------- programs


def test_compile_execute_get(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[1]
    program, compiled = solo.compile(peer, "double", [device])
    assert compiled.name == "jit__lambda"
    assert compiled.fingerprint
    assert not list(compiled.donated)
    assert [(o.dtype, list(o.shape), list(o.shard_shape), o.memory_kind) for o in compiled.outputs] == [("f32", [2, 2], [2, 2], "device")]
    assert len(compiled.parameter_layouts) == len(compiled.output_layouts) == 1
    assert compiled.parameter_layouts[0]
    assert compiled.memory_stats
    array = solo.put({device: np.array([[1, 2], [3, 4]], np.float32)})
    (result,) = solo.execute([peer], program, [array], 1)
    np.testing.assert_array_equal(solo.get(result, device), [[2, 4], [6, 8]])


def test_two_devices(solo: Head) -> None:
    peer = solo.peers[0]
    program, compiled = solo.compile(peer, "sum2", peer.devices)
    assert [(list(o.shape), list(o.shard_shape)) for o in compiled.outputs] == [([4, 2], [2, 2]), ([], [])]
    assert compiled.has_parameter_shardings
    assert compiled.has_output_shardings
    assert len(compiled.parameter_shardings) == 1
    assert len(compiled.output_shardings) == 2
    array = solo.put({peer.devices[0]: ONES, peer.devices[1]: 3 * ONES})
    doubled, total = solo.execute([peer], program, [array], 2)
    np.testing.assert_array_equal(solo.get(doubled, peer.devices[1]), 6 * ONES)
    for device in peer.devices:
        assert solo.get(total, device, shape=()) == 16


def test_devices_in_another_order(solo: Head) -> None:
    """The first shard belongs to the first device of the program, whatever its number."""
    peer = solo.peers[0]
    devices = peer.devices[::-1]
    program, _ = solo.compile(peer, "sum2", devices)
    array = solo.put({devices[0]: ONES, devices[1]: 3 * ONES})
    doubled, _ = solo.execute([peer], program, [array], 2)
    np.testing.assert_array_equal(solo.get(doubled, devices[0]), 2 * ONES)
    np.testing.assert_array_equal(solo.get(doubled, devices[1]), 6 * ONES)


def test_loaded_program(solo: Head) -> None:
    peer = solo.peers[0]
    original = solo.spanning("double", [peer], [peer.devices[0]])
    assert original
    program, compiled = solo.compile(peer, "double", [peer.devices[0]], blob_path=str(solo.directory / "blob"))
    ready = peer.message("blob_ready", lambda m: m.program == program)
    artifact = solo.artifacts["double"]
    loaded = solo.number()
    load = wire.Load(
        program=loaded,
        world=solo.world,
        blob=wire.Source(path=str(solo.directory / "blob"), size=ready.size),
        options=artifact.options,
        devices=[peer.devices[1]],  # not the device that it was compiled for
        replicas=1,
        partitions=1,
        outputs=[wire.ShardInfo(dtype=o.dtype, shape=o.shard_shape, memory_kind=o.memory_kind) for o in compiled.outputs],
    )
    solo.ask([peer], load=load)
    array = solo.put({peer.devices[1]: ONES})
    (result,) = solo.execute([peer], loaded, [array], 1)
    np.testing.assert_array_equal(solo.get(result, peer.devices[1]), 2 * ONES)


def test_describe(solo: Head) -> None:
    peer = solo.peers[0]
    program, _ = solo.compile(peer, "double", [peer.devices[0]])
    described = solo.ask([peer], describe=wire.Describe(program=program, cost_analysis=True, hlo_text=True))[0]
    assert '"flops"' in described.cost_analysis
    assert "HloModule" in described.hlo_text


def test_unload(solo: Head) -> None:
    peer = solo.peers[0]
    program, _ = solo.compile(peer, "double", [peer.devices[0]])
    solo.ask([peer], unload=wire.Unload(programs=[program]))
    array = solo.put({peer.devices[0]: ONES})
    with pytest.raises(Failed, match="is not on this worker"):
        solo.execute([peer], program, [array], 1)


def test_no_results(solo: Head) -> None:
    peer = solo.peers[0]
    program, compiled = solo.compile(peer, "nothing", [peer.devices[0]])
    assert not list(compiled.outputs)
    solo.execute([peer], program, [solo.put({peer.devices[0]: ONES})], 0)


def test_zero_size(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "empty", [device])
    (result,) = solo.execute([peer], program, [solo.put({device: np.empty((0, 3), np.float32)})], 1)
    assert solo.get(result, device, shape=(0, 3)).shape == (0, 3)


def test_int4(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "int4", [device])
    assert compiled.outputs[0].dtype == "s4"
    (result,) = solo.execute([peer], program, [solo.put({device: np.array([1, -2, 3], ml_dtypes.int4)})], 1)
    assert solo.get(result, device, "s4", (3,)).tolist() == [2, -4, 6]


def test_nonsense_is_not_compiled(solo: Head) -> None:
    peer = solo.peers[0]
    good = solo.artifacts["double"]
    for more, text in [
        ({"module": wire.Source(inline=b"nonsense")}, "not a module of StableHLO"),
        ({"devices": [5]}, "not in world"),
        ({"partitions": 2}, "1 devices for 1 replicas of 2 partitions"),
        ({"world": 77}, "not in world 77"),
    ]:
        message = wire.Compile(
            program=solo.number(),
            world=solo.world,
            module=wire.Source(inline=good.module),
            options=good.options,
            devices=[peer.devices[0]],
            replicas=1,
            partitions=1,
        )
        if "devices" in more:
            message.ClearField("devices")
        message.MergeFrom(wire.Compile(**more))
        with pytest.raises(Failed, match=text):
            solo.ask([peer], compile=message)


def test_pointers_of_another_process_are_refused(solo: Head) -> None:
    peer = solo.peers[0]
    with pytest.raises(Failed, match="inspect_array_sharding") as refused:
        solo.compile(peer, "inspect", peer.devices)
    assert refused.value.code == Code.UNIMPLEMENTED


def test_out_of_memory(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "huge", [device])
    with pytest.raises(Failed) as failed:
        solo.execute([peer], program, [solo.put({device: ONES})], 1)
    assert failed.value.code == Code.RESOURCE_EXHAUSTED


# ---------------------------------------------------------------- donation


def test_donation(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "donate", [device])
    assert list(compiled.donated) == [0]
    array = solo.put({device: ONES})
    (first,) = solo.execute([peer], program, [array], 1)
    with pytest.raises(Failed, match="argument 0 of jit__lambda was donated") as failed:
        solo.execute([peer], program, [array], 1)
    assert failed.value.code == Code.INVALID_ARGUMENT
    with pytest.raises(Failed, match="donated"):
        solo.get(array, device)
    (second,) = solo.execute([peer], program, [first], 1)
    np.testing.assert_array_equal(solo.get(second, device), 3 * ONES)


def test_kept_arguments(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "donate", [device])
    array = solo.put({device: ONES})
    for _ in range(2):
        (result,) = solo.execute([peer], program, [array], 1, keep=[0])
        np.testing.assert_array_equal(solo.get(result, device), 2 * ONES)
    np.testing.assert_array_equal(solo.get(array, device), ONES)


def test_a_get_sees_what_was_there_before_the_donation(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    slow, _ = solo.compile(peer, "slow", [device])
    array = solo.put({device: np.full((256, 256), 0.01, np.float32)})
    donate, _ = solo.compile(peer, "donate", [device])
    start = solo.put({device: ONES})
    _, _ = solo.start([peer], slow, [array], 1)  # the device is busy
    get = wire.Get(array=start, size=16, shape=[2, 2], byte_strides=[8, 4], pieces=[wire.GetPiece(device=device)])
    asked = solo.send([peer], get=get)
    solo.execute([peer], donate, [start], 1)
    assert np.frombuffer(solo.reports(asked)[0].data, np.float32).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("kind", ["", "pinned_host"])
def test_large_arrays(solo: Head, kind: str) -> None:
    """By way of a file, which is written over afterwards."""
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "large", [device])
    content = np.arange(1024 * 512, dtype=np.float32).reshape(1024, 512)
    path = solo.shared / "large"
    path.write_bytes(content.tobytes())
    array = solo.number()
    shard = wire.HostShard(devices=[device], data=wire.Source(path=str(path), size=content.nbytes))
    solo.ask([peer], put=wire.Put(array=array, dtype="f32", shape=content.shape, memory_kind=kind, shards=[shard]))
    path.write_bytes(bytes(content.nbytes))
    if kind:
        moved = solo.number()
        piece = wire.Piece(**{"from": wire.ShardRef(array=array, device=device)})
        shards = [wire.BuildShard(device=device, shape=content.shape, pieces=[piece])]
        solo.ask([peer], build=wire.Build(array=moved, dtype="f32", shards=shards))
        array = moved
    for step in range(1, 4):
        (array,) = solo.execute([peer], program, [array], 1)
        np.testing.assert_array_equal(solo.get(array, device, shape=content.shape), content + step)


def test_many_arguments(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "many", [device])
    assert len(compiled.donated) == 600
    arrays = [solo.number() for _ in range(600)]
    for index, array in enumerate(arrays):
        peer.send(0, put=put_message(array, {device: np.full((8,), index, np.float32)}))
    for _ in range(3):
        arrays = solo.execute([peer], program, arrays, 600)
    for index in (0, 599):
        assert solo.get(arrays[index], device, shape=(8,)).tolist() == [index + 3] * 8


# ---------------------------------------------------------------- errors


def test_an_error_sits_on_the_results(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "double", [device])
    sent, made = solo.start([peer], program, [999999], 1)
    with pytest.raises(Failed, match="array 999999 is not on this worker"):
        solo.reports(sent)
    with pytest.raises(Failed, match="array 999999 is not on this worker"):
        solo.execute([peer], program, made, 1)
    with pytest.raises(Failed, match="array 999999 is not on this worker"):
        solo.get(made[0], device)


def test_wrong_shape(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "double", [device])
    with pytest.raises(Failed) as failed:
        solo.execute([peer], program, [solo.put({device: np.ones((5,), np.float32)})], 1)
    assert failed.value.code == Code.INVALID_ARGUMENT


def test_wrong_device(solo: Head) -> None:
    peer = solo.peers[0]
    program, _ = solo.compile(peer, "double", [peer.devices[0]])
    with pytest.raises(Failed, match="no shard on device"):
        solo.execute([peer], program, [solo.put({peer.devices[1]: ONES})], 1)


def test_deleted(solo: Head) -> None:
    peer = solo.peers[0]
    array = solo.put({peer.devices[0]: ONES})
    solo.ask([peer], delete=wire.Delete(arrays=[array, 31337]))
    with pytest.raises(Failed, match="is not on this worker"):
        solo.get(array, peer.devices[0])


# ---------------------------------------------------------------- order


def test_news_of_one_device_does_not_wait_for_another(solo: Head) -> None:
    peer = solo.peers[0]
    busy, free = peer.devices
    slow, _ = solo.compile(peer, "slow", [busy])
    double, _ = solo.compile(peer, "double", [free])
    content = solo.put({busy: np.full((256, 256), 0.01, np.float32)})
    array = solo.put({free: ONES})
    long, _ = solo.start([peer], slow, [content], 1)
    solo.execute([peer], double, [array], 1)
    assert not peer.reported(long[0][1])
    solo.reports(long)


def test_heartbeat(solo: Head) -> None:
    peer = solo.peers[0]
    kept = solo.put({peer.devices[0]: np.zeros((1 << 20,), np.uint8)})
    peer.messages.clear()
    beat = peer.message("heartbeat", lambda m: m.bytes >= 1 << 20)
    assert beat.arrays >= 1
    solo.ask([peer], delete=wire.Delete(arrays=[kept]))
    assert math.isfinite(beat.programs)
