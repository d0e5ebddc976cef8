"""One worker of two devices: programs, transfers, errors."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from harness import Failed, Head, put_message

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
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


# ---------------------------------------------------------------- host buffers


@pytest.mark.parametrize("name", sorted(dtypes._NUMPY))
def test_every_dtype(solo: Head, name: str) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    content = np.zeros((3, 5), dtypes.to_numpy(name))
    content[1, 2] = 1
    try:
        array = solo.put({device: content})
    except Failed as failed:
        pytest.skip(f"this jaxlib: {failed}")
    np.testing.assert_array_equal(solo.get(array, device, name, (3, 5)), content)


def test_put_before_and_after_its_buffer(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    source = wire.Source(inline=ONES.tobytes(), size=16)
    for before in (True, False):
        array, buffer = solo.number(), solo.number()
        put = wire.Put(array=array, dtype="f32", shape=[2, 2], shards=[wire.HostShard(devices=[device], buffer=buffer)])
        if before:
            peer.send(0, buffer_ready=wire.BufferReady(buffer=buffer, data=source))
        sent = solo.send([peer], put=put)
        if not before:
            program, _ = solo.compile(peer, "double", [device])
            running, (result,) = solo.start([peer], program, [array], 1)
            assert not peer.reported(sent[0][1])
            peer.send(0, buffer_ready=wire.BufferReady(buffer=buffer, data=source))
            solo.reports(running)
            np.testing.assert_array_equal(solo.get(result, device), 2 * ONES)
        solo.reports(sent)
        np.testing.assert_array_equal(solo.get(array, device), ONES)


def test_deleted_before_its_buffer_comes(solo: Head) -> None:
    """Then its content, which can't be read here, is not even asked for; unless somebody wanted it in between."""
    peer = solo.peers[0]
    device = peer.devices[0]
    nowhere = wire.Source(path="/nowhere", size=16)
    for is_wanted in (False, True):
        array, buffer = solo.number(), solo.number()
        put = wire.Put(array=array, dtype="f32", shape=[2, 2], shards=[wire.HostShard(devices=[device], buffer=buffer)])
        sent = solo.send([peer], put=put)
        if is_wanted:
            shards = [wire.ShardRef(array=array, device=device)]
            assembled = solo.send([peer], assemble=wire.Assemble(array=solo.number(), shards=shards))
        solo.ask([peer], delete=wire.Delete(arrays=[array]))
        peer.send(0, buffer_ready=wire.BufferReady(buffer=buffer, data=nowhere))
        if is_wanted:
            for each in sent, assembled:
                with pytest.raises(Failed, match="No such file"):
                    solo.reports(each)
        else:
            solo.reports(sent)


