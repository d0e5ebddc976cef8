"""The head's one open port: takes calls from other hosts, and hands each to what it asks for, in TLS and for members of this run only."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Collection
from typing import Any

from everstep.head.channel import Link
from everstep.wire import addresses, door
from everstep.wire.bulk.protocol import receive
from everstep.wire.credentials import Credentials
from everstep.wire.stream import Stream, pump

log = logging.getLogger(__name__)

_SECONDS = 10.0  # by then a caller has said what it wants, and proved who it is


class Door:
    """Runs in threads of its own; only the channel goes to the event loop."""

    def __init__(self, address: str, credentials: Credentials) -> None:
        """Listen at "host:port" (port 0: any), and let callers wait until `open`. Raises OSError."""
        self._credentials = credentials
        self._loop = asyncio.get_running_loop()
        self._listener = addresses.Listener(address)
        self.address = self._listener.address

    def open(self, link: Callable[[], Link], bulk: Callable[[socket.socket], None], ports: Collection[int]) -> None:
        """link: for a worker that joins. bulk: serves a connection until it ends. ports: of the coordination services that there are."""
        self._link = link
        self._services = {door.CHANNEL: self._channel, door.BULK: bulk, door.COORDINATION: self._coordination}
        self._ports = ports
        self._listener.start("door", self._answer)

    def close(self) -> None:
        """Take no more calls."""
        self._listener.close()

    def _answer(self, sock: socket.socket, caller: tuple[Any, ...]) -> None:
        sock.settimeout(_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            data = sock.recv(door.SIZE, socket.MSG_WAITALL)
            service = door.wanted(data)
            if service is None:
                raise ConnectionError(f"it asks for {data!r}: not a worker of this release")
            self._services[service](sock)
        except (OSError, ValueError) as error:  # ValueError: no such port
            log.warning("refused a call from %s: %s", caller[0], error)
            sock.close()

    def _channel(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        tls = {"ssl": self._credentials.server, "ssl_handshake_timeout": _SECONDS}
        work = self._loop.connect_accepted_socket(self._link, sock, **tls)  # type: ignore[arg-type]
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def _coordination(self, sock: socket.socket) -> None:
        assert self._credentials.server is not None
        caller = Stream(sock, self._credentials.server, None)
        (port,) = door.PORT.unpack(receive(caller, door.PORT.size))
        if port not in self._ports:
            raise ValueError(f"there is no coordination service at port {port}")
        pump(caller, addresses.connect(addresses.join("127.0.0.1", port)))
