"""Frames on the channel between head and worker: 4 bytes of length, most significant first, then a protobuf message."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everstep.wire.stream import Stream

VERSION = 3  # of channel.proto: raise it whenever a change there would be misread by an older peer
MAX_FRAME = 1 << 30  # bytes; data travels in bulk, so a larger frame is nonsense

_LENGTH = struct.Struct(">I")


class FrameError(ConnectionError):
    """What arrived is not a frame of this channel."""


def encode(message: bytes) -> bytes:
    """The frame around a serialized message."""
    if len(message) > MAX_FRAME:
        raise FrameError(f"a message of {len(message)} bytes is too long for the channel (at most {MAX_FRAME})")
    return _LENGTH.pack(len(message)) + message


def length(header: bytes | bytearray) -> int:
    """What the first 4 bytes of a frame say about the rest. Raises FrameError if that can't be."""
    (claimed,) = _LENGTH.unpack(header)
    if claimed > MAX_FRAME:
        raise FrameError(f"a frame claims {claimed} bytes (at most {MAX_FRAME}): the peer does not speak this channel")
    return int(claimed)


def receive(sock: socket.socket | Stream) -> bytes | None:
    """The next message from a blocking connection, or None when the peer has closed. Raises FrameError, OSError."""
    header = _receive_exactly(sock, _LENGTH.size)
    if header is None:
        return None
    message = _receive_exactly(sock, length(header))
    if message is None:
        raise FrameError("the connection ended within a frame")
    return message


def _receive_exactly(sock: socket.socket | Stream, count: int) -> bytes | None:
    buffer = bytearray(count)
    view, got = memoryview(buffer), 0
    while got < count:
        n = sock.recv_into(view[got:])
        if n == 0:
            if got:
                raise FrameError("the connection ended within a frame")
            return None
        got += n
    return bytes(buffer)
