"""Data of any size, beside the channel: blocking sockets, a thread per connection, no copies where the kernel allows it.

A client opens a connection, sends the token of the run, and then any number of requests, one after the other:
    GET key                      → the bytes of that key
    PUT key offset layout        → go on, or why not; then the bytes, and an answer when they are in place
Each answer is a status (a code of errors.py, 1 byte), a length (8 bytes) and that many bytes: data, or the message of the error.
"""

from __future__ import annotations

import contextlib
import hmac
import math
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from everstep.wire.errors import Code, Failure, invalid

Buffer: TypeAlias = bytes | bytearray | memoryview
Dimension: TypeAlias = tuple[int, int]  # count, stride in bytes

_MAGIC = b"everstep bulk 1\n"
_GET, _PUT = 1, 2
_REQUEST = struct.Struct(">BH")  # kind, length of the key
_PLACE = struct.Struct(">QQB")  # offset, bytes of a run, number of dimensions that repeat it
_DIMENSION = struct.Struct(">QQ")
_ANSWER = struct.Struct(">BQ")
_TOKEN = struct.Struct(">H")

_HANDSHAKE_SECONDS = 10.0
_CHUNK = 4 << 20  # bytes that a scattered PUT holds at a time
_SOCKET_BUFFER = 4 << 20


# ---------------------------------------------------------------- sockets


def _receive_into(sock: socket.socket, view: memoryview) -> None:
    got = 0
    while got < len(view):
        count = sock.recv_into(view[got:])
        if count == 0:
            raise ConnectionError("the connection ended in the middle")
        got += count


def _receive(sock: socket.socket, size: int) -> bytearray:
    buffer = bytearray(size)
    _receive_into(sock, memoryview(buffer))
    return buffer


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _connect(address: str) -> socket.socket:
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(address.removeprefix("unix:"))
        except BaseException:
            sock.close()
            raise
    else:
        sock = socket.create_connection(_split(address), timeout=_HANDSHAKE_SECONDS)
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
    return sock


def _listen(address: str) -> tuple[socket.socket, str]:
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.bind(address.removeprefix("unix:"))
        except BaseException:
            sock.close()
            raise
        sock.listen(128)
        return sock, address
    host, port = _split(address)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    sock = socket.create_server((host, port), family=family, backlog=128)
    bound = sock.getsockname()[1]
    return sock, f"[{host}]:{bound}" if ":" in host else f"{host}:{bound}"


# ---------------------------------------------------------------- server


