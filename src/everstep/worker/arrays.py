"""The arrays that this worker holds shards of."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import numpy as np

from everstep.wire import dtypes
from everstep.wire.errors import Code, Failure, invalid
from everstep.worker import xla

if TYPE_CHECKING:
    from everstep.worker.world import Locals, World

_REMEMBERED = 1 << 16  # deleted ids
_EXPECT_SECONDS = 60.0


class Readers:
    """Those who read an array beside the queue. Arrays that share memory share this."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Stored:
    """The shards of one array on this worker's devices.

    They are held joined, as XLA takes and gives them, or one by one, or both; each form is made from the other when first asked for.
    Strings are held on the host, as the bytes they came in.
    """

    __slots__ = ("_shards", "dtype", "local", "made_by", "memory_kind", "nbytes", "read_by", "readers", "whole", "world")

    def __init__(self, dtype: str, memory_kind: str | None, world: World | None, nbytes: int) -> None:
        self.dtype = dtype
        self.memory_kind = memory_kind
        self.world = world  # whose client the buffers belong to
        self.nbytes = nbytes
        self.readers: tuple[Readers, ...] = (Readers(),)
        self.made_by = self.read_by = 0  # numbers of executions; read_by is the latest that took its turn. 0 if there is none in this world
        self.whole: xla.Buffer = None
        self.local: Locals | None = None
        self._shards: dict[int, Any] | None = None

    @staticmethod
    def of_shards(dtype: str, memory_kind: str | None, world: World | None, shards: Mapping[int, Any]) -> Stored:
        """shards: buffer (or bytes, of strings) by the program's id of the device."""
        stored = Stored(dtype, memory_kind, world, sum(map(_size, shards.values())))
        stored._shards = dict(shards)
        return stored

    @staticmethod
    def of_whole(dtype: str, memory_kind: str | None, local: Locals, whole: xla.Buffer, nbytes: int) -> Stored:
        """whole: joined over these devices."""
        stored = Stored(dtype, memory_kind, local.world, nbytes)
        stored.local = local
        stored.whole = whole
        return stored

    @property
    def shards(self) -> dict[int, Any]:
        """Buffer (or bytes) by the program's id of the device. Raises Failure if they were donated."""
        shards = self._shards
        if shards is None:
            assert self.local is not None
            self.check()
            shards = self._shards = dict(zip(self.local.devices, xla.shards(self.whole), strict=True))
        return shards

    def shard(self, device: int) -> Any:
        """Raises Failure (INVALID_ARGUMENT) if it is not here or was donated."""
        try:
            shard = self.shards[device]
        except KeyError:
            raise invalid(f"the array has no shard on device {device} here, only on {sorted(self.shards)}") from None
        if not isinstance(shard, bytes) and shard.is_deleted():
            raise _donated()
        return shard

    def is_ready(self) -> bool:
        """Whether what computes it has ended."""
        buffers = [self.whole] if self.whole is not None else (self._shards or {}).values()
        return all(isinstance(buffer, bytes) or buffer.is_deleted() or buffer.is_ready() for buffer in buffers)

    def check(self) -> None:
        """Raises Failure (INVALID_ARGUMENT) if it was donated."""
        if self.whole is not None and self.whole.is_deleted():
            raise _donated()

    def joined(self, local: Locals) -> xla.Buffer:
        """The shards on these devices as an argument for a program there, adopted from another world if need be.

        Raises Failure (INVALID_ARGUMENT) if there are other shards or they were donated.
        """
        if self.local is local and self.whole is not None:
            return self.whole
        if self.dtype == dtypes.STRING:
            raise invalid("strings can't be used in programs")
        world = local.world
        buffers = [self.shard(device) for device in local.devices]
        if self.world is not world:
            devices = [world.devices[device] for device in local.devices]
            buffers = [world.adopt(buffer, device, self.memory_kind) for buffer, device in zip(buffers, devices, strict=True)]
        first = buffers[0]
        whole = xla.join(xla.Aval(first.shape, first.dtype), local.sharding(self.memory_kind), buffers)
        if len(buffers) == len(self.shards):  # all there is: keep it in this form
            if self.world is not world:
                self.made_by = self.read_by = 0
            self.whole, self.local, self.world = whole, local, world
            self._shards = None
        return whole


def assembled(shards: Sequence[tuple[Stored, int]]) -> Stored:
    """An array out of shards (array, device) of others, which share their memory with it. Raises Failure (INVALID_ARGUMENT)."""
    first = shards[0][0]
    if all(stored is first for stored, _ in shards) and len(shards) == len(first.shards):
        return first
    newest = max((stored.world for stored, _ in shards if stored.world is not None), key=lambda world: world.number, default=None)
    held = {}
    for stored, device in shards:
        shard = stored.shard(device)
        if newest is not None and stored.world is not newest and not isinstance(shard, bytes):
            shard = newest.adopt(shard, newest.device(device), stored.memory_kind)
        held[device] = shard
    result = Stored.of_shards(first.dtype, first.memory_kind, newest, held)
    result.readers = tuple({id(readers): readers for stored, _ in shards for readers in stored.readers}.values())
    return result


class Unmade(Future[Stored]):
    """The placeholder of an array that need not be made if it is deleted before anybody wants it: it is cancelled then."""

    is_wanted = False


Entry = Stored | Failure | Future[Stored]


