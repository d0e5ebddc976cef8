"""Gloo, and how to get out of it.

Gloo knows no cancelling: whoever waits for a peer waits for half an hour. So its TCP connections are shut under it, and where it still
waits for a peer to connect, that peer is impersonated by one that hangs up.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

from jaxlib import _jax

_KEYS = "cpu:gloo"  # where XLA keeps the addresses of a clique's members, as gloo serializes them
_SIZE = struct.Struct("=Q")
_NUMBER = struct.Struct("=q")
_CONNECT_SECONDS = 1.0


_lock = threading.Lock()


def make(agent: Any, host: str) -> tuple[Any, list[str]]:
    """Gloo for one world, and the endpoint it listens at: it does not tell, but it opens exactly one listener."""
    with _lock:
        before = set(_listeners())
        collectives = _jax.make_gloo_tcp_collectives(agent, hostname=host)
        return collectives, sorted(set(_listeners()) - before)


def _endpoint(address: Any) -> str:
    host, port = address[:2]
    return f"{host.removeprefix('::ffff:')}:{port}"


def _sockets() -> Iterator[socket.socket]:
    """All TCP sockets of this process, as duplicates: the originals may be closed and their numbers used again at any time."""
    for name in os.listdir("/dev/fd"):
        try:
            duplicate = os.dup(int(name))
        except OSError:
            continue
        try:
            sock = socket.socket(fileno=duplicate)
        except OSError:
            os.close(duplicate)
            continue
        with sock:
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                yield sock


def _listeners() -> Iterator[str]:
    for sock in _sockets():
        with contextlib.suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield _endpoint(sock.getsockname())


def shut_connections(endpoints: set[str]) -> None:
    """Shut all connections of this process that begin or end at one of these."""
    for sock in _sockets():
        with contextlib.suppress(OSError):
            if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                ends = {_endpoint(sock.getsockname()), _endpoint(sock.getpeername())}
                if ends & endpoints:
                    sock.shutdown(socket.SHUT_RDWR)


def last_number(agent: Any, reserve: int) -> int:
    """The highest number that a connection of this process's gloo may be awaited under, and more.

    Gloo numbers the connections that it awaits at its one listener, 0, 1, 2..., and publishes the numbers.
    reserve: how many more there may be by now.
    """
    last = -1
    with contextlib.suppress(Exception):  # the service may be gone
        for _, published in agent.key_value_dir_get_bytes(_KEYS):
            last = max(last, *_numbers(published))
    return last + reserve


def _numbers(published: bytes) -> list[int]:
    """From what a member publishes: its host name and its address, each with its size, then the numbers, one for each peer."""
    at = 0
    for _ in range(2):
        (size,) = _SIZE.unpack_from(published, at)
        at += _SIZE.size + size
    return [number for (number,) in _NUMBER.iter_unpack(published[at:])] or [-1]


def answer_for_the_dead(endpoint: str, last: int) -> None:
    """Connect to this process's own listener under every number that a peer may be awaited under, and hang up."""
    host, _, port = endpoint.rpartition(":")
    for number in range(last + 1):
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), _CONNECT_SECONDS) as impostor:
            impostor.sendall(_NUMBER.pack(number))
