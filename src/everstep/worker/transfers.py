"""Data between host buffers, devices and other workers. All of it beside the command queue."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from everstep.wire import bulk, dtypes
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure, invalid
from everstep.worker import bits, hostdata, xla
from everstep.worker.arrays import Arrays, Stored, Unmade, assembled, when_done
from everstep.worker.reports import Reporter
from everstep.worker.world import World, Worlds

_THREADS = 512  # most at one time; each may block for another worker
_PUTS = 8  # at one time: they block for nobody, and more would not be faster
_WRITE = 16 << 20  # bytes per system call: other threads want to write too
_AT_ONCE = 1 << 16  # bytes: content up to this size that is at hand is put without another thread


class Buffers:
    """Host buffers of the head, which may be told of before or after a Put wants them."""

    def __init__(self) -> None:
        self._buffers: dict[int, Future[wire.Source]] = {}

    def future(self, buffer: int) -> Future[wire.Source]:
        return self._buffers.setdefault(buffer, Future())

    def ready(self, _: int, message: wire.BufferReady) -> None:
        future = self.future(message.buffer)
        if message.HasField("error"):
            future.set_exception(Failure(Code(message.error.code), message.error.message))
        else:
            future.set_result(message.data)

    def consumed(self, buffer: int) -> None:
        self._buffers.pop(buffer, None)


class Transfers:
    """Puts, gets, builds, bitcasts. Called by the executor in the order of commands; each call returns at once."""

    def __init__(self, arrays: Arrays, worlds: Worlds, reporter: Reporter, peers: bulk.Client, head: bulk.Client) -> None:
        self.buffers = Buffers()
        self._arrays = arrays
        self._worlds = worlds
        self._reporter = reporter
        self._peers = peers
        self._head = head
        self._pool = ThreadPoolExecutor(_THREADS, "transfer")
        self._puts = ThreadPoolExecutor(_PUTS, "put")

    # ---------------------------------------------------------------- from host buffers

    def put(self, op: int, message: wire.Put) -> None:
        world = self._worlds.newest()
        sources: list[Future[wire.Source]] = []
        for shard in message.shards:
            if shard.HasField("data"):
                source: Future[wire.Source] = Future()
                source.set_result(shard.data)
            else:
                source = self.buffers.future(shard.buffer)
            sources.append(source)

        def make() -> Stored:
            return _put(world, message, [self._content(source.result()) for source in sources])

        def consume() -> None:
            for shard in message.shards:
                self.buffers.consumed(shard.buffer)

        if all(source.done() and not source.exception() and _is_small(source.result()) for source in sources):
            consume()
            self._finish(op, message.array, make)
        else:
            self._later(op, message.array, make, sources, consume, self._puts)

    def program(self, source: wire.Source) -> bytes:
        """A module or an executable, from the head or another worker. Raises Failure, OSError."""
        return bytes(self._content(source)[:])

    def _content(self, source: wire.Source) -> hostdata.Content:
        if source.path:
            return hostdata.File.open(source.path, source.size) if source.size else b""
        if not source.HasField("bulk"):
            return source.inline
        return self._client(source.bulk).get(source.bulk.address, source.bulk.key)

    def _client(self, place: wire.Bulk) -> bulk.Client:
        return self._peers if place.address else self._head

    # ---------------------------------------------------------------- to host buffers

    def get(self, op: int, message: wire.Get) -> None:
        stored = self._arrays.future(message.array)
        release = self._arrays.hold([message.array])

        def copy() -> None:
            report = wire.Got(op=op)
            try:
                report.data = self._get(stored.result(), message)
            except Exception as error:
                report.error.CopyFrom(Reporter.error(xla.failure(error)))
            finally:
                release()
            self._reporter.send(wire.ToHead(got=report))

        when_done([stored], lambda: self._pool.submit(copy))

    def _get(self, stored: Stored, message: wire.Get) -> bytes:
        if stored.dtype == dtypes.STRING:
            return bytes(stored.shard(message.pieces[0].device))
        if stored.dtype == dtypes.TOKEN:
            return bytes(_part(stored, message.pieces[0].device))
        shape, strides, dtype = tuple(message.shape), tuple(message.byte_strides), dtypes.to_numpy(stored.dtype)
        if math.prod(shape) == 0:
            return b""
        if message.HasField("bulk"):
            for piece in message.pieces:
                self._send(_part(stored, piece.device), piece, strides, message.bulk)
            return b""
        if not message.path:
            data = bytearray(message.size)
            _fill(np.ndarray(shape, dtype, buffer=data, strides=strides), stored, message.pieces)
            return bytes(data)
        descriptor = os.open(message.path, os.O_RDWR)
        try:
            rest = [piece for piece in message.pieces if not _write(descriptor, stored, piece, strides)]
            if rest:
                with mmap.mmap(descriptor, message.size) as mapped:
                    target = np.ndarray(shape, dtype, buffer=mapped, strides=strides)
                    _fill(target, stored, rest)
                    del target
        finally:
            os.close(descriptor)
        return b""

    def _send(self, content: np.ndarray[Any, Any], piece: wire.GetPiece, strides: Sequence[int], to: wire.Bulk) -> None:
        if any(stride < 0 for stride in strides):
            raise invalid("byte strides of a host buffer can't be negative")
        run, outer = hostdata.run_of(content, strides)
        dimensions = list(zip(content.shape[:outer], strides[:outer], strict=True))
        self._client(to).put(to.address, to.key, hostdata.as_bytes(content), _offset(piece, strides), run, dimensions)

    # ---------------------------------------------------------------- between devices

    def build(self, op: int, message: wire.Build) -> None:
        world = self._worlds.newest()
        local = {
            getattr(piece, "from").array: self._arrays.future(getattr(piece, "from").array)
            for shard in message.shards
            for piece in shard.pieces
            if not piece.bulk_address
        }

        def make() -> Stored:
            sources = {array: future.result() for array, future in local.items()}
            kind = message.memory_kind or None
            shards = {shard.device: self._build(world, message.dtype, kind, shard, sources) for shard in message.shards}
            return Stored.of_shards(message.dtype, kind, world, shards)

        self._later(op, message.array, make, list(local.values()), self._arrays.hold(local))

    def _build(self, world: World, dtype: str, memory_kind: str | None, shard: wire.BuildShard, sources: dict[int, Stored]) -> Any:
        if dtype == dtypes.STRING:
            return self._piece(dtype, shard.pieces[0], sources)
        device = world.device(shard.device)
        shape = hostdata.held_shape(dtype, shard.shape)
        if len(shard.pieces) == 1:
            content = self._piece(dtype, shard.pieces[0], sources)
            if content.shape == shape:
                return xla.put(content, device, memory_kind)
        target = xla.empty(shape, hostdata.numpy_dtype(dtype))
        for piece in shard.pieces:
            content = self._piece(dtype, piece, sources)
            target[hostdata.place(piece.to, content.shape) if piece.to else ...] = content
        return xla.give(target, device, memory_kind)

    def _piece(self, dtype: str, piece: wire.Piece, sources: dict[int, Stored]) -> Any:
        source, box = getattr(piece, "from"), piece.box if piece.HasField("box") else None
        if not piece.bulk_address:
            return _part(sources[source.array], source.device, box)
        data = self._peers.get(piece.bulk_address, _shard_key(source.array, source.device, box))
        return bytes(data) if dtype == dtypes.STRING else hostdata.decode(data, dtype)

    def assemble(self, op: int, message: wire.Assemble) -> None:
        sources = {shard.array: self._arrays.future(shard.array) for shard in message.shards}

        def make() -> Stored:
            return assembled([(sources[shard.array].result(), shard.device) for shard in message.shards])

        if all(source.done() for source in sources.values()):
            self._finish(op, message.array, make)
        else:
            self._later(op, message.array, make, list(sources.values()), self._arrays.hold(sources))
        if message.consume:
            self._arrays.delete(sources)

    def bitcast(self, op: int, message: wire.Bitcast) -> None:
        world = self._worlds.newest()
        source = self._arrays.future(message.source)

        def make() -> Stored:
            stored = source.result()
            shards = {}
            for device, shard in stored.shards.items():
                content = bits.bitcast(xla.view(shard), stored.dtype, message.dtype, tuple(message.shape))
                shards[device] = xla.put(content, world.device(device), stored.memory_kind)
            return Stored.of_shards(message.dtype, stored.memory_kind, world, shards)

        self._later(op, message.array, make, [source], self._arrays.hold([message.source]))

    # ---------------------------------------------------------------- for others

    def provide(self, key: str) -> bulk.Lent:
        """A shard for another worker, by a key made by `_shard_key`. Waits for the array. Raises Failure."""
        try:
            _, number, device, box = key.split("/")
            array, place = int(number), _parse_box(box)
        except ValueError:
            raise invalid(f"there is no bulk key {key!r}") from None
        stored = self._arrays.expect(array)
        release = self._arrays.hold([array])
        try:
            part = _part(stored, int(device), place)
            return bulk.Lent((part,) if isinstance(part, bytes) else hostdata.encode(part), release)
        except Exception as error:
            release()
            raise xla.failure(error) from None

    def abandon(self, failure: Failure) -> None:
        """Whatever waits for another worker's data fails. Nothing is kept for an incarnation that is gone."""
        self._peers.abandon(failure)
        self._peers.close()

    # ---------------------------------------------------------------- how they run

    def _finish(self, op: int, array: int, make: Callable[[], Stored]) -> None:
        failure = None
        try:
            self._arrays.set(array, make())
        except Exception as error:
            failure = xla.failure(error)
            self._arrays.set(array, failure)
        self._reporter.done(op, failure)

    def _later(
        self,
        op: int,
        array: int,
        make: Callable[[], Stored],
        sources: Sequence[Future[Any]],
        afterwards: Callable[[], None] = lambda: None,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        """Make an array once its sources are there, unless nobody wants it any more. Until then it has a placeholder."""
        result = Unmade()
        self._arrays.set(array, result)

        def work() -> None:
            failure = None
            try:
                if result.set_running_or_notify_cancel():
                    result.set_result(make())
            except Exception as error:
                failure = xla.failure(error)
                result.set_exception(failure)
            finally:
                afterwards()
            self._reporter.done(op, failure)

        when_done(sources, lambda: (pool or self._pool).submit(work))


# ---------------------------------------------------------------- host content


def _is_small(source: wire.Source) -> bool:
    return not source.path and not source.HasField("bulk") and len(source.inline) <= _AT_ONCE


def _put(world: World, message: wire.Put, contents: Sequence[hostdata.Content]) -> Stored:
    shards: dict[int, Any] = {}
    kind = message.memory_kind or None
    for shard, content in zip(message.shards, contents, strict=True):
        if message.dtype == dtypes.STRING:
            shards |= dict.fromkeys(shard.devices, bytes(content))
            continue
        strides = tuple(shard.byte_strides) if shard.has_strides else None
        shape = hostdata.held_shape(message.dtype, message.shape)
        array = hostdata.host_array(content, hostdata.numpy_dtype(message.dtype), shape, strides)
        # Nobody writes to the file any more: the device may have it as its memory, and need not copy.
        place = xla.give if isinstance(content, hostdata.File) and content.may_stay and array.flags.c_contiguous else xla.put
        for device in shard.devices:
            shards[device] = place(array, world.device(device), kind)
    return Stored.of_shards(message.dtype, kind, world, shards)


def _offset(piece: wire.GetPiece, strides: Sequence[int]) -> int:
    return sum(start * stride for start, stride in zip(piece.box.start, strides, strict=True)) if piece.HasField("box") else 0


def _write(descriptor: int, stored: Stored, piece: wire.GetPiece, strides: Sequence[int]) -> bool:
    """Write a shard to the file if it lies there in one run: faster than through a mapping. Whether it did."""
    content = _part(stored, piece.device)
    if hostdata.run_of(content, strides)[1]:
        return False
    data, at = hostdata.as_bytes(content), _offset(piece, strides)
    while data:
        count = os.pwrite(descriptor, data[:_WRITE], at)
        data, at = data[count:], at + count
    return True


def _fill(target: np.ndarray[Any, Any], stored: Stored, pieces: Sequence[wire.GetPiece]) -> None:
    for piece in pieces:
        content = _part(stored, piece.device)
        target[hostdata.place(piece.box.start, content.shape) if piece.HasField("box") else ...] = content


# ---------------------------------------------------------------- shards between workers


def _part(stored: Stored, device: int, box: wire.Box | None = None) -> Any:
    """The content of a shard, or of a part of it. Waits for it. Strings are bytes, tokens have no elements."""
    shard = stored.shard(device)
    if isinstance(shard, bytes):
        return shard
    if stored.dtype == dtypes.TOKEN:
        shard.block_until_ready()
        return np.empty((0,), np.bool_)
    content = xla.view(shard)
    return content if box is None else content[hostdata.place(box.start, box.size)]


def _shard_key(array: int, device: int, box: wire.Box | None) -> str:
    place = "" if box is None else ",".join(f"{start}:{size}" for start, size in zip(box.start, box.size, strict=True)) or "-"
    return f"shard/{array}/{device}/{place}"


def _parse_box(text: str) -> wire.Box | None:
    if not text:
        return None
    pairs = [tuple(map(int, pair.split(":"))) for pair in text.split(",")] if text != "-" else []
    return wire.Box(start=[start for start, _ in pairs], size=[size for _, size in pairs])
