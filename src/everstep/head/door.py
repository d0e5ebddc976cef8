"""The head's one open port: takes calls from other hosts, and hands each to what it asks for, in TLS and for members of this run only."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Collection

from everstep.head.channel import Link
from everstep.wire import addresses, door
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
        self._listener, self.address = addresses.listen(address)

    def open(self, link: Callable[[], Link], bulk: Callable[[socket.socket], None], ports: Collection[int]) -> None:
        """link: for a worker that joins. bulk: serves a connection until it ends. ports: of the coordination services that there are."""
        self._link = link
        self._services = {door.CHANNEL: self._channel, door.BULK: bulk, door.COORDINATION: self._coordination}
        self._ports = ports
        threading.Thread(target=self._run, name="door", daemon=True).start()

    def close(self) -> None:
        """Take no more calls."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                sock, (host, *_) = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(sock, host), name="door", daemon=True).start()

    def _answer(self, sock: socket.socket, host: str) -> None:
        sock.settimeout(_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            data = sock.recv(door.SIZE, socket.MSG_WAITALL)
            service = door.wanted(data)
            if service is None:
                raise ConnectionError(f"it asks for {data!r}: not a worker of this release")
            self._services[service](sock)
        except (OSError, ValueError) as error:  # ValueError: no such port
            log.warning("refused a call from %s: %s", host, error)
            sock.close()

    def _channel(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        tls = {"ssl": self._credentials.server, "ssl_handshake_timeout": _SECONDS}
        work = self._loop.connect_accepted_socket(self._link, sock, **tls)  # type: ignore[arg-type]
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def _coordination(self, sock: socket.socket) -> None:
        assert self._credentials.server is not None
        caller = Stream(sock, self._credentials.server, None)
        wanted = bytearray(door.PORT.size)
        view = memoryview(wanted)
        while view:
            count = caller.recv_into(view)
            if not count:
                raise ConnectionError("it does not say which service it wants")
            view = view[count:]
        (port,) = door.PORT.unpack(wanted)
        if port not in self._ports:
            raise ValueError(f"there is no coordination service at port {port}")
        caller.settimeout(None)
        pump(caller, addresses.connect(addresses.join("127.0.0.1", port)))
