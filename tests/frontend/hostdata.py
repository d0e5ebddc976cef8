"""Host buffers in memory, and the arrays in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np

from everstep.head.specs import Shape
from everstep.wire import dtypes
from everstep.wire.errors import Failure, invalid


class FakeBuffer:
    def __init__(self) -> None:
        self.data: bytes | None = None
        self.failure: Failure | None = None
        self._settled = asyncio.Event()
        self._callbacks: list[Callable[[], object]] = []

    def settle(self, data: bytes | None, failure: Failure | None = None) -> None:
        self.data, self.failure = data, failure
        self._settled.set()
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def when_settled(self, callback: Callable[[], object]) -> None:
        if self._settled.is_set():
            callback()
        else:
            self._callbacks.append(callback)

    def let_go(self) -> None:
        self.data = b""

    async def content(self) -> bytes:
        await self._settled.wait()
        if self.failure is not None:
            raise self.failure
        assert self.data is not None
        return self.data


class FakeWriter:
    def __init__(self, buffer: FakeBuffer, size: int) -> None:
        self._buffer = buffer
        self._size = size
        self._data = bytearray()

    def write(self, chunk: bytes | memoryview) -> None:
        if len(self._data) + len(chunk) > self._size:
            raise invalid("more than announced")
        self._data += chunk

    def finish(self) -> None:
        if len(self._data) != self._size:
            raise invalid("less than announced")
        self._buffer.settle(bytes(self._data))

    def abort(self, failure: Failure) -> None:
        self._buffer.settle(None, failure)


class FakeBuffers:
    def __init__(self) -> None:
        self.held: dict[int, FakeBuffer] = {}
        self.adopted: list[tuple[int, str, int]] = []

    def entry(self, handle: int) -> FakeBuffer:
        return self.held.setdefault(handle, FakeBuffer())

    def take(self, handle: int) -> FakeBuffer:
        buffer = self.entry(handle)
        buffer.when_settled(lambda: self.held.pop(handle, None))
        return buffer

    def begin(self, handle: int, size: int) -> FakeWriter:
        return FakeWriter(self.entry(handle), size)

    def adopt_file(self, handle: int, name: str, size: int) -> None:
        self.adopted.append((handle, name, size))
        self.entry(handle).settle(bytes(size))

    async def read(self, handle: int) -> memoryview:
        return memoryview(await self.entry(handle).content())

    def delete(self, handle: int) -> None:
        self.held.pop(handle, None)


def from_host(content: bytes, dtype: str, shape: Shape, byte_strides: tuple[int, ...] | None) -> object:
    """The array that a host buffer holds; strings and tokens stay bytes."""
    if dtypes.host_itemsize(dtype) == 0:
        return content
    numpy = dtypes.to_numpy(dtype)
    if byte_strides is None:
        if len(content) != numpy.itemsize * int(np.prod(shape)):
            raise invalid("a host buffer of the wrong size")
        return np.frombuffer(content, numpy).reshape(shape)
    first = -sum(stride * (size - 1) for stride, size in zip(byte_strides, shape, strict=True) if stride < 0 and size)
    return np.ndarray(shape, numpy, content, first, byte_strides).copy()


def to_host(array: np.ndarray | bytes, byte_strides: tuple[int, ...] | None) -> bytes:
    """The content of a host buffer for an array."""
    if isinstance(array, bytes):
        return array
    if byte_strides is None or array.size == 0:
        return array.tobytes()
    size = sum(abs(stride) * (n - 1) for stride, n in zip(byte_strides, array.shape, strict=True)) + array.itemsize
    first = -sum(stride * (n - 1) for stride, n in zip(byte_strides, array.shape, strict=True) if stride < 0)
    content = bytearray(size)
    np.ndarray(array.shape, array.dtype, content, first, byte_strides)[...] = array
    return bytes(content)
