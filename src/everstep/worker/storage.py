"""Arrays in storage, by way of TensorStore.

They are written as Orbax's own array handler writes them without OCDBT: each a zarr 2 array in a directory of its name. Read is whatever
Orbax writes: zarr 2 and 3, in directories or in an OCDBT database.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes
from everstep.wire.errors import Code, Failure, invalid, unimplemented
from everstep.worker import xla

if TYPE_CHECKING:
    import tensorstore

CHUNK = 64 << 20  # bytes: arrays are cut into chunks of at most so many, where that comes out even
_CUTS = 8  # times more chunks than that, at most
_COMPRESSOR = {"id": "zstd", "level": 1}  # Orbax's

Content = np.ndarray[Any, np.dtype[Any]]
Spec = dict[str, Any]
Wait: TypeAlias = "Callable[[tensorstore.Future[Any]], Any]"  # gives the result of a future

_DETAILS = re.compile(r" \[[a-z_ ]+='.*", re.DOTALL)  # of an error: TensorStore's settings, an answer of a server


class Storage:
    """One command's way to storage, with threads of its own: if that hangs, others go on."""

    def __init__(self) -> None:
        """Raises Failure (UNIMPLEMENTED) if there is no TensorStore."""
        try:
            import tensorstore
        except ImportError as error:
            raise unimplemented(f"this worker can't save and restore arrays: {error}; pip install 'everstep[persistence]' there") from None
        self._ts = tensorstore
        self._context = tensorstore.Context({"file_io_concurrency": {"limit": 32}})

    def create(self, array: wire.StoredArray, wait: Wait) -> tensorstore.TensorStore:
        """To write it, alone or with other workers. An array of the same kind that is there is written over."""
        shape = list(array.shape)
        kvstore = _kvstore(array.location, array.name)
        if kvstore["driver"] != "file":  # in a bucket that does not exist it would try again and again
            wait(wait(self._ts.KvStore.open(kvstore, context=self._context)).list())
        spec = {
            "driver": "zarr",
            "kvstore": kvstore,
            "dtype": dtypes.to_numpy(array.dtype).name,
            "metadata": {"shape": shape, "chunks": chunk(array.tile, array.dtype), "compressor": _COMPRESSOR},
            "store_data_equal_to_fill_value": True,  # so that a chunk which is not there is missing
        }
        store: tensorstore.TensorStore = wait(self._ts.open(spec, create=True, open=True, context=self._context))
        return store

    def open(self, array: wire.StoredArray, wait: Wait) -> tensorstore.TensorStore:
        """To read it. Raises Failure: NOT_FOUND, INVALID_ARGUMENT if it is of another kind."""
        for spec in _formats(array.location, array.name):
            try:
                store: tensorstore.TensorStore = wait(
                    self._ts.open(spec | {"fill_missing_data_reads": False}, read=True, context=self._context)
                )
            except ValueError as error:
                if xla.failure(error).code is not Code.NOT_FOUND:
                    raise
            else:
                wanted = dtypes.to_numpy(array.dtype), tuple(array.shape)
                found = store.dtype.numpy_dtype, tuple(store.shape)
                if found != wanted:
                    raise invalid(f"it is stored as {_kind(*found)}, not as {_kind(*wanted)}")
                return store
        raise Failure(Code.NOT_FOUND, "there is no such array")

    @staticmethod
    def write(store: tensorstore.TensorStore, place: tuple[slice, ...], content: Content) -> tensorstore.Future[None]:
        """Done when it is durable. Until then nobody may write to `content`."""
        return store[place].write(content, can_reference_source_data_indefinitely=True).commit

    def read(self, store: tensorstore.TensorStore, place: tuple[slice, ...], target: Content) -> tensorstore.Future[None]:
        """Fill `target` with what is there."""
        return self._ts.array(target, dtype=store.dtype).write(store[place].translate_to[(0,) * target.ndim]).commit


def failure(error: BaseException, what: str) -> Failure:
    """What went wrong in doing `what`, in few words."""
    told = xla.failure(error)
    return Failure(told.code, f"{what}: {_DETAILS.sub('', told.message)}")


def chunk(tile: Sequence[int], dtype: str) -> list[int]:
    """The shape of the chunks of an array whose shards are `tile`, which they divide. Outer dimensions are cut first: what is cut
    off is contiguous."""
    sizes = [max(1, size) for size in tile]
    for dimension, size in enumerate(sizes):
        want = min(size, -(-math.prod(sizes) * dtypes.host_itemsize(dtype) // CHUNK))
        sizes[dimension] //= next((parts for parts in range(want, min(size, want * _CUTS) + 1) if size % parts == 0), 1)
    return sizes


def parts(box: wire.Box, rows: int, itemsize: int) -> Iterator[tuple[slice, ...]]:
    """A box in slices of its first dimension, of about CHUNK bytes. rows: of a chunk; no chunk is in two slices."""
    if 0 in box.size:
        return
    if not box.size:
        yield ()
        return
    (first, *starts), (count, *sizes) = box.start, box.size
    step = rows * max(1, CHUNK // (rows * math.prod(sizes) * itemsize))
    inner = tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))
    start, end = first, first + count
    while start < end:
        stop = min(end, (start // step + 1) * step)
        yield slice(start, stop), *inner
        start = stop


def _formats(location: str, name: str) -> Iterator[Spec]:
    plain = _kvstore(location, name)
    database = {"driver": "ocdbt", "base": _kvstore(location, ""), "path": f"{name}/"}
    for kvstore in (plain, database):
        for driver in ("zarr", "zarr3"):
            yield {"driver": driver, "kvstore": kvstore, "fill_missing_data_reads": False}


def _kvstore(location: str, name: str) -> Spec:
    """TensorStore's spec of a directory. S3's endpoint and region are taken from AWS's environment variables."""
    scheme, remote, rest = location.partition("://")
    if not remote:
        return {"driver": "file", "path": os.path.join(location, name, "")}
    bucket, _, path = rest.partition("/")
    spec: Spec = {"driver": "gcs" if scheme == "gs" else scheme, "bucket": bucket, "path": os.path.join(path, name, "")}
    if scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if endpoint:
            spec |= {"endpoint": endpoint, "aws_region": region or "us-east-1"}
        elif region:
            spec["aws_region"] = region
    return spec


def _kind(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    return f"{dtype}{list(shape)}"
