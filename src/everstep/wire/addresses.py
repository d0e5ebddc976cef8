"""Addresses of sockets: "unix:/path" or "host:port", with brackets around an IPv6 host."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

CONNECT_SECONDS = 10.0
_BACKLOG = 128


def is_unix(address: str) -> bool:
    return address.startswith("unix:")


def path(address: str) -> str:
    """Of a unix socket."""
    return address.removeprefix("unix:")


def split(address: str) -> tuple[str, int]:
    """Host and port. Raises ValueError."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def connect(address: str) -> socket.socket:
    """A blocking connection. Over TCP it is to be made within CONNECT_SECONDS, which stays its timeout. Raises OSError."""
    if is_unix(address):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path(address))
        except BaseException:
            sock.close()
            raise
        return sock
    sock = socket.create_connection(split(address), timeout=CONNECT_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def listen(address: str) -> tuple[socket.socket, str]:
    """A listening socket, and its address with the port that it got (port 0: any). Raises OSError."""
    if is_unix(address):
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.bind(path(address))
        except BaseException:
            sock.close()
            raise
        sock.listen(_BACKLOG)
        return sock, address
    host, port = split(address)
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    sock = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    return sock, join(host, int(sock.getsockname()[1]))


class Listener:
    """Takes connections, each answered in a thread of its own, until `close`. Before `start` callers wait."""

    def __init__(self, address: str) -> None:
        """Raises OSError. `address` has the port that it got."""
        self._socket, self.address = listen(address)

    def start(self, name: str, answer: Callable[[socket.socket, Any], None]) -> None:
        """answer: called with a connection and where it comes from. name: of the threads."""
        threading.Thread(target=self._run, args=(name, answer), name=name, daemon=True).start()

    def close(self) -> None:
        """Take no more; those there are stay."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._socket.close()

    def _run(self, name: str, answer: Callable[[socket.socket, Any], None]) -> None:
        while True:
            try:
                sock, caller = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(sock, caller), name=f"{name} connection", daemon=True).start()
