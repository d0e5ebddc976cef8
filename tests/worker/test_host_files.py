"""Host buffers in files, which devices may take as their own memory."""

from __future__ import annotations

import os
import pathlib
import tempfile
import time
import types
from collections.abc import Iterator

import numpy as np
import pytest
from harness import Head

from everstep.wire import channel_pb2 as wire
from everstep.worker import hostdata

CONTENT = np.arange(1024 * 512, dtype=np.float32).reshape(1024, 512)
SECONDS = 30.0


@pytest.fixture
def memory() -> Iterator[pathlib.Path]:
    """A file with the content, in a filesystem in memory."""
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="everstep-test-") as directory:
        path = pathlib.Path(directory) / "content"
        path.write_bytes(CONTENT.tobytes())
        yield path


def put(head: Head, path: pathlib.Path, devices: list[int], strides: tuple[int, ...] = (), *, late: bool = False) -> int:
    """late: the file is told of after the command."""
    array, buffer = head.number(), head.number()
    data = wire.Source(path=str(path), size=CONTENT.nbytes)
    where = {"buffer": buffer} if late else {"data": data}
    shard = wire.HostShard(devices=devices, byte_strides=strides, has_strides=bool(strides), **where)
    sent = head.send(head.peers[:1], put=wire.Put(array=array, dtype="f32", shape=CONTENT.shape, shards=[shard]))
    if late:
        head.peers[0].send(0, buffer_ready=wire.BufferReady(buffer=buffer, data=data))
    head.reports(sent)
    return array


def is_mapped(head: Head, path: pathlib.Path) -> bool:
    return str(path) in pathlib.Path(f"/proc/{head.peers[0].process.pid}/maps").read_text()


@pytest.mark.parametrize("late", [False, True], ids=["there", "awaited"])
def test_a_file_becomes_memory_of_devices(solo: Head, memory: pathlib.Path, late: bool) -> None:
    peer = solo.peers[0]
    array = put(solo, memory, list(peer.devices), late=late)
    with memory.open("r+b") as file:
        file.write(np.float32(-1).tobytes())
    memory.unlink()
    for device in peer.devices:  # both have it
        np.testing.assert_array_equal(solo.get(array, device, shape=(1024, 512)).ravel()[:3], [-1, 1, 2])
    assert is_mapped(solo, memory)
    solo.ask([peer], delete=wire.Delete(arrays=[array]))
    deadline = time.monotonic() + SECONDS
    while is_mapped(solo, memory):
        assert time.monotonic() < deadline, "the file outlives the array"
        peer.message("heartbeat")


def test_a_program_does_not_write_to_the_file(solo: Head, memory: pathlib.Path) -> None:
    """One to which the array is donated."""
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "large", [device])
    array = put(solo, memory, [device])
    for step in range(1, 4):
        (array,) = solo.execute([peer], program, [array], 1)
        np.testing.assert_array_equal(solo.get(array, device, shape=(1024, 512)), CONTENT + step)
    np.testing.assert_array_equal(np.frombuffer(memory.read_bytes(), np.float32), CONTENT.ravel())


def test_it_is_taken_along_to_another_world(head: Head, memory: pathlib.Path) -> None:
    head.workers(1)
    head.form()
    device = head.peers[0].devices[0]
    array = put(head, memory, [device])
    head.form()
    program, _ = head.compile(head.peers[0], "large", [device])
    (array,) = head.execute(head.peers, program, [array], 1)
    np.testing.assert_array_equal(head.get(array, device, shape=(1024, 512)), CONTENT + 1)
    np.testing.assert_array_equal(np.frombuffer(memory.read_bytes(), np.float32), CONTENT.ravel())


def test_another_layout_is_copied(solo: Head, memory: pathlib.Path) -> None:
    device = solo.peers[0].devices[0]
    array = put(solo, memory, [device], strides=(4, 4096))
    memory.write_bytes(bytes(CONTENT.nbytes))
    content = solo.get(array, device, shape=(1024, 512))
    np.testing.assert_array_equal(content, CONTENT.reshape(512, 1024).T)


@pytest.mark.parametrize(("free", "stays"), [(80, True), (70, False)])
def test_what_leaves_too_little_room_is_copied(memory: pathlib.Path, monkeypatch: pytest.MonkeyPatch, free: int, stays: bool) -> None:
    monkeypatch.setattr(os, "fstatvfs", lambda _: types.SimpleNamespace(f_bavail=free, f_blocks=100))
    with hostdata.File.open(str(memory), CONTENT.nbytes) as content:
        assert content.may_stay == stays


def test_a_file_on_a_disk_is_copied(tmp_path: pathlib.Path) -> None:
    (tmp_path / "content").write_bytes(b"1234")
    with hostdata.File.open(str(tmp_path / "content"), 4) as content:
        assert not content.may_stay
