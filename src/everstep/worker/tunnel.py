"""A way to a world's coordination service, which listens on the head's own machine only: through the head's one port."""

from __future__ import annotations

import logging
import socket

from everstep.wire import addresses, door
from everstep.wire.credentials import Credentials
from everstep.wire.stream import pump

log = logging.getLogger(__name__)


class Tunnel:
    """Listens on a loopback port; what connects there is connected to the service."""

    def __init__(self, head: str, credentials: Credentials, service: str) -> None:
        """head: address of the door. service: address of the service, as the head sees it. Raises OSError."""
        self._head = head
        self._credentials = credentials
        self._port = addresses.split(service)[1]
        self._listener = addresses.Listener("127.0.0.1:0")
        self.address = self._listener.address
        self._listener.start("tunnel", self._answer)

    def close(self) -> None:
        """Take no more connections; those there are end with the service."""
        self._listener.close()

    def _answer(self, sock: socket.socket, _: object) -> None:
        try:
            stream = door.call(self._head, door.COORDINATION, self._credentials)
            stream.sendall(door.PORT.pack(self._port))
        except OSError as error:
            log.warning("the head's coordination service can't be reached: %s", error)
            sock.close()
        else:
            pump(sock, stream)
