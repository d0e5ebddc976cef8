"""Host data on the wire: each message is one field, `bytes data = 1`, taken apart and put together without protobuf's copies."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import DecodeError

from everstep.wire.errors import invalid
from everstep.wire.ifrt import service_pb2 as wire

CHUNK = 1 << 20  # bytes of data to a message

_TAG = 0x0A  # field 1, length-delimited


def decode(message: bytes) -> memoryview:
    """The data in a HostBufferStoreRequest. Raises Failure (INVALID_ARGUMENT) if it is none."""
    if message[:1] == b"\n":
        length, at = 0, 1
        for at in range(1, min(len(message), 11)):  # to where the length ends
            length |= (message[at] & 0x7F) << 7 * (at - 1)
            if message[at] < 0x80:
                break
        if at + 1 + length == len(message):
            return memoryview(message)[at + 1 :]
    try:  # empty, or in an unusual form
        return memoryview(wire.HostBufferStoreRequest.FromString(message).data)
    except DecodeError as error:
        raise invalid("what arrived is no part of a host buffer") from error


def encode(data: memoryview) -> Iterator[bytes]:
    """HostBufferLookupResponses, serialized. At least one, even for no data."""
    if not data:
        yield b""
    for start in range(0, len(data), CHUNK):
        part = data[start : start + CHUNK]
        yield b"".join((_header(len(part)), part))


def _header(length: int) -> bytes:
    header = bytearray([_TAG])
    while length >= 0x80:
        header.append(length & 0x7F | 0x80)
        length >>= 7
    header.append(length)
    return bytes(header)
