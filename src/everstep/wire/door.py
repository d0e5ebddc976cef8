"""The head's one port, as those who call there see it: they say which service they want, and go on in TLS."""

from __future__ import annotations

import socket
import ssl
import struct

from everstep.wire import addresses
from everstep.wire.credentials import HEAD, Credentials
from everstep.wire.stream import Stream

CHANNEL, BULK, COORDINATION = "channel", "bulk", "coordination"
SIZE = 32  # bytes of the wish, in the clear
PORT = struct.Struct(">H")  # follows, in TLS, the wish for a coordination service: which one


def wish(service: str) -> bytes:
    return f"everstep {service}\n".encode().ljust(SIZE)


def wanted(data: bytes) -> str | None:
    """The service that is wished for; None for what is no wish."""
    services = {wish(service): service for service in (CHANNEL, BULK, COORDINATION)}
    return services.get(data)


def call(address: str, service: str, credentials: Credentials) -> Stream:
    """The service, at the door at "host:port".

    Raises OSError (ssl.SSLError if it is not the head of this run), ValueError for credentials without a certificate.
    """
    sock, context = _call(address, service, credentials)
    try:
        stream = Stream(sock, context, HEAD)
    except BaseException:
        sock.close()
        raise
    stream.settimeout(None)
    return stream


def call_for_data(address: str, credentials: Credentials) -> ssl.SSLSocket:
    """The head's bulk server: as fast as Python can, for one thread at a time. Raises as `call` does."""
    sock, context = _call(address, BULK, credentials)
    return secured(sock, context, HEAD)


def secured(sock: socket.socket, context: ssl.SSLContext, name: str | None) -> ssl.SSLSocket:
    """Shake hands over a connection. name: whom a caller expects; None for who is called. Raises OSError, and closes it then."""
    try:
        safe = context.wrap_socket(sock, server_side=name is None, server_hostname=name)
    except BaseException:
        sock.close()
        raise
    safe.settimeout(None)
    return safe


def _call(address: str, service: str, credentials: Credentials) -> tuple[socket.socket, ssl.SSLContext]:
    if credentials.client is None:
        raise ValueError("over a network the token must be a copy of the whole line in the head's token file: it has certificates, too")
    sock = addresses.connect(address)
    try:
        sock.sendall(wish(service))
    except BaseException:
        sock.close()
        raise
    return sock, credentials.client
