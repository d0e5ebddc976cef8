"""Element types: the protocol's numbers and the names of wire/dtypes.py."""

from __future__ import annotations

from everstep.wire import dtypes
from everstep.wire.errors import invalid, unimplemented
from everstep.wire.ifrt import values_pb2 as values

_PREFIX = "KIND_"
_NAMES = {value: name.removeprefix(_PREFIX).lower() for name, value in values.DType.Kind.items()}
_KINDS = {name: values.DType.Kind.Value(_PREFIX + name.upper()) for name in _NAMES.values()}
_BITS = {"s1": 1, "u1": 1, "s2": 2, "u2": 2, "s4": 4, "u4": 4, "f4e2m1fn": 4}


def decode(dtype: values.DType) -> str:
    """The name. Raises Failure (INVALID_ARGUMENT) for what is no element type, (UNIMPLEMENTED) for opaque ones."""
    name = _NAMES.get(dtype.kind, "unspecified")
    if name == "unspecified":
        raise invalid(f"{dtype.kind} is no element type")
    if dtypes.host_itemsize(name) == 0 and name not in (dtypes.STRING, dtypes.TOKEN):
        raise unimplemented(f"arrays of element type {name} are not supported")
    return name


def encode(name: str) -> values.DType:
    """The message for a name of wire/dtypes.py."""
    return values.DType(kind=_KINDS[name])  # type: ignore[arg-type]  # the stubs want the enum's own type


def packed_bits(name: str) -> int:
    """Bits per element in device memory where XLA packs several into a byte, else 0."""
    return _BITS.get(name, 0)
