"""Saves and restores: this worker's shards to storage and from there, beside the command queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
from everstep.wire.errors import Code, Failure, invalid
from everstep.worker import storage, xla
from everstep.worker.arrays import Arrays, Stored, when_done
from everstep.worker.faults import FAULTS
from everstep.worker.reports import Reporter
from everstep.worker.storage import Storage
from everstep.worker.world import World, Worlds

if TYPE_CHECKING:
    import tensorstore

_AT_ONCE = 256 << 20  # bytes of arrays under way between memory and storage, for each command
_LETTING_GO = 3.0  # seconds, less than the head waits: so long a command that has failed waits for its requests under way


class Requests:
    """The requests to storage of one command: a few at a time, and none any more once it is abandoned."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._bytes = 0
        self._count = 0
        self._failure: Failure | None = None
        self._abandoned = False

    def abandon(self) -> None:
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()

    def result(self, future: tensorstore.Future[Any]) -> Any:
        """Wait for it. Raises what it raises, Failure (ABORTED) once all is abandoned."""
        future.add_done_callback(lambda _: self._notify())
        with self._changed:
            self._changed.wait_for(lambda: self._abandoned or future.done())
        self._check()
        return future.result()

    def start(self, nbytes: int, what: str, request: Callable[[], tensorstore.Future[None]]) -> None:
        """Start a request as soon as there is room for it. Raises the failure of an earlier one, Failure (ABORTED) if abandoned."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or not self._count or self._bytes + nbytes <= _AT_ONCE)
            self._check()
            self._bytes += nbytes
            self._count += 1
        try:
            future = request()
        except BaseException:
            self._end(nbytes, None)
            raise
        future.add_done_callback(lambda done: self._end(nbytes, _error(done, what)))

    def finish(self) -> None:
        """Wait for all. Raises as `start` does, without waiting for the others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count or self._ended)
            self._check()

    def let_go(self) -> None:
        """After a failure: give those under way a moment to end."""
        with self._changed:
            self._changed.wait_for(lambda: not self._count, _LETTING_GO)

    @property
    def _ended(self) -> bool:
        return self._abandoned or self._failure is not None

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._abandoned:
            raise Failure(Code.ABORTED, "it was abandoned")

    def _end(self, nbytes: int, failure: Failure | None) -> None:
        with self._changed:
            self._bytes -= nbytes
            self._count -= 1
            self._failure = self._failure or failure
            self._changed.notify_all()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Persistence:
    """Called by the executor in the order of commands; each call returns at once."""

    def __init__(self, arrays: Arrays, worlds: Worlds, reporter: Reporter) -> None:
        self._arrays = arrays
        self._worlds = worlds
        self._reporter = reporter
        self._lock = threading.Lock()
        self._running: dict[int, Requests] = {}
        self._newest = 0  # the highest number of an operation that has begun here
        self._abandoned: set[int] = set()  # before they have begun

    def save(self, op: int, message: wire.Save) -> None:
        sources = {array.array: self._arrays.future(array.array) for array in message.arrays}
        release = self._arrays.hold(sources)

        def work(requests: Requests) -> None:
            place = Storage()
            for array in message.arrays:
                _save(place, array, sources[array.array].result(), requests)
            requests.finish()

        when_done(list(sources.values()), self._work(op, work, lambda _: release()))

    def restore(self, op: int, message: wire.Restore) -> None:
        world = self._worlds.newest()
        results: dict[int, Future[Stored]] = {array.array: Future() for array in message.arrays}
        for number, result in results.items():
            self._arrays.set(number, result)

        def work(requests: Requests) -> None:
            place = Storage()
            targets = [_restore(place, array, requests) for array in message.arrays]
            requests.finish()
            for array, contents in zip(message.arrays, targets, strict=True):
                results[array.array].set_result(_give(array, contents, world))

        def end(failure: Failure | None) -> None:
            for result in results.values():
                if not result.done():
                    result.set_exception(failure or Failure(Code.ABORTED, "it was abandoned"))

        self._work(op, work, end)()

    def abandon(self, _: int, message: wire.Abandon) -> None:
        """Begin nothing more of that command."""
        with self._lock:
            requests = self._running.get(message.operation)
            if requests is None and message.operation > self._newest:
                self._abandoned.add(message.operation)
        if requests is not None:
            requests.abandon()

    def _work(self, op: int, work: Callable[[Requests], None], end: Callable[[Failure | None], None]) -> Callable[[], None]:
        """What does the work in a thread of its own, and reports."""
        requests = Requests()
        with self._lock:
            self._newest = op
            self._running[op] = requests
            if op in self._abandoned:
                self._abandoned.discard(op)
                requests.abandon()

        def run() -> None:
            failure = None
            try:
                work(requests)
            except Exception as error:
                failure = xla.failure(error)
                requests.let_go()
            with self._lock:
                del self._running[op]
            end(failure)
            self._reporter.done(op, failure)

        return lambda: threading.Thread(target=run, name=f"storage {op}", daemon=True).start()


