"""Facts about a compiled program that jaxlib does not hand out otherwise, read from the protos themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

from everstep.wire import dtypes
from everstep.wire.errors import unimplemented

Result: TypeAlias = tuple[str, tuple[int, ...]]  # element type (wire/dtypes.py) and shape

# Numbers of fields in xla's protos.
_MODULE_INPUT_OUTPUT_ALIAS = 8
_ALIAS_ENTRIES = 1
_ALIAS_PARAMETER = 2
_MODULE_COMPUTATION = 3
_COMPUTATION_INSTRUCTION = 2
_INSTRUCTION_SHAPE = 3
_INSTRUCTION_TARGET = 28
_INSTRUCTION_CONFIG = 43
_SHAPE_TYPE = 2
_SHAPE_DIMENSIONS = 3
_SHAPE_PARTS = 4
_SHAPE_LAYOUT = 5

_CALLBACK_TARGETS = {b"xla_ffi_python_cpu_callback", b"xla_ffi_python_gpu_callback"}
_CALLBACK_INDEX = re.compile(rb"index = (\d+)")

# The opcode of an instruction: its field 2, with the size before it.
_COLLECTIVE = re.compile(rb"\x12.(all-|collective-|ragged-all-|reduce-scatter|send|recv)", re.DOTALL)

_TUPLE = 13
_TYPES = {  # xla.PrimitiveType
    1: "pred",
    2: "s8",
    3: "s16",
    4: "s32",
    5: "s64",
    6: "u8",
    7: "u16",
    8: "u32",
    9: "u64",
    10: "f16",
    11: "f32",
    12: "f64",
    15: "c64",
    16: "bf16",
    17: dtypes.TOKEN,
    18: "c128",
    19: "f8e5m2",
    20: "f8e4m3fn",
    21: "s4",
    22: "u4",
    23: "f8e4m3b11fnuz",
    24: "f8e5m2fnuz",
    25: "f8e4m3fnuz",
    26: "s2",
    27: "u2",
    28: "f8e4m3",
    29: "f8e3m4",
    32: "f4e2m1fn",
    33: "f8e8m0fnu",
}

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


def callback_results(module: bytes) -> dict[int, tuple[Result, ...]]:
    """What each host callback must return on a device, by its index, from an xla.HloModuleProto. One that is never called is not there."""
    found = {}
    for computation in _all(module, _MODULE_COMPUTATION):
        for instruction in _all(computation, _COMPUTATION_INSTRUCTION):
            if b"_python_" not in instruction:
                continue
            fields = dict(_fields(instruction))
            index = _CALLBACK_INDEX.search(_bytes(fields.get(_INSTRUCTION_CONFIG)))
            if fields.get(_INSTRUCTION_TARGET) in _CALLBACK_TARGETS and index is not None:
                found[int(index[1])] = tuple(_results(_bytes(fields.get(_INSTRUCTION_SHAPE))))
    return found


def has_collectives(module: bytes) -> bool:
    """Whether an xla.HloModuleProto has an operation in which devices wait for each other. Says yes when in doubt."""
    return _COLLECTIVE.search(module) is not None


def _results(shape: bytes) -> Iterator[Result]:
    """The arrays in an xla.ShapeProto."""
    fields = dict(_fields(shape))
    kind = fields.get(_SHAPE_TYPE)
    if kind == _TUPLE:
        for part in _all(shape, _SHAPE_PARTS):
            yield from _results(part)
    else:
        assert isinstance(kind, int)
        yield _TYPES[kind], tuple(_varints(_bytes(fields.get(_SHAPE_DIMENSIONS))))


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


def _all(message: bytes, field: int) -> Iterator[bytes]:
    return (value for number, value in _fields(message) if number == field and isinstance(value, bytes))


def _bytes(value: int | bytes | None) -> bytes:
    return value if isinstance(value, bytes) else b""


def _varints(packed: bytes) -> Iterator[int]:
    value = shift = 0
    for byte in packed:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value
            value = shift = 0


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
