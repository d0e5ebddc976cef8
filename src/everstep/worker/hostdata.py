"""Content of shards in host memory: arrays, and the bytes that they travel as."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from everstep.wire import bulk, dtypes
from everstep.wire.errors import invalid

_MEMORY = "/dev/shm/"


class File(mmap.mmap):
    """A file's content. may_stay: it lies in memory, and the filesystem there has room enough for it to stay as long as an array lives."""

    may_stay = False

    @staticmethod
    def open(path: str, size: int) -> File:
        """Raises OSError, ValueError if it is not that large."""
        with open(path, "rb") as file:
            content = File(file.fileno(), size, prot=mmap.PROT_READ)
            room = os.fstatvfs(file.fileno())
            content.may_stay = path.startswith(_MEMORY) and 4 * room.f_bavail > 3 * room.f_blocks
            return content


Content = bytes | memoryview | File


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Tokens are held as XLA takes them: as arrays of no elements."""
    return np.dtype(np.bool_) if dtype == dtypes.TOKEN else dtypes.to_numpy(dtype)


def held_shape(dtype: str, shape: Sequence[int]) -> tuple[int, ...]:
    return (0,) if dtype == dtypes.TOKEN else tuple(shape)


def host_array(content: Content, dtype: np.dtype[Any], shape: tuple[int, ...], strides: tuple[int, ...] | None) -> np.ndarray[Any, Any]:
    if 0 in shape:
        return np.empty(shape, dtype)
    try:
        return np.ndarray(shape, dtype, buffer=content, strides=strides)
    except (TypeError, ValueError) as error:
        raise invalid(f"a host buffer of {len(content)} bytes does not hold {dtype} {shape} with strides {strides}: {error}") from None


def run_of(content: np.ndarray[Any, Any], strides: Sequence[int]) -> tuple[int, int]:
    """How many bytes lie side by side when `content` is laid out with `strides`, and how many outer dimensions repeat that."""
    run, outer = content.itemsize, content.ndim
    while outer and (content.shape[outer - 1] == 1 or strides[outer - 1] == run):
        run *= content.shape[outer - 1]
        outer -= 1
    return run, outer


def place(start: Sequence[int], size: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(first, first + count) for first, count in zip(start, size, strict=True))


def as_bytes(content: np.ndarray[Any, Any]) -> memoryview:
    return np.ascontiguousarray(content).reshape(-1).view(np.uint8).data


def encode(content: np.ndarray[Any, Any]) -> tuple[bulk.Buffer, ...]:
    """Number of dimensions, dimensions, dense content."""
    return np.array((content.ndim, *content.shape), np.int64).tobytes(), as_bytes(content)


def decode(data: memoryview, dtype: str) -> np.ndarray[Any, Any]:
    (ndim,) = np.frombuffer(data, np.int64, 1)
    shape = tuple(np.frombuffer(data, np.int64, ndim, 8).tolist())
    return host_array(data[8 * (1 + int(ndim)) :], numpy_dtype(dtype), shape, None)
