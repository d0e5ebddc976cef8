"""Addresses of sockets: "unix:/path" or "host:port", with brackets around an IPv6 host."""

from __future__ import annotations

import socket

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
