"""The serving side."""

from __future__ import annotations

import contextlib
import hmac
import logging
import math
import socket
import threading
from collections.abc import Callable, Sequence

import numpy as np

from everstep.wire import addresses, door
from everstep.wire.bulk import protocol
from everstep.wire.bulk.protocol import (
    DIMENSION,
    GET,
    HANDSHAKE_SECONDS,
    MAGIC,
    PLACE,
    PUT,
    REQUEST,
    TOKEN,
    Buffer,
    Dimension,
    answer,
    receive,
    receive_into,
    refuse,
)
from everstep.wire.credentials import Credentials
from everstep.wire.errors import Code, Failure, invalid

log = logging.getLogger(__name__)

_CHUNK = 4 << 20  # bytes that a scattered PUT holds at a time


class Lent:
    """Content that must not change until it is sent. parts: its pieces. release: called then, when nothing refers to them any more."""

    def __init__(self, parts: tuple[Buffer, ...], release: Callable[[], None]) -> None:
        self.parts = parts
        self._release = release

    def give_back(self) -> None:
        self.parts = ()
        self._release()


class Server:
    """Serves until `close`. Callbacks run in the connection's own thread, may block, and tell errors by raising Failure."""

    def __init__(
        self,
        address: str,
        credentials: Credentials,
        provide: Callable[[str], Buffer | Lent],
        accept: Callable[[str], memoryview] | None = None,
    ) -> None:
        """Listen at "unix:/path" or "host:port" (port 0: any; with TLS if the credentials have a certificate); "": nowhere, see `serve`.

        Raises OSError.
        provide: the content of a key.
        accept: the writable bytes that a PUT to a key fills, all of them; None: no PUT here.
        """
        self._credentials = credentials
        self._provide = provide
        self._accept = accept
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.address = address
        self._listener = addresses.Listener(address) if address else None
        if self._listener is not None:
            self.address = self._listener.address
            self._listener.start("bulk", lambda sock, _: self.serve(sock))

    def close(self) -> None:
        """Cut all connections. The file of a unix socket is left to whoever owns its directory."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        if self._listener is not None:
            self._listener.close()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def serve(self, sock: socket.socket) -> None:
        """A connection, until it ends."""
        sock.settimeout(HANDSHAKE_SECONDS)
        try:
            if sock.family != socket.AF_UNIX and self._credentials.server is not None:
                sock = door.secured(sock, self._credentials.server, None)
        except OSError as error:
            log.warning("refused a connection that can't prove to be of this run: %s", error)
            return
        with self._lock:
            if self._closed:
                sock.close()
                return
            self._connections.add(sock)
        try:
            if not self._greet(sock):
                return
            while True:
                kind, length = REQUEST.unpack(receive(sock, REQUEST.size))
                key = receive(sock, length).decode()
                if kind == GET:
                    self._get(sock, key)
                elif kind == PUT:
                    self._put(sock, key)
                else:
                    return
        except (OSError, UnicodeDecodeError):
            return  # the client has gone, or speaks something else
        finally:
            with self._lock:
                self._connections.discard(sock)
            sock.close()

    def _greet(self, sock: socket.socket) -> bool:
        sock.settimeout(HANDSHAKE_SECONDS)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        protocol.widen(sock)
        if receive(sock, len(MAGIC)) != MAGIC:
            return False
        (length,) = TOKEN.unpack(receive(sock, TOKEN.size))
        if not hmac.compare_digest(bytes(receive(sock, length)), self._credentials.token.encode()):
            refuse(sock, Failure(Code.UNAUTHENTICATED, "the token is not that of this run"))
            return False
        sock.settimeout(None)
        answer(sock)
        return True

    def _get(self, sock: socket.socket, key: str) -> None:
        try:
            content = self._provide(key)
        except Failure as failure:
            refuse(sock, failure)
            return
        if isinstance(content, Lent):
            gone: OSError | None = None
            try:
                answer(sock, *content.parts)
            except OSError as error:
                gone = error.with_traceback(None)  # whose frames refer to the parts
            content.give_back()
            if gone is not None:
                raise gone
        else:
            answer(sock, content)

    def _put(self, sock: socket.socket, key: str) -> None:
        offset, run, count = PLACE.unpack(receive(sock, PLACE.size))
        dimensions = list(DIMENSION.iter_unpack(receive(sock, count * DIMENSION.size)))
        try:
            if self._accept is None:
                raise invalid("nothing can be put here")
            target = self._accept(key)
            _check(len(target), offset, run, dimensions)
        except Failure as failure:
            refuse(sock, failure)
            return
        answer(sock)
        if dimensions:
            _scatter(sock, target, offset, run, dimensions)
        else:
            receive_into(sock, target[offset : offset + run])
        answer(sock)


def _check(size: int, offset: int, run: int, dimensions: Sequence[Dimension]) -> None:
    if all(count for count, _ in dimensions) and offset + run + sum((count - 1) * stride for count, stride in dimensions) > size:
        raise invalid(f"the piece does not fit into a buffer of {size} bytes")


def _scatter(sock: socket.socket, target: memoryview, offset: int, run: int, dimensions: Sequence[Dimension]) -> None:
    (count, stride), inner = dimensions[0], dimensions[1:]
    shape = (*(n for n, _ in inner), run)
    slab = math.prod(shape)
    if count * slab == 0:
        return
    step = max(1, _CHUNK // slab)
    buffer = memoryview(bytearray(min(step, count) * slab))
    for first in range(0, count, step):
        some = min(step, count - first)
        receive_into(sock, buffer[: some * slab])
        place = np.ndarray(
            (some, *shape), np.uint8, buffer=target, offset=offset + first * stride, strides=(stride, *(s for _, s in inner), 1)
        )
        place[...] = np.frombuffer(buffer[: some * slab], np.uint8).reshape(some, *shape)
