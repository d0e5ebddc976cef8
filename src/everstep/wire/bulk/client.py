"""The asking side."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from everstep.wire import addresses, door
from everstep.wire.bulk import protocol
from everstep.wire.bulk.protocol import (
    DIMENSION,
    GET,
    MAGIC,
    PLACE,
    PUT,
    REQUEST,
    TOKEN,
    Buffer,
    Dimension,
    read_answer,
    receive_into,
)
from everstep.wire.credentials import WORKER, Credentials
from everstep.wire.errors import Code, Failure


class Client:
    """Requests to any number of servers. Thread-safe; connections are kept and used again."""

    def __init__(self, credentials: Credentials, connect: Callable[[str], socket.socket] | None = None, at_once: int | None = None) -> None:
        """connect: makes a connection to an address; default: to a worker, over TCP with TLS if the credentials have a certificate.

        at_once: so many requests run at a time, others wait for their turn. None: any number; so it must be if a server may be waiting for
        what another request brings.
        """
        token = credentials.token.encode()
        self._greeting = MAGIC + TOKEN.pack(len(token)) + token
        self._connect = connect or functools.partial(_connect, credentials)
        self._idle: dict[str, list[socket.socket]] = {}
        self._busy: dict[socket.socket, Failure | None] = {}
        self._turn: contextlib.AbstractContextManager[Any] = threading.Semaphore(at_once) if at_once else contextlib.nullcontext()
        self._lock = threading.Lock()

    def get(self, address: str, key: str) -> memoryview:
        """The content of a key. Raises the server's Failure, and Failure (UNAVAILABLE) if it can't be reached or goes away."""
        with self._request(address, REQUEST.pack(GET, len(key.encode())) + key.encode()) as (sock, size):
            buffer = memoryview(bytearray(size))
            receive_into(sock, buffer)
            return buffer

    def put(self, address: str, key: str, content: Buffer, offset: int, run: int, dimensions: Sequence[Dimension] = ()) -> None:
        """Place bytes in the buffer of a key.

        They go to `offset` in runs of `run` bytes, repeated over `dimensions` (outermost first). Returns when they are in place.
        Raises as `get` does.
        """
        name = key.encode()
        place = PLACE.pack(offset, run, len(dimensions)) + b"".join(DIMENSION.pack(*dimension) for dimension in dimensions)
        with self._request(address, REQUEST.pack(PUT, len(name)) + name + place) as (sock, _):
            sock.sendall(content)
            read_answer(sock)

    def abandon(self, failure: Failure) -> None:
        """All requests that are under way fail with this."""
        with self._lock:
            busy = list(self._busy)
            for sock in busy:
                self._busy[sock] = failure
        for sock in busy:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connections that are idle."""
        with self._lock:
            idle = [sock for socks in self._idle.values() for sock in socks]
            self._idle.clear()
        for sock in idle:
            sock.close()

    @contextlib.contextmanager
    def _request(self, address: str, request: bytes) -> Iterator[tuple[socket.socket, int]]:
        """Send it and give the socket and the size of what follows the good answer."""
        with self._turn:
            sock, size = self._ask(address, request)
            try:
                yield sock, size
            except OSError as error:
                raise self._drop(sock, address, error) from None
            except BaseException as error:
                self._drop(sock, address, error)
                raise
            self._keep(address, sock)

    def _ask(self, address: str, request: bytes) -> tuple[socket.socket, int]:
        while True:
            sock, is_new = self._take(address)
            try:
                if is_new:
                    sock.sendall(self._greeting)
                    read_answer(sock)
                sock.sendall(request)
                size = read_answer(sock)
            except Failure as failure:
                if failure.code is Code.UNAUTHENTICATED:
                    self._drop(sock, address, failure)
                else:
                    self._keep(address, sock)
                raise
            except OSError as error:
                cause = self._drop(sock, address, error)
                if is_new or cause.code is not Code.UNAVAILABLE:
                    raise cause from None
                # It went stale while it was idle: once more on another.
            else:
                return sock, size

    def _take(self, address: str) -> tuple[socket.socket, bool]:
        with self._lock:
            idle = self._idle.get(address)
            sock = idle.pop() if idle else None
            if sock is not None:
                self._busy[sock] = None
                return sock, False
        try:
            sock = self._connect(address)
        except OSError as error:
            raise _unreachable(address, error) from None
        with self._lock:
            self._busy[sock] = None
        return sock, True

    def _keep(self, address: str, sock: socket.socket) -> None:
        with self._lock:
            self._busy.pop(sock, None)
            self._idle.setdefault(address, []).append(sock)

    def _drop(self, sock: socket.socket, address: str, error: BaseException) -> Failure:
        """Close it. Returns what its request failed with: what it was abandoned for, if it was."""
        with self._lock:
            failure = self._busy.pop(sock, None)
        sock.close()
        return failure or _unreachable(address, error)


def _connect(credentials: Credentials, address: str) -> socket.socket:
    sock = addresses.connect(address)
    protocol.widen(sock)
    if not addresses.is_unix(address) and credentials.client is not None:
        sock = door.secured(sock, credentials.client, WORKER)
    sock.settimeout(None)
    return sock


def _unreachable(address: str, error: BaseException) -> Failure:
    return Failure(Code.UNAVAILABLE, f"the bulk server at {address} can't be reached: {error}")
