"""Arrays to storage and from there, by two workers of two devices each, beside plain TensorStore."""

from __future__ import annotations

import fcntl
import itertools
import pathlib
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tensorstore
from harness import Failed, Head, Peer, within

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
from everstep.wire.errors import Code, Failure
from everstep.worker import storage
from everstep.worker.persistence import Requests

VALUES = {
    "f32": np.arange(32, dtype=np.float32).reshape(4, 8),
    "bf16": np.arange(32).reshape(4, 8).astype(ml_dtypes.bfloat16),
    "pred": np.arange(32).reshape(4, 8) % 3 == 0,
}


def boxes(shape: Sequence[int], *tiles: int) -> list[wire.Box]:
    sizes = [size // count for size, count in zip(shape, tiles, strict=True)]
    starts = itertools.product(*([size * index for index in range(count)] for size, count in zip(sizes, tiles, strict=True)))
    return [wire.Box(start=start, size=sizes) for start in starts]


def cut(box: wire.Box) -> tuple[Any, ...]:
    return *(slice(start, start + size) for start, size in zip(box.start, box.size, strict=True)), ...


def stored(directory: pathlib.Path, name: str, value: np.ndarray[Any, Any], array: int, tile: Sequence[int] = ()) -> wire.StoredArray:
    dtype = dtypes.from_numpy(value.dtype)
    return wire.StoredArray(location=str(directory), name=name, dtype=dtype, shape=value.shape, tile=tile, array=array)


def messages(head: Head, what: wire.StoredArray, pieces: dict[int, wire.Box]) -> Iterator[tuple[Peer, wire.StoredArray]]:
    """For each worker what it has to do: pieces by device."""
    for peer in head.peers:
        mine = wire.StoredArray()
        mine.CopyFrom(what)
        mine.pieces.extend(wire.GetPiece(device=device, box=box) for device, box in pieces.items() if device in peer.devices)
        if mine.pieces:
            yield peer, mine


def save(head: Head, directory: pathlib.Path, name: str, value: np.ndarray[Any, Any], *tiles: int) -> None:
    devices = [device for peer in head.peers for device in peer.devices]
    pieces = dict(zip(devices, boxes(value.shape, *tiles), strict=False))
    array = head.put({device: value[cut(box)] for device, box in pieces.items()})
    what = stored(directory, name, value, array, next(iter(pieces.values())).size)
    sent = [head.send([peer], save=wire.Save(arrays=[message])) for peer, message in messages(head, what, pieces)]
    head.reports([each for some in sent for each in some])


def restore(head: Head, directory: pathlib.Path, name: str, value: np.ndarray[Any, Any], *tiles: int) -> None:
    """It must be `value`, and each tile lie on a device from the last to the first, and once more from the first on."""
    devices = [device for peer in head.peers for device in peer.devices][::-1]
    pieces = dict(zip(devices, itertools.cycle(boxes(value.shape, *tiles)), strict=False))
    what = stored(directory, name, value, head.number())
    sent = [head.send([peer], restore=wire.Restore(arrays=[message])) for peer, message in messages(head, what, pieces)]
    head.reports([each for some in sent for each in some])
    for device, box in pieces.items():
        np.testing.assert_array_equal(head.get(what.array, device, what.dtype, box.size), value[cut(box)])


def opened(directory: pathlib.Path, name: str, driver: str = "zarr", **options: Any) -> Any:
    """By plain TensorStore."""
    return tensorstore.open({"driver": driver, "kvstore": f"file://{directory}/{name}/"}, **options).result()


@pytest.mark.parametrize("dtype", VALUES)
def test_what_workers_save_anybody_can_read(pair: Head, tmp_path: pathlib.Path, dtype: str) -> None:
    value = VALUES[dtype]
    save(pair, tmp_path, "grid", value, 2, 2)
    np.testing.assert_array_equal(opened(tmp_path, "grid").read().result(), value)
    restore(pair, tmp_path, "grid", value, 1, 1)
    restore(pair, tmp_path, "grid", value, 1, 4)
    restore(pair, tmp_path, "grid", value, 4, 1)


def test_scalars_and_empty_arrays(pair: Head, tmp_path: pathlib.Path) -> None:
    for name, value in {"scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32)}.items():
        save(pair, tmp_path, name, value, *[1] * value.ndim)
        np.testing.assert_array_equal(opened(tmp_path, name).read().result(), value)
        restore(pair, tmp_path, name, value, *[1] * value.ndim)


@pytest.mark.parametrize("driver", ["zarr", "zarr3"])
@pytest.mark.parametrize("database", [False, True])
def test_what_anybody_has_saved_workers_can_read(pair: Head, tmp_path: pathlib.Path, driver: str, database: bool) -> None:
    value = VALUES["f32"]
    kvstore = {"driver": "ocdbt", "base": f"file://{tmp_path}/", "path": "x/"} if database else f"file://{tmp_path}/x/"
    spec = {"driver": driver, "kvstore": kvstore}
    layout = tensorstore.ChunkLayout(chunk_shape=[3, 5])
    tensorstore.open(spec, create=True, dtype="float32", shape=[4, 8], chunk_layout=layout).result().write(value).result()
    restore(pair, tmp_path, "x", value, 2, 2)


def test_large_arrays_are_cut_into_chunks(solo: Head, tmp_path: pathlib.Path) -> None:
    value = np.arange(storage.CHUNK // 4 // 1000 * 1000 + 1000, dtype=np.float32).reshape(-1, 1000)  # a bit more than a chunk
    directory = tmp_path / "large"
    array, device = solo.number(), solo.peers[0].devices[0]
    source = tmp_path / "source"
    value.tofile(source)
    put = wire.Put(array=array, dtype="f32", shape=value.shape)
    put.shards.add(devices=[device], data=wire.Source(path=str(source), size=value.nbytes))
    solo.ask(solo.peers, put=put)
    message = stored(directory, "x", value, array, value.shape)
    message.pieces.add(device=device, box=wire.Box(start=[0, 0], size=value.shape))
    solo.ask(solo.peers, save=wire.Save(arrays=[message]))
    chunks = list((directory / "x").glob("[0-9]*"))
    assert 1 < len(chunks) < 20
    np.testing.assert_array_equal(opened(directory, "x").read().result(), value)
    message.array = solo.number()
    solo.ask(solo.peers, restore=wire.Restore(arrays=[message]))
    corner = wire.GetPiece(device=device, box=wire.Box(start=[0, 0], size=value.shape))
    target = tmp_path / "target"
    target.write_bytes(b"\0" * value.nbytes)
    get = wire.Get(array=message.array, size=value.nbytes, path=str(target), shape=value.shape, byte_strides=value.strides, pieces=[corner])
    solo.ask(solo.peers, get=get)
    np.testing.assert_array_equal(np.fromfile(target, np.float32).reshape(value.shape), value)


def test_what_can_not_be_restored_says_why(pair: Head, tmp_path: pathlib.Path) -> None:
    value = VALUES["f32"]
    save(pair, tmp_path, "x", value, 2, 2)
    with pytest.raises(Failed, match=r"restoring y from .*: there is no such array") as caught:
        restore(pair, tmp_path, "y", value, 2, 2)
    assert caught.value.code == Code.NOT_FOUND
    with pytest.raises(Failed, match=r"it is stored as float32\[4, 8\], not as float32\[4, 4\]"):
        restore(pair, tmp_path, "x", value[:, :4], 2, 2)
    with pytest.raises(Failed, match="not as int32"):
        restore(pair, tmp_path, "x", value.astype(np.int32), 2, 2)
    with pytest.raises(Failed, match=r"saving x to .*shape"):
        save(pair, tmp_path, "x", value[:, :4], 2, 2)
    (tmp_path / "x" / "1.1").unlink()
    with pytest.raises(Failed, match=r"restoring x from .*1.1\" is missing"):
        restore(pair, tmp_path, "x", value, 2, 2)


def test_a_hanging_save_can_be_abandoned(solo: Head, tmp_path: pathlib.Path) -> None:
    device, value = solo.peers[0].devices[0], VALUES["f32"]
    array = solo.put({device: value})
    message = stored(tmp_path, "x", value, array, value.shape)
    message.pieces.add(device=device, box=wire.Box(start=[0, 0], size=value.shape))
    (tmp_path / "x").mkdir()
    with (tmp_path / "x" / ".zarray.__lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        (sent,) = solo.send(solo.peers, save=wire.Save(arrays=[message]))
        np.testing.assert_array_equal(solo.get(array, device, shape=value.shape), value)
        assert not solo.peers[0].reported(sent[1])
        solo.peers[0].send(abandon=wire.Abandon(operation=sent[1]))
        with within(10), pytest.raises(Failed, match="it was abandoned"):
            solo.reports([sent])


def test_what_has_failed_lets_go_first() -> None:
    requests = Requests()
    (one, first), (other, second) = tensorstore.Promise.new(), tensorstore.Promise.new()
    for future in (first, second):
        requests.start(1, "saving x", lambda future=future: future)
    one.set_exception(ValueError("NOT_FOUND: gone [tensorstore_spec='...']"))
    for wait in (requests.finish, lambda: requests.start(1, "saving y", lambda: first)):
        with pytest.raises(Failure, match=r"^NOT_FOUND: saving x: gone$"):
            wait()
    letting_go = threading.Thread(target=requests.let_go)
    letting_go.start()
    assert letting_go.is_alive()
    other.set_result(None)
    letting_go.join(1)
    assert not letting_go.is_alive()


def test_without_tensorstore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    with pytest.raises(Failure, match=r"pip install 'everstep\[persistence\]'"):
        storage.Storage()


@pytest.mark.parametrize(
    ("tile", "chunk"),
    [
        ((), []),
        ((0, 3), [1, 3]),
        ((1024, 1024), [1024, 1024]),
        ((1 << 15, 1024), [1 << 14, 1024]),
        ((3, 1 << 26), [1, 1 << 24]),
        ((16411, 4096), [16411, 512]),  # a prime number of rows
    ],
)
def test_chunks(tile: tuple[int, ...], chunk: list[int]) -> None:
    assert storage.chunk(tile, "f32") == chunk


def test_parts_cover_a_box_along_its_chunks() -> None:
    rows, columns = 3 << 10, 1 << 12  # 16 MiB for 1024 rows
    box = wire.Box(start=[rows * 2, 0], size=[rows * 3, columns])
    parts = list(storage.parts(box, 1 << 10, 4))
    assert [part[0].start for part in parts[1:]] == [part[0].stop for part in parts[:-1]]
    assert (parts[0][0].start, parts[-1][0].stop) == (rows * 2, rows * 5)
    assert all(part[0].start % 1024 == 0 and part[1] == slice(0, columns) for part in parts)
    assert len(parts) == 3  # 64 MiB each, of a grid that starts at 0
    assert list(storage.parts(wire.Box(), 1, 4)) == [()]
    assert list(storage.parts(wire.Box(start=[0], size=[0]), 1, 4)) == []
