"""Arrays of the host as messages: the operands and results of host callbacks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes


def encode(value: Any) -> wire.HostValue:
    """The message for anything NumPy can read, or for a token: None. Raises KeyError if XLA has no such dtype."""
    if value is None:
        return wire.HostValue(dtype=dtypes.TOKEN)
    array = np.asarray(value)
    return wire.HostValue(dtype=dtypes.from_numpy(array.dtype), shape=array.shape, data=array.tobytes())


def decode(value: wire.HostValue) -> np.ndarray[Any, np.dtype[Any]] | None:
    """A read-only array on the message's bytes, or None for a token.

    Raises KeyError for an unknown dtype, ValueError if size and shape don't fit.
    """
    if value.dtype == dtypes.TOKEN:
        return None
    return np.frombuffer(value.data, dtypes.to_numpy(value.dtype)).reshape(tuple(value.shape))


def is_whole(value: wire.HostValue) -> bool:
    """Whether it has as many bytes as its dtype and shape say."""
    return len(value.data) == dtypes.host_itemsize(value.dtype) * math.prod(value.shape)