def test_buffer_that_never_comes(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    array, buffer = solo.number(), solo.number()
    put = wire.Put(array=array, dtype="f32", shape=[2, 2], shards=[wire.HostShard(devices=[device], buffer=buffer)])
    sent = solo.send([peer], put=put)
    peer.send(0, buffer_ready=wire.BufferReady(buffer=buffer, error=wire.Error(code=Code.CANCELLED, message="gone")))
    with pytest.raises(Failed, match="gone"):
        solo.reports(sent)
    with pytest.raises(Failed, match="gone"):
        solo.get(array, device)


def test_one_content_for_several_devices(solo: Head) -> None:
    peer = solo.peers[0]
    array = solo.number()
    shard = wire.HostShard(devices=peer.devices, data=wire.Source(inline=ONES.tobytes(), size=16))
    solo.ask([peer], put=wire.Put(array=array, dtype="f32", shape=[2, 2], shards=[shard]))
    for device in peer.devices:
        np.testing.assert_array_equal(solo.get(array, device), ONES)


@pytest.mark.parametrize("strides", [(4, 8), (0, 4), (24, 8), (4, 0)])
def test_put_with_strides(solo: Head, strides: tuple[int, int]) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    host = np.arange(12, dtype=np.float32)
    array = solo.number()
    shard = wire.HostShard(devices=[device], data=wire.Source(inline=host.tobytes(), size=48), byte_strides=strides, has_strides=True)
    solo.ask([peer], put=wire.Put(array=array, dtype="f32", shape=[2, 2], shards=[shard]))
    expected = np.ndarray((2, 2), np.float32, buffer=host, strides=strides)
    np.testing.assert_array_equal(solo.get(array, device), expected)


def test_too_little_data(solo: Head) -> None:
    peer = solo.peers[0]
    shard = wire.HostShard(devices=peer.devices[:1], data=wire.Source(inline=b"123", size=3))
    with pytest.raises(Failed, match="does not hold") as failed:
        solo.ask([peer], put=wire.Put(array=solo.number(), dtype="f32", shape=[2, 2], shards=[shard]))
    assert failed.value.code == Code.INVALID_ARGUMENT


def test_files(solo: Head) -> None:
    """Data by way of the shared directory, whole and with strides; a file may go once the report is there."""
    peer = solo.peers[0]
    left, right = peer.devices
    content = np.arange(300_000, dtype=np.float32).reshape(300, 1000)
    for strides in ((4000, 4), (4, 1200)):
        sources = [solo.shared / f"source{number}" for number in range(2)]
        halves = content[:, :500], content[:, 500:]
        array = solo.number()
        put = wire.Put(array=array, dtype="f32", shape=[300, 500])
        for path, device, half in zip(sources, (left, right), halves, strict=True):
            path.write_bytes(half.tobytes())
            put.shards.add(devices=[device], data=wire.Source(path=str(path), size=half.nbytes))
        solo.ask([peer], put=put)
        for path in sources:
            path.unlink()
        target = solo.shared / "target"
        target.write_bytes(bytes(content.nbytes))
        pieces = [
            wire.GetPiece(device=device, box=wire.Box(start=[0, 500 * number], size=[300, 500]))
            for number, device in enumerate((left, right))
        ]
        get = wire.Get(array=array, size=content.nbytes, path=str(target), shape=[300, 1000], byte_strides=strides, pieces=pieces)
        solo.ask([peer], get=get)
        got = np.ndarray((300, 1000), np.float32, buffer=target.read_bytes(), strides=strides)
        np.testing.assert_array_equal(got, content)


def test_get_rows_into_a_file(solo: Head) -> None:
    peer = solo.peers[0]
    content = np.arange(12, dtype=np.float32).reshape(4, 3)
    array = solo.put({peer.devices[0]: content[:2], peer.devices[1]: content[2:]})
    target = solo.shared / "rows"
    target.write_bytes(bytes(48))
    pieces = [wire.GetPiece(device=device, box=wire.Box(start=[2 * number, 0], size=[2, 3])) for number, device in enumerate(peer.devices)]
    solo.ask([peer], get=wire.Get(array=array, size=48, path=str(target), shape=[4, 3], byte_strides=[12, 4], pieces=pieces))
    np.testing.assert_array_equal(np.frombuffer(target.read_bytes(), np.float32).reshape(4, 3), content)


def test_strings(solo: Head) -> None:
    """What their bytes mean is not the worker's business."""
    peer = solo.peers[0]
    array, copy, moved = (solo.number() for _ in range(3))
    device, other = peer.devices
    shard = wire.HostShard(devices=[device], data=wire.Source(inline=b"opaque", size=6))
    solo.ask([peer], put=wire.Put(array=array, dtype="string", shape=[3], shards=[shard]))
    solo.ask([peer], assemble=wire.Assemble(array=copy, shards=[wire.ShardRef(array=array, device=device)]))
    piece = wire.Piece(**{"from": wire.ShardRef(array=array, device=device)})
    build = wire.Build(array=moved, dtype="string", shards=[wire.BuildShard(device=other, shape=[3], pieces=[piece])])
    solo.ask([peer], build=build)
    for number, place in ((array, device), (copy, device), (moved, other)):
        get = wire.Get(array=number, shape=[3], pieces=[wire.GetPiece(device=place)])
        assert solo.ask([peer], get=get)[0].data == b"opaque"


# ---------------------------------------------------------------- between arrays


@pytest.mark.parametrize("kind", ["device", "pinned_host", "unpinned_host"])
def test_memory_kinds(solo: Head, kind: str) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    array = solo.put({device: ONES}, kind)
    moved = solo.number()
    piece = wire.Piece(**{"from": wire.ShardRef(array=array, device=device)})
    shards = [wire.BuildShard(device=device, shape=[2, 2], pieces=[piece])]
    solo.ask([peer], build=wire.Build(array=moved, dtype="f32", memory_kind="device", shards=shards))
    np.testing.assert_array_equal(solo.get(array, device), ONES)
    program, _ = solo.compile(peer, "double", [device])
    (result,) = solo.execute([peer], program, [moved], 1)
    np.testing.assert_array_equal(solo.get(result, device), 2 * ONES)


def test_result_in_host_memory(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "to_host", [device])
    assert compiled.outputs[0].memory_kind == "pinned_host"
    (result,) = solo.execute([peer], program, [solo.put({device: ONES})], 1)
    np.testing.assert_array_equal(solo.get(result, device), ONES)


def test_assemble_and_take_apart(solo: Head) -> None:
    peer = solo.peers[0]
    left, right = peer.devices
    one, two = solo.put({left: ONES}), solo.put({right: 2 * ONES})
    both, again = solo.number(), solo.number()
    refs = [wire.ShardRef(array=one, device=left), wire.ShardRef(array=two, device=right)]
    solo.ask([peer], assemble=wire.Assemble(array=both, shards=refs, consume=True))
    with pytest.raises(Failed, match="not on this worker"):
        solo.get(one, left)
    program, _ = solo.compile(peer, "sum2", peer.devices)
    doubled, total = solo.execute([peer], program, [both], 2)
    assert solo.get(total, left, shape=()) == 12
    solo.ask([peer], assemble=wire.Assemble(array=again, shards=[wire.ShardRef(array=doubled, device=right)]))
    np.testing.assert_array_equal(solo.get(again, right), 4 * ONES)


@pytest.mark.parametrize("size", [4, 200])
def test_build_from_pieces(solo: Head, size: int) -> None:
    """Rows on two devices become columns on two devices."""
    peer = solo.peers[0]
    left, right = peer.devices
    n = size // 2
    content = np.arange(size * size, dtype=np.float32).reshape(size, size)
    rows = solo.put({left: content[:n], right: content[n:]})
    columns = solo.number()
    build = wire.Build(array=columns, dtype="f32")
    for number, device in enumerate((right, left)):
        shard = build.shards.add(device=device, shape=[size, n])
        for half, holder in enumerate((left, right)):
            box = wire.Box(start=[0, n * number], size=[n, n])
            shard.pieces.add(**{"from": wire.ShardRef(array=rows, device=holder)}, box=box, to=[n * half, 0])
    solo.ask([peer], build=build)
    np.testing.assert_array_equal(solo.get(columns, right, shape=(size, n)), content[:, :n])
    np.testing.assert_array_equal(solo.get(columns, left, shape=(size, n)), content[:, n:])


@pytest.mark.parametrize(
    ("source", "target", "shape"),
    [("f32", "u32", (2, 2)), ("f32", "u8", (2, 2, 4)), ("s4", "u8", (2,)), ("u8", "s4", (8,)), ("bf16", "f32", (2,))],
)
def test_bitcast(solo: Head, source: str, target: str, shape: tuple[int, ...]) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    content = np.array([1, 2, -3 if source != "u8" else 250, 4]).astype(dtypes.to_numpy(source))
    if source == "f32":
        content = content.reshape(2, 2)
    array, cast, back = solo.put({device: content}), solo.number(), solo.number()
    solo.ask([peer], bitcast=wire.Bitcast(array=cast, source=array, dtype=target, shape=shape))
    got = solo.get(cast, device, target, shape)
    if source == "f32":
        assert got.tobytes() == content.tobytes()
    if target == "s4":
        assert got.tolist()[:4] == [1, 0, 2, 0]
    solo.ask([peer], bitcast=wire.Bitcast(array=back, source=cast, dtype=source, shape=content.shape))
    np.testing.assert_array_equal(solo.get(back, device, source, content.shape), content)


# ---------------------------------------------------------------- callbacks


def _answer(solo: Head, factor: float, *, tokens: bool = False) -> wire.CallbackCall:
    peer = solo.peers[0]
    call = peer.message("callback_call")
    assert [operand.dtype for operand in call.operands] == (["token", "f32"] if tokens else ["f32"])
    operand = np.frombuffer(call.operands[-1].data, np.float32)
    value = wire.HostValue(dtype="f32", shape=[2, 2], data=(operand * factor).astype(np.float32).tobytes())
    values = [wire.HostValue(dtype="token"), value] if tokens else [value]
    peer.send(0, callback_result=wire.CallbackResult(call=call.call, values=values))
    return call  # type: ignore[no-any-return]


def test_callback(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "callback", [device])
    assert list(compiled.callbacks) == ["process/7"]
    array = solo.put({device: ONES})
    running, (result,) = solo.start([peer], program, [array], 1)
    call = _answer(solo, 5)
    assert call.callback == "process/7"
    assert (call.operands[0].dtype, list(call.operands[0].shape)) == ("f32", [2, 2])
    solo.reports(running)
    np.testing.assert_array_equal(solo.get(result, device), 6 * ONES)


def test_a_callback_may_use_the_worker(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device])
    double, _ = solo.compile(peer, "double", [device])
    array = solo.put({device: ONES})
    running, _ = solo.start([peer], program, [array], 1)
    solo.execute([peer], double, [array], 1)
    nested, _ = solo.start([peer], program, [array], 1)
    first = peer.message("callback_call")
    _answer(solo, 1)
    solo.reports(nested)
    value = first.operands[0]
    peer.send(0, callback_result=wire.CallbackResult(call=first.call, values=[value]))
    solo.reports(running)


