"""What server and client share: how a request and an answer look on the wire, and their sockets."""

from __future__ import annotations

import socket
import struct
from typing import TypeAlias

from everstep.wire.errors import Code, Failure
from everstep.wire.stream import Stream

Buffer: TypeAlias = bytes | bytearray | memoryview
Dimension: TypeAlias = tuple[int, int]  # count, stride in bytes

MAGIC = b"everstep bulk 1\n"
GET, PUT = 1, 2
REQUEST = struct.Struct(">BH")  # kind, length of the key
PLACE = struct.Struct(">QQB")  # offset, bytes of a run, number of dimensions that repeat it
DIMENSION = struct.Struct(">QQ")
TOKEN = struct.Struct(">H")
_ANSWER = struct.Struct(">BQ")

HANDSHAKE_SECONDS = 10.0
_SOCKET_BUFFER = 4 << 20


def widen(sock: socket.socket) -> None:
    """For data instead of commands."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)


def receive_into(sock: socket.socket | Stream, view: memoryview) -> None:
    got = 0
    while got < len(view):
        count = sock.recv_into(view[got:])
        if count == 0:
            raise ConnectionError("the connection ended in the middle")
        got += count


def receive(sock: socket.socket | Stream, size: int) -> bytearray:
    buffer = bytearray(size)
    receive_into(sock, memoryview(buffer))
    return buffer


def answer(sock: socket.socket, *content: Buffer) -> None:
    views = [memoryview(piece).cast("B") for piece in content if len(piece)]
    sock.sendall(_ANSWER.pack(Code.OK, sum(map(len, views))))
    for view in views:
        sock.sendall(view)


def refuse(sock: socket.socket, failure: Failure) -> None:
    message = failure.message.encode()
    sock.sendall(_ANSWER.pack(failure.code, len(message)) + message)


def read_answer(sock: socket.socket) -> int:
    code, size = _ANSWER.unpack(receive(sock, _ANSWER.size))
    if code == Code.OK:
        return int(size)
    message = receive(sock, size).decode(errors="replace")
    try:
        failure = Failure(Code(code), message)
    except ValueError:
        raise ConnectionError("the answer makes no sense") from None
    raise failure