class Arrays:
    """The table: what stands behind each id. An entry is an array, the error it failed with, or a placeholder for one of the two."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._deleted: dict[int, None] = {}
        self._expected: dict[int, Readers] = {}  # of placeholders
        self._holds = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._waiting = 0

    def __len__(self) -> int:
        return len(self._entries)

    def nbytes(self) -> int:
        """Bytes held in device memory."""
        return sum(map(_held, list(self._entries.values())))

    def set(self, array: int, entry: Entry) -> None:
        self._entries[array] = entry
        if self._waiting:
            with self._changed:
                self._changed.notify_all()

    def get(self, array: int) -> Stored:
        """Wait for it. Raises the Failure it holds, Failure (NOT_FOUND) if there is none."""
        entry = self._entries.get(array)
        if isinstance(entry, Stored):
            return entry
        if entry is None:
            raise Failure(Code.NOT_FOUND, f"array {array} is not on this worker")
        if isinstance(entry, Failure):
            raise Failure(entry.code, entry.message)
        if isinstance(entry, Unmade):
            entry.is_wanted = True
        try:
            stored = entry.result()
        except Failure as failure:
            self._settle(array, entry, Failure(failure.code, failure.message))
            raise
        self._settle(array, entry, stored)
        return stored

    def peek(self, array: int) -> Stored | Future[Stored]:
        """The same without waiting: the array or its placeholder."""
        entry = self._entries.get(array)
        if isinstance(entry, Future) and not entry.done():
            return self.future(array)
        return self.get(array)

    def future(self, array: int) -> Future[Stored]:
        """The same to wait for."""
        entry = self._entries.get(array)
        if isinstance(entry, Unmade):
            entry.is_wanted = True
        if isinstance(entry, Future):
            return entry
        future: Future[Stored] = Future()
        if isinstance(entry, Stored):
            future.set_result(entry)
        else:
            future.set_exception(entry or Failure(Code.NOT_FOUND, f"array {array} is not on this worker"))
        return future

    def delete(self, arrays: Iterable[int]) -> None:
        """Unknown ids are passed over."""
        for array in arrays:
            entry = self._entries.pop(array, None)
            if isinstance(entry, Unmade) and not entry.is_wanted:
                entry.cancel()
            self._deleted[array] = None
            if len(self._deleted) > _REMEMBERED:
                del self._deleted[next(iter(self._deleted))]

    def expect(self, array: int) -> Stored:
        """`get`, for other workers: an id that is not known yet may still come. Raises also Failure (DEADLINE_EXCEEDED)."""
        with self._changed:
            self._waiting += 1
            known = self._changed.wait_for(lambda: array in self._entries or array in self._deleted, _EXPECT_SECONDS)
            self._waiting -= 1
        if not known:
            raise Failure(Code.DEADLINE_EXCEEDED, f"array {array} has not come to this worker in {_EXPECT_SECONDS:.0f} s")
        return self.get(array)

    def hold(self, arrays: Iterable[int]) -> Callable[[], None]:
        """While they are held no program may take over their memory. Returns what releases them."""
        held: list[Readers] = []
        with self._lock:
            for array in arrays:
                entry = self._entries.get(array)
                held += entry.readers if isinstance(entry, Stored) else [self._expected.setdefault(array, Readers())]
            for readers in held:
                readers.count += 1
            self._holds += 1

        def release() -> None:
            with self._lock:
                for readers in held:
                    readers.count -= 1
                self._holds -= 1
                if not self._holds:
                    self._expected.clear()

        return release

    def held(self, arrays: Sequence[int], indices: Iterable[int]) -> list[int]:
        """Which of these indices are of arrays that are held."""
        if not self._holds:
            return []
        return [index for index in indices if index < len(arrays) and self._is_held(arrays[index])]

    def _is_held(self, array: int) -> bool:
        expected, entry = self._expected.get(array), self._entries.get(array)
        if expected is not None and expected.count:
            return True
        return isinstance(entry, Stored) and any(readers.count for readers in entry.readers)

    def _settle(self, array: int, placeholder: Entry, entry: Entry) -> None:
        if self._entries.get(array) is placeholder:
            self._entries[array] = entry


def when_done(futures: Sequence[Future[Any]], action: Callable[[], object]) -> None:
    """Call `action` once all have a result or an error: at once, or in the thread that settles the last."""
    pending = [future for future in futures if not future.done()]
    if not pending:
        action()
        return
    lock = threading.Lock()
    left = len(pending)
    # Futures keep their callbacks, and what is to be done often knows the futures: once done it lets go of them, and of the arrays in them.
    to_do = [action]

    def one_less(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            to_do.pop()()

    for future in pending:
        future.add_done_callback(one_less)


def _donated() -> Failure:
    return invalid("the array was donated to a program and is no longer there")


def _size(shard: Any) -> int:
    return len(shard) if isinstance(shard, bytes) else int(np.prod(shard.shape, dtype=np.int64)) * shard.dtype.itemsize


def _held(entry: Entry) -> int:
    """Bytes behind an entry. A placeholder stays in the table until somebody asks for the array."""
    if isinstance(entry, Future):
        if not entry.done() or entry.cancelled() or entry.exception() is not None:  # cancelled: it was deleted just now
            return 0
        entry = entry.result()
    return entry.nbytes if isinstance(entry, Stored) else 0
