"""Facts about a compiled program that jaxlib does not hand out otherwise, read from the protos themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from everstep.wire import dtypes
from everstep.wire.errors import unimplemented

# Numbers of fields in xla's protos.
_MODULE_INPUT_OUTPUT_ALIAS = 8
_ALIAS_ENTRIES = 1
_ALIAS_PARAMETER = 2
_SHAPE_LAYOUT = 5

_MEMORY_STATS = {  # xla.CompiledMemoryStatsProto
    "generated_code_size_in_bytes": 1,
    "argument_size_in_bytes": 2,
    "output_size_in_bytes": 3,
    "alias_size_in_bytes": 4,
    "temp_size_in_bytes": 5,
    "host_generated_code_size_in_bytes": 7,
    "host_argument_size_in_bytes": 8,
    "host_output_size_in_bytes": 9,
    "host_alias_size_in_bytes": 10,
    "host_temp_size_in_bytes": 11,
    "serialized_buffer_assignment_proto": 13,
    "peak_memory_in_bytes": 14,
    "total_allocation_bytes": 16,
    "indefinite_allocations": 17,
    "peak_unpadded_heap_bytes": 18,
}

# What a module may ask for that only works in the process it was made in: XLA would follow a pointer of that process.
_OTHER_PROCESS = {
    b"InspectSharding": "jax.debug.inspect_array_sharding",
    b"CustomSPMDPartitioning": "jax.experimental.custom_partitioning",
    b"xla_python_cpu_callback": "callbacks as made by old versions of JAX",
    b"xla_buffer_python_cpu_callback": "jax.experimental.buffer_callback",
}


def check_portable(artifact: bytes) -> None:
    """Raises Failure (UNIMPLEMENTED) if the program calls something that lives in the process that made it."""
    for target, name in _OTHER_PROCESS.items():
        if target in artifact and any(quote + target + quote in artifact for quote in (b"\0", b'"')):
            raise unimplemented(f"{name} does not work on devices of another process")


def output_type(type_: Any) -> tuple[str, tuple[int, ...]]:
    """Element type (wire/dtypes.py) and shape of an MLIR tensor or token type."""
    text = str(type_)
    if not text.startswith("tensor<"):
        return dtypes.TOKEN, ()
    return _element_type(str(type_.element_type)), tuple(type_.shape)


def _element_type(name: str) -> str:
    if name.startswith("complex<"):
        return {"complex<f32>": "c64", "complex<f64>": "c128"}[name]
    if name == "i1":
        return "pred"
    if name.startswith("ui"):
        return "u" + name[2:]
    if name.startswith("i"):
        return "s" + name[1:]
    return name.lower()


def donated(module: bytes) -> tuple[int, ...]:
    """Numbers of the parameters whose memory results take over, from an xla.HloModuleProto."""
    found = set()
    for number, aliases in _fields(module):
        if number == _MODULE_INPUT_OUTPUT_ALIAS and isinstance(aliases, bytes):
            for entry_number, entry in _fields(aliases):
                if entry_number == _ALIAS_ENTRIES and isinstance(entry, bytes):
                    found.add(next((value for n, value in _fields(entry) if n == _ALIAS_PARAMETER and isinstance(value, int)), 0))
    return tuple(sorted(found))


def layout(shape: bytes) -> bytes:
    """The xla.LayoutProto in an xla.ShapeProto."""
    return next((value for number, value in _fields(shape) if number == _SHAPE_LAYOUT and isinstance(value, bytes)), b"")


def memory_stats(stats: Any) -> bytes:
    """xla.CompiledMemoryStatsProto from jaxlib's object."""
    proto = bytearray()
    for name, number in _MEMORY_STATS.items():
        value = getattr(stats, name, None)
        if isinstance(value, bytes) and value:
            proto += _varint(number << 3 | 2) + _varint(len(value)) + value
        elif isinstance(value, int) and value:
            proto += _varint(number << 3) + _varint(value & (1 << 64) - 1)
    return bytes(proto)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a serialized message: number and value, bytes for whatever has a length. Fixed-size ones are left out."""
    at, end = 0, len(message)

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < end:
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
        elif kind == 2:
            size = varint()
            yield tag >> 3, message[at : at + size]
            at += size
        else:
            at += 8 if kind == 1 else 4
