"""Host buffers: data on its way from the program to workers, or back.

Small ones are bytes in the head's memory. Large ones are files in the shared directory, so that the program, the head and the workers
of this host hand over a name and nobody copies through the head.
"""

from __future__ import annotations

import asyncio
import itertools
import mmap
import os
import pathlib
from collections.abc import Callable

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure, invalid

INLINE = 64 << 10  # bytes: up to here data stays in memory and travels inside commands and reports, above it is a file

_numbers = itertools.count(1)


class Buffer:
    """One buffer: awaited, there, or failed. `number` names it to workers."""

    def __init__(self, directory: pathlib.Path, table: dict[int, Buffer]) -> None:
        """table: where it is found by its number, as long as somebody uses it."""
        self.number = next(_numbers)
        self.size = 0
        self._table = table
        table[self.number] = self
        self.failure: Failure | None = None
        self._directory = directory
        self._data: bytes | bytearray | None = None
        self._path: pathlib.Path | None = None
        self._there = False
        self.taken = False  # an operation consumes it, and will let go of it
        self._callbacks: list[Callable[[], object]] = []

    @property
    def settled(self) -> bool:
        """Whether it is there or has failed."""
        return self._there or self.failure is not None

    def when_settled(self, callback: Callable[[], object]) -> None:
        """Call back when it is there or has failed; at once if it is."""
        if self.settled:
            callback()
        else:
            self._callbacks.append(callback)

    def fill(self, data: bytes | bytearray) -> None:
        """The content is these bytes."""
        self._data, self.size = data, len(data)
        self._settle()

    def fill_from(self, path: pathlib.Path, size: int) -> None:
        """The content is the first `size` bytes of a file, which belongs to this buffer from now on."""
        self._path, self.size = path, size
        self._settle()

    def fail(self, failure: Failure) -> None:
        """The content will never come."""
        if not self.settled:
            self.failure = failure
            self._settle()

    def new_file(self, size: int) -> pathlib.Path:
        """A file of that size, for workers to map and fill. Its room is taken now: a map without room ends in SIGBUS.

        Raises Failure (RESOURCE_EXHAUSTED) if there is none.
        """
        self._path = self._directory / f"buffer-{self.number}"
        try:
            with open(self._path, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            self._path.unlink(missing_ok=True)
            raise _no_room(size, error) from error
        return self._path

    def source(self, shared: bool) -> wire.Source:
        """Where a worker finds the content: inline, by name if it shares the directory, else from the head's bulk server."""
        if self._path is not None and shared:
            return wire.Source(path=str(self._path), size=self.size)
        if self.size <= INLINE:
            return wire.Source(inline=bytes(self.view()), size=self.size)
        return wire.Source(bulk=wire.Bulk(key=f"buffer/{self.number}"), size=self.size)

    def view(self) -> memoryview:
        """The content. Raises the Failure if it will never come."""
        if self.failure is not None:
            raise self.failure
        if self._path is None:
            return memoryview(self._data if self._data is not None else b"")
        if self.size == 0:
            return memoryview(b"")
        with open(self._path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), self.size, prot=mmap.PROT_READ))

    async def wait(self) -> None:
        """Until it is there. Raises the Failure if it will never come."""
        if not self.settled:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

            def wake() -> None:
                if not future.done():
                    future.set_result(None)

            self.when_settled(wake)
            await future
        if self.failure is not None:
            raise self.failure

    def let_go(self) -> None:
        """Its user is done with it: free it."""
        self._data = None
        del self._table[self.number]
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _settle(self) -> None:
        self._there = self.failure is None
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


