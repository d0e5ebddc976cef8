"""Bytes as devices hold them: elements smaller than a byte are packed, the first in the lowest bits. On the host each takes a byte."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from everstep.wire import dtypes
from everstep.wire.errors import invalid

_BITS = {"s1": 1, "u1": 1, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4}


def bitcast(content: np.ndarray[Any, Any], source: str, target: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The same bytes under another dtype (wire/dtypes.py) and shape. Raises Failure (INVALID_ARGUMENT) if it doesn't fit."""
    data = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
    if source in _BITS:
        data = _pack(data, _BITS[source])
    count = math.prod(shape)
    if target in _BITS:
        data = _unpack(data, _BITS[target], target.startswith("s"))[:count]
    dtype = dtypes.to_numpy(target)
    if data.nbytes != count * dtype.itemsize:
        raise invalid(f"{source} {content.shape} can't be bitcast to {target} {shape}: the sizes differ")
    return data.view(dtype).reshape(shape)


def _pack(data: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    per_byte = 8 // width
    padded = np.zeros(-(-data.size // per_byte) * per_byte, np.uint8)
    padded[: data.size] = data & (1 << width) - 1
    packed = np.zeros(padded.size // per_byte, np.uint8)
    for place in range(per_byte):
        packed |= padded[place::per_byte] << place * width
    return packed


def _unpack(data: np.ndarray[Any, Any], width: int, signed: bool) -> np.ndarray[Any, Any]:
    per_byte = 8 // width
    out = np.empty(data.size * per_byte, np.uint8)
    for place in range(per_byte):
        out[place::per_byte] = data >> place * width & (1 << width) - 1
    if signed:  # the host byte holds the sign too
        sign = 1 << width - 1
        out = ((out ^ sign) - np.uint8(sign)).astype(np.uint8)
    return out