def _save(place: Storage, array: wire.StoredArray, stored: Stored, requests: Requests) -> None:
    what = f"saving {array.name} to {array.location}"
    if stored.dtype in (dtypes.STRING, dtypes.TOKEN):
        raise invalid(f"{what}: arrays of {stored.dtype}s can't be saved")
    contents = [xla.view(stored.shard(piece.device)) for piece in array.pieces]
    try:
        store = place.create(array, requests.result)
    except Exception as error:
        raise storage.failure(error, what) from None
    rows = (storage.chunk(array.tile, array.dtype) or [1])[0]
    for piece, content in zip(array.pieces, contents, strict=True):
        for part in storage.parts(piece.box, rows, content.itemsize):
            FAULTS.reach("write")
            cut = content[_inside(piece.box, part)]
            requests.start(cut.nbytes, what, lambda part=part, cut=cut: place.write(store, part, cut))  # type: ignore[misc]


def _restore(place: Storage, array: wire.StoredArray, requests: Requests) -> list[tuple[storage.Content, list[int]]]:
    """Start to read. What is read, each with the devices that are to hold it."""
    what = f"restoring {array.name} from {array.location}"
    try:
        store = place.open(array, requests.result)
    except Exception as error:
        raise storage.failure(error, what) from None
    rows = (store.chunk_layout.read_chunk.shape or (1,))[0] or 1
    devices: dict[tuple[int, ...], list[int]] = {}
    boxes: dict[tuple[int, ...], wire.Box] = {}
    for piece in array.pieces:
        key = (*piece.box.start, *piece.box.size)
        devices.setdefault(key, []).append(piece.device)
        boxes[key] = piece.box
    read = []
    for key, box in boxes.items():
        target = xla.empty(tuple(box.size), dtypes.to_numpy(array.dtype))
        read.append((target, devices[key]))
        for part in storage.parts(box, rows, target.itemsize):
            FAULTS.reach("read")
            cut = target[_inside(box, part)]
            requests.start(cut.nbytes, what, lambda part=part, cut=cut: place.read(store, part, cut))  # type: ignore[misc]
    return read


def _give(array: wire.StoredArray, contents: list[tuple[storage.Content, list[int]]], world: World) -> Stored:
    kind = array.memory_kind or None
    shards = {}
    for content, (first, *others) in contents:
        for device in others:
            shards[device] = xla.put(content, world.device(device), kind)
        shards[first] = xla.give(content, world.device(first), kind)
    return Stored.of_shards(array.dtype, kind, world, shards)


def _inside(box: wire.Box, part: tuple[slice, ...]) -> tuple[Any, ...]:
    """The same part, counted from the start of the box. With an ellipsis: NumPy makes a copy of a scalar otherwise."""
    return *(slice(cut.start - start, cut.stop - start) for cut, start in zip(part, box.start, strict=True)), ...


def _error(future: tensorstore.Future[None], what: str) -> Failure | None:
    error = future.exception()
    return None if error is None else storage.failure(error, what)