def test_ordered_callbacks(solo: Head) -> None:
    """Their tokens travel as values without data."""
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "ordered", [device])
    assert [(output.dtype, list(output.shape)) for output in compiled.outputs] == [("token", []), ("f32", [2, 2])]
    token = solo.put({device: np.empty((0,), np.bool_)})  # so JAX begins
    array = solo.put({device: ONES})
    running, (token, result) = solo.start([peer], program, [token, array], 2)
    again, (token, last) = solo.start([peer], program, [token, result], 2)
    for callback in ("process/1", "process/2", "process/1", "process/2"):
        assert _answer(solo, 3, tokens=True).callback == callback
    solo.reports(running)
    solo.reports(again)
    np.testing.assert_array_equal(solo.get(last, device), 81 * ONES)
    # A token can be moved, put together and waited for like any array.
    other, moved, apart = peer.devices[1], solo.number(), solo.number()
    piece = wire.Piece(**{"from": wire.ShardRef(array=token, device=device)})
    build = wire.Build(array=moved, dtype="token", shards=[wire.BuildShard(device=other, shape=[], pieces=[piece])])
    solo.ask([peer], build=build)
    solo.ask([peer], assemble=wire.Assemble(array=apart, shards=[wire.ShardRef(array=moved, device=other)]))
    assert solo.ask([peer], get=wire.Get(array=apart, pieces=[wire.GetPiece(device=other)]))[0].data == b""
    assert solo.ask([peer], get=wire.Get(array=token, pieces=[wire.GetPiece(device=device)]))[0].data == b""
    elsewhere, _ = solo.compile(peer, "ordered", [other])
    running, _ = solo.start([peer], elsewhere, [apart, solo.put({other: ONES})], 2)
    _answer(solo, 1, tokens=True)
    _answer(solo, 1, tokens=True)
    solo.reports(running)


