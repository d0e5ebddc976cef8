"""The schemas that the installed jaxlib speaks, read from jaxlib itself.

Its shared library holds the serialized descriptor of every .proto it was built from. They are found by their first field, the name of
the file, and end where the bytes stop making sense as a descriptor.
"""

from __future__ import annotations

import functools
import mmap
import pathlib

import jaxlib
from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

_LARGEST = 4 << 20  # bytes of one descriptor
_FIELDS = range(1, 15)  # of FileDescriptorProto


@functools.cache
def _library() -> mmap.mmap:
    with open(pathlib.Path(jaxlib.__file__).parent / "libjax_common.so", "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@functools.cache
def file(name: str) -> descriptor_pb2.FileDescriptorProto:
    """The schema file of that name. Raises LookupError if jaxlib has none."""
    library = _library()
    start = b"\x0a" + bytes([len(name)]) + name.encode()
    largest: descriptor_pb2.FileDescriptorProto | None = None
    at = library.find(start)
    while at >= 0:
        try:
            found = descriptor_pb2.FileDescriptorProto.FromString(library[at : _end(library, at)])
        except DecodeError:
            found = None
        if found is not None and (largest is None or found.ByteSize() > largest.ByteSize()):
            largest = found
        at = library.find(start, at + 1)
    if largest is None:
        raise LookupError(f"jaxlib holds no {name}")
    return largest


def messages(name: str) -> dict[str, descriptor_pb2.DescriptorProto]:
    """The messages of a schema file by their full names, nested ones too."""
    schema = file(name)
    found: dict[str, descriptor_pb2.DescriptorProto] = {}

    def walk(prefix: str, message: descriptor_pb2.DescriptorProto) -> None:
        found[f"{prefix}.{message.name}"] = message
        for nested in message.nested_type:
            walk(f"{prefix}.{message.name}", nested)

    for message in schema.message_type:
        walk(schema.package, message)
    return found


def enums(name: str) -> dict[str, dict[str, int]]:
    """The enums of a schema file by their full names: names of values to numbers."""
    schema = file(name)
    found = {f"{schema.package}.{enum.name}": enum for enum in schema.enum_type}
    for path, message in messages(name).items():
        found |= {f"{path}.{enum.name}": enum for enum in message.enum_type}
    return {path: {value.name: value.number for value in enum.value} for path, enum in found.items()}


def _end(data: mmap.mmap, start: int) -> int:
    """Where the message that starts there ends: field after field, while each could be one of a file descriptor."""
    at = start
    while at - start < _LARGEST:
        try:
            tag, after = _varint(data, at)
            kind = tag & 7
            if tag >> 3 not in _FIELDS or (tag >> 3 == 1 and at > start) or kind not in (0, 2):
                return at
            value, after = _varint(data, after)
        except IndexError:
            return at
        at = after + value if kind == 2 else after
    return start


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError
