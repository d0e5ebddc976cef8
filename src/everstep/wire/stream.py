"""A TLS connection that one thread may read while others write: Python's own can't do that on every version."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading

_CHUNK = 1 << 16  # bytes


class Stream:
    """Has what is used of a blocking `socket.socket`. Owns the socket it is given."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_hostname: str | None) -> None:
        """Shake hands. server_hostname: whom a client expects; None for a server. Raises OSError (ssl.SSLError for a stranger)."""
        self._sock = sock
        self._arriving, self._leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._arriving, self._leaving, server_hostname is None, server_hostname)
        self._state = threading.Lock()  # of the TLS object and its buffers
        self._order = threading.Lock()  # what was encrypted first is sent first
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_pending()
                self._receive_some()
            except ssl.SSLError:
                self._send_pending()  # the other side is told why
                raise
        self._send_pending()

    @property
    def family(self) -> socket.AddressFamily:
        return self._sock.family

    def getsockname(self) -> tuple[str, int]:
        """This end's host and port."""
        host, port = self._sock.getsockname()[:2]
        return host, port

    def settimeout(self, seconds: float | None) -> None:
        self._sock.settimeout(seconds)

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self._sock.setsockopt(level, option, value)

    def recv_into(self, view: memoryview | bytearray) -> int:
        """As a socket's: at least one byte, 0 at the end. Raises OSError."""
        while len(view):
            try:
                with self._state:
                    return self._tls.read(len(view), view)  # type: ignore[return-value]
            except ssl.SSLWantReadError:
                if not self._receive_some():
                    return 0
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return 0
        return 0

    def sendall(self, data: bytes | bytearray | memoryview) -> None:
        """Raises OSError."""
        view = memoryview(data).cast("B")
        with self._order:
            while len(view):
                with self._state:
                    view = view[self._tls.write(view) :]
                self._send_pending()

    def shutdown(self, how: int) -> None:
        self._sock.shutdown(how)

    def close(self) -> None:
        self._sock.close()

    def _receive_some(self) -> bool:
        """False at the end of the connection."""
        data = self._sock.recv(_CHUNK)
        with self._state:
            if data:
                self._arriving.write(data)
            else:
                self._arriving.write_eof()
        return bool(data)

    def _send_pending(self) -> None:
        with self._state:
            data = self._leaving.read()
        if data:
            self._sock.sendall(data)


def pump(one: Stream | socket.socket, other: Stream | socket.socket) -> None:
    """Carry what comes on one over to the other, both ways, until either ends; then both are closed. Returns at once."""

    def carry(source: Stream | socket.socket, sink: Stream | socket.socket) -> None:
        buffer = memoryview(bytearray(_CHUNK))
        with contextlib.suppress(OSError):
            while count := source.recv_into(buffer):
                sink.sendall(buffer[:count])
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with lock:
            ended.append(source)
            if len(ended) == 2:
                source.close()
                sink.close()

    ended: list[object] = []
    lock = threading.Lock()
    for end in (one, other):
        end.settimeout(None)  # they may be silent for as long as all is well
    for ends in ((one, other), (other, one)):
        threading.Thread(target=carry, args=ends, name="pump", daemon=True).start()