def test_what_waits_for_a_callback_does_not_stop_the_worker(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    callback, _ = solo.compile(peer, "callback", [device])
    double, _ = solo.compile(peer, "double", [device])
    array = solo.put({device: ONES})
    running, (result,) = solo.start([peer], callback, [array], 1)
    after, (last,) = solo.start([peer], double, [result], 1)
    for _ in range(1200):  # a chain longer than Python would recurse
        each, (last,) = solo.start([peer], double, [result], 1)
        after += each
    (other,) = solo.execute([peer], double, [array], 1)  # as the callback itself may do
    np.testing.assert_array_equal(solo.get(other, device), 2 * ONES)
    _answer(solo, 1)
    solo.reports(running)
    solo.reports(after)
    np.testing.assert_array_equal(solo.get(last, device), 4 * ONES)


def test_failing_callback(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device])
    array = solo.put({device: ONES})
    running, (result,) = solo.start([peer], program, [array], 1)
    call = peer.message("callback_call")
    error = wire.Error(code=Code.INTERNAL, message="ValueError: boom")
    peer.send(0, callback_result=wire.CallbackResult(call=call.call, error=error))
    with pytest.raises(Failed, match="boom"):
        solo.reports(running)
    with pytest.raises(Failed, match="boom"):
        solo.get(result, device)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [wire.HostValue(dtype="f32", shape=[2, 2], data=bytes(16))] * 2,
        [wire.HostValue(dtype="f32", shape=[2], data=bytes(8))],
        [wire.HostValue(dtype="f32", shape=[4], data=bytes(16))],
        [wire.HostValue(dtype="s32", shape=[2, 2], data=bytes(16))],
        [wire.HostValue(dtype="f64", shape=[2, 2], data=bytes(32))],
        [wire.HostValue(dtype="f32", shape=[2, 2], data=bytes(8))],
        [wire.HostValue(dtype="token")],
        [wire.HostValue(dtype="nonsense", shape=[2, 2], data=bytes(16))],
    ],
    ids=["none", "two", "short", "flat", "integers", "doubles", "too few bytes", "token", "unknown dtype"],
)
def test_what_a_callback_returns_must_be_what_the_program_expects(solo: Head, values: list[wire.HostValue]) -> None:
    """XLA would read it from memory that is not there."""
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device])
    running, _ = solo.start([peer], program, [solo.put({device: ONES})], 1)
    call = peer.message("callback_call")
    peer.send(0, callback_result=wire.CallbackResult(call=call.call, values=values))
    with pytest.raises(Failed, match=r"host callback process/7 returned .*, but the program expects \(f32\[2, 2\]\)$") as caught:
        solo.reports(running)
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_program_with_callback_is_loaded(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device], blob_path=str(solo.directory / "called"))
    ready = peer.message("blob_ready", lambda m: m.program == program)
    if ready.HasField("error"):
        return  # others must compile it, and are told so
    loaded = solo.number()
    load = wire.Load(
        program=loaded,
        world=solo.world,
        blob=wire.Source(path=str(solo.directory / "called"), size=ready.size),
        options=solo.artifacts["callback"].options,
        devices=[device],
        replicas=1,
        partitions=1,
        outputs=[wire.ShardInfo(dtype="f32", shape=[2, 2], memory_kind="device")],
        callbacks=["process/8"],
    )
    solo.ask([peer], load=load)
    running, (result,) = solo.start([peer], loaded, [solo.put({device: ONES})], 1)
    assert _answer(solo, 2).callback == "process/8"
    solo.reports(running)
    np.testing.assert_array_equal(solo.get(result, device), 3 * ONES)


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