class Writer:
    """Fills a buffer chunk by chunk."""

    def __init__(self, buffer: Buffer, directory: pathlib.Path, size: int) -> None:
        self._buffer = buffer
        self._size = size
        self._at = 0
        self._data = bytearray()
        self._path = directory / f"buffer-{buffer.number}" if size > INLINE else None
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) if self._path is not None else -1

    def write(self, chunk: bytes | memoryview) -> None:
        """Append. Raises Failure (INVALID_ARGUMENT) if more comes than was announced, (RESOURCE_EXHAUSTED) without room."""
        if self._at + len(chunk) > self._size:
            raise invalid(f"a host buffer announced with {self._size} bytes sends more")
        self._at += len(chunk)
        if self._path is None:
            self._data += chunk
            return
        rest = memoryview(chunk)
        while len(rest):
            try:
                rest = rest[os.write(self._file, rest) :]
            except OSError as error:
                raise _no_room(self._size, error) from error

    def finish(self) -> None:
        """All is written. Raises Failure (INVALID_ARGUMENT) if bytes are missing."""
        self._close()
        if self._at != self._size:
            raise invalid(f"a host buffer announced with {self._size} bytes ended after {self._at}")
        if self._path is not None:
            self._buffer.fill_from(self._path, self._size)
        else:
            self._buffer.fill(self._data)

    def abort(self, failure: Failure) -> None:
        """The rest will never come."""
        self._close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
        self._buffer.fail(failure)

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class HostBuffers:
    """The host buffers of one session, by the program's handles.

    A request may name a buffer before its content has come: whoever asks first makes the entry.
    """

    def __init__(self, directory: pathlib.Path, table: dict[int, Buffer]) -> None:
        """table: of all buffers of the run, by their numbers."""
        self._directory = directory
        self._table = table
        self._buffers: dict[int, Buffer] = {}

    def begin(self, handle: int, size: int) -> Writer:
        """Start to receive. Raises Failure (ALREADY_EXISTS) if that handle has its content."""
        buffer = self.entry(handle)
        self._check_new(buffer, handle)
        return Writer(buffer, self._directory, size)

    def adopt_file(self, handle: int, name: str, size: int) -> None:
        """The program has written the content to a file in the shared directory. Raises Failure (ALREADY_EXISTS, INVALID_ARGUMENT)."""
        buffer = self.entry(handle)
        self._check_new(buffer, handle)
        path = self._directory / name
        try:
            if path.parent != self._directory or path.stat().st_size < size:
                raise invalid(f"{name} in the shared directory is shorter than the {size} bytes announced")
        except OSError as error:
            failure = invalid(f"can't read {name} in the shared directory: {error.strerror}")
            buffer.fail(failure)
            raise failure from error
        buffer.fill_from(path, size)

    def entry(self, handle: int) -> Buffer:
        """The buffer behind a handle, new if need be."""
        buffer = self._buffers.get(handle)
        if buffer is None:
            buffer = self._buffers[handle] = Buffer(self._directory, self._table)
        return buffer

    def take(self, handle: int) -> Buffer:
        """The buffer behind a handle, for the caller to let go of. The handle is forgotten as soon as the content has come."""
        buffer = self.entry(handle)
        buffer.taken = True
        buffer.when_settled(lambda: self._buffers.pop(handle, None))
        return buffer

    async def read(self, handle: int) -> memoryview:
        """The content, as soon as it is there. Raises the Failure if it will never come."""
        buffer = self.entry(handle)
        await buffer.wait()
        return buffer.view()

    def delete(self, handle: int) -> None:
        """Forget a buffer. An unknown handle is no error: it may have been consumed."""
        buffer = self._buffers.pop(handle, None)
        if buffer is not None:
            buffer.let_go()

    def close(self) -> None:
        """The program is gone: nothing more will come."""
        buffers, self._buffers = self._buffers, {}
        for buffer in buffers.values():
            buffer.fail(Failure(Code.CANCELLED, "the program has ended"))
            if not buffer.taken:
                buffer.let_go()

    @staticmethod
    def _check_new(buffer: Buffer, handle: int) -> None:
        if buffer.settled or buffer.size:
            raise Failure(Code.ALREADY_EXISTS, f"host buffer {handle} has its content already")


def _no_room(size: int, error: OSError) -> Failure:
    why = f"no room for {size} bytes in the shared directory ({error.strerror}): choose another with --shared-directory"
    return Failure(Code.RESOURCE_EXHAUSTED, why)