class Server:
    """Serves until `close`. Callbacks run in the connection's own thread, may block, and tell errors by raising Failure."""

    def __init__(
        self,
        address: str,
        token: str,
        provide: Callable[[str], Buffer | tuple[Buffer, ...]],
        accept: Callable[[str], memoryview] | None = None,
    ) -> None:
        """Listen at "unix:/path" or "host:port" (port 0: any). Raises OSError.

        provide: the content of a key, in one piece or several.
        accept: the writable bytes that a PUT to a key fills, all of them; None: no PUT here.
        """
        self._token = token.encode()
        self._provide = provide
        self._accept = accept
        self._listener, self.address = _listen(address)
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._run, name="bulk server", daemon=True).start()

    def close(self) -> None:
        """Cut all connections. The file of a unix socket is left to whoever owns its directory."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._closed:
                    sock.close()
                    return
                self._connections.add(sock)
            threading.Thread(target=self._serve, args=(sock,), name="bulk connection", daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            if not self._greet(sock):
                return
            while True:
                kind, length = _REQUEST.unpack(_receive(sock, _REQUEST.size))
                key = _receive(sock, length).decode()
                if kind == _GET:
                    self._get(sock, key)
                elif kind == _PUT:
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
        sock.settimeout(_HANDSHAKE_SECONDS)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
        if _receive(sock, len(_MAGIC)) != _MAGIC:
            return False
        (length,) = _TOKEN.unpack(_receive(sock, _TOKEN.size))
        if not hmac.compare_digest(bytes(_receive(sock, length)), self._token):
            _refuse(sock, Failure(Code.UNAUTHENTICATED, "the token is not that of this run"))
            return False
        sock.settimeout(None)
        _answer(sock)
        return True

    def _get(self, sock: socket.socket, key: str) -> None:
        try:
            content = self._provide(key)
        except Failure as failure:
            _refuse(sock, failure)
        else:
            _answer(sock, *(content if isinstance(content, tuple) else (content,)))

    def _put(self, sock: socket.socket, key: str) -> None:
        offset, run, count = _PLACE.unpack(_receive(sock, _PLACE.size))
        dimensions = list(_DIMENSION.iter_unpack(_receive(sock, count * _DIMENSION.size)))
        try:
            if self._accept is None:
                raise invalid("nothing can be put here")
            target = self._accept(key)
            _check(len(target), offset, run, dimensions)
        except Failure as failure:
            _refuse(sock, failure)
            return
        _answer(sock)
        if dimensions:
            _scatter(sock, target, offset, run, dimensions)
        else:
            _receive_into(sock, target[offset : offset + run])
        _answer(sock)


def _answer(sock: socket.socket, *content: Buffer) -> None:
    views = [memoryview(piece).cast("B") for piece in content if len(piece)]
    sock.sendall(_ANSWER.pack(Code.OK, sum(map(len, views))))
    for view in views:
        sock.sendall(view)


def _refuse(sock: socket.socket, failure: Failure) -> None:
    message = failure.message.encode()
    sock.sendall(_ANSWER.pack(failure.code, len(message)) + message)


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
        _receive_into(sock, buffer[: some * slab])
        place = np.ndarray(
            (some, *shape), np.uint8, buffer=target, offset=offset + first * stride, strides=(stride, *(s for _, s in inner), 1)
        )
        place[...] = np.frombuffer(buffer[: some * slab], np.uint8).reshape(some, *shape)


# ---------------------------------------------------------------- client


class Client:
    """Requests to any number of servers. Thread-safe; connections are kept and used again."""

    def __init__(self, token: str) -> None:
        self._greeting = _MAGIC + _TOKEN.pack(len(token.encode())) + token.encode()
        self._idle: dict[str, list[socket.socket]] = {}
        self._busy: dict[socket.socket, Failure | None] = {}
        self._lock = threading.Lock()

    def get(self, address: str, key: str) -> memoryview:
        """The content of a key. Raises the server's Failure, and Failure (UNAVAILABLE) if it can't be reached or goes away."""
        with self._request(address, _REQUEST.pack(_GET, len(key.encode())) + key.encode()) as (sock, size):
            buffer = memoryview(bytearray(size))
            _receive_into(sock, buffer)
            return buffer

    def put(self, address: str, key: str, content: Buffer, offset: int, run: int, dimensions: Sequence[Dimension] = ()) -> None:
        """Place bytes in the buffer of a key.

        They go to `offset` in runs of `run` bytes, repeated over `dimensions` (outermost first). Returns when they are in place.
        Raises as `get` does.
        """
        name = key.encode()
        place = _PLACE.pack(offset, run, len(dimensions)) + b"".join(_DIMENSION.pack(*dimension) for dimension in dimensions)
        with self._request(address, _REQUEST.pack(_PUT, len(name)) + name + place) as (sock, _):
            sock.sendall(content)
            _read_answer(sock)

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
                    _read_answer(sock)
                sock.sendall(request)
                size = _read_answer(sock)
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
            sock = _connect(address)
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


def _unreachable(address: str, error: BaseException) -> Failure:
    return Failure(Code.UNAVAILABLE, f"the bulk server at {address} can't be reached: {error}")


def _read_answer(sock: socket.socket) -> int:
    code, size = _ANSWER.unpack(_receive(sock, _ANSWER.size))
    if code == Code.OK:
        return int(size)
    message = _receive(sock, size).decode(errors="replace")
    try:
        failure = Failure(Code(code), message)
    except ValueError:
        raise ConnectionError("the answer makes no sense") from None
    raise failure
