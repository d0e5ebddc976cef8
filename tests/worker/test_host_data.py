"""One worker of two devices: arrays, from host buffers and back, and made of each other."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Failed, Head

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
from everstep.wire.errors import Code

ONES = np.ones((2, 2), np.float32)


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
