"""Host buffers: small in memory, large as files, gone when nobody needs them."""

import asyncio
import pathlib

import pytest

from everstep.head.buffers import INLINE, Buffer, HostBuffers
from everstep.wire.errors import Code, Failure


@pytest.fixture
def table() -> dict[int, Buffer]:
    return {}


@pytest.fixture
def buffers(tmp_path: pathlib.Path, table: dict[int, Buffer]) -> HostBuffers:
    return HostBuffers(tmp_path, table)


def fill(buffers: HostBuffers, handle: int, data: bytes, chunk: int = 1 << 20) -> None:
    writer = buffers.begin(handle, len(data))
    for at in range(0, len(data), chunk):
        writer.write(data[at : at + chunk])
    writer.finish()


@pytest.mark.parametrize("size", [0, 1, INLINE, INLINE + 1, 3 * INLINE + 7])
def test_round_trip(buffers: HostBuffers, tmp_path: pathlib.Path, table: dict[int, Buffer], size: int) -> None:
    data = bytes(i % 251 for i in range(size))
    fill(buffers, 7, data)
    assert bytes(asyncio.run(buffers.read(7))) == data
    buffers.delete(7)
    assert list(tmp_path.iterdir()) == []
    assert table == {}


def test_a_reader_may_come_first(buffers: HostBuffers) -> None:
    async def scenario() -> None:
        reading = asyncio.ensure_future(buffers.read(1))
        await asyncio.sleep(0)
        fill(buffers, 1, b"late")
        assert bytes(await reading) == b"late"

    asyncio.run(scenario())


def test_a_consumer_may_come_first(buffers: HostBuffers, table: dict[int, Buffer]) -> None:
    taken = buffers.take(1)
    told: list[bytes] = []
    taken.when_settled(lambda: told.append(bytes(taken.view())))
    fill(buffers, 1, b"late")
    assert told == [b"late"]
    taken.let_go()
    assert table == {}
    fill(buffers, 1, b"a new one under the same handle")


@pytest.mark.parametrize("size", [10, 2 * INLINE])
def test_too_much_and_too_little_are_told(buffers: HostBuffers, size: int) -> None:
    writer = buffers.begin(1, size)
    with pytest.raises(Failure) as more:
        writer.write(bytes(size + 1))
    writer.write(bytes(size - 1))
    with pytest.raises(Failure) as less:
        writer.finish()
    assert more.value.code is less.value.code is Code.INVALID_ARGUMENT


def test_content_comes_once(buffers: HostBuffers) -> None:
    fill(buffers, 1, b"x")
    with pytest.raises(Failure) as error:
        buffers.begin(1, 1)
    assert error.value.code is Code.ALREADY_EXISTS


def test_an_aborted_buffer_tells_all_who_wait(buffers: HostBuffers) -> None:
    async def scenario() -> None:
        reading = asyncio.ensure_future(buffers.read(1))
        await asyncio.sleep(0)
        buffers.begin(1, 2 * INLINE).abort(Failure(Code.CANCELLED, "the client is gone"))
        with pytest.raises(Failure, match="the client is gone"):
            await reading

    asyncio.run(scenario())


def test_close_frees_what_came_and_fails_what_did_not(buffers: HostBuffers, tmp_path: pathlib.Path, table: dict[int, Buffer]) -> None:
    fill(buffers, 1, bytes(2 * INLINE))
    taken = buffers.take(2)
    awaited = buffers.entry(3)
    buffers.close()
    assert awaited.failure is not None
    assert taken.failure is not None
    taken.let_go()
    assert list(tmp_path.iterdir()) == []
    assert table == {}
