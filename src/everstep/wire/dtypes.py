"""Element types by name, as XLA spells them in lower case: "f32", "bf16", "s4", "pred"...

The name is what travels between head and worker. On the host an element of a type smaller than a byte takes a whole byte,
as in NumPy (ml_dtypes) and in IFRT host buffers.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

_NUMPY: dict[str, type] = {
    "pred": np.bool_,
    "s2": ml_dtypes.int2,
    "s4": ml_dtypes.int4,
    "s8": np.int8,
    "s16": np.int16,
    "s32": np.int32,
    "s64": np.int64,
    "u2": ml_dtypes.uint2,
    "u4": ml_dtypes.uint4,
    "u8": np.uint8,
    "u16": np.uint16,
    "u32": np.uint32,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "c64": np.complex64,
    "c128": np.complex128,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
    "f6e2m3fn": ml_dtypes.float6_e2m3fn,
    "f6e3m2fn": ml_dtypes.float6_e3m2fn,
    "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e4m3": ml_dtypes.float8_e4m3,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu,
}
if hasattr(ml_dtypes, "int1"):  # newer ml_dtypes
    _NUMPY |= {"s1": ml_dtypes.int1, "u1": ml_dtypes.uint1}

_NAMES = {np.dtype(scalar): name for name, scalar in _NUMPY.items()}

STRING = "string"  # no fixed size; held on the host
TOKEN = "token"  # orders effects; holds no data


def to_numpy(name: str) -> np.dtype:
    """The NumPy dtype of a name. Raises KeyError for "string", "token" and unknown names."""
    return np.dtype(_NUMPY[name])


def from_numpy(dtype: np.dtype) -> str:
    """The name of a NumPy dtype. Raises KeyError if XLA has none."""
    return _NAMES[np.dtype(dtype)]


def host_itemsize(name: str) -> int:
    """Bytes per element in a host buffer; 0 for "string" and "token"."""
    return np.dtype(_NUMPY[name]).itemsize if name in _NUMPY else 0
