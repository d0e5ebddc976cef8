"""A way to a world's coordination service, which listens on the head's own machine only: through the head's one port."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading

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
        self._listener, self.address = addresses.listen("127.0.0.1:0")
        threading.Thread(target=self._run, name="tunnel", daemon=True).start()

    def close(self) -> None:
        """Take no more connections; those there are end with the service."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            try:
                stream = door.call(self._head, door.COORDINATION, self._credentials)
                stream.sendall(door.PORT.pack(self._port))
            except OSError as error:
                log.warning("the head's coordination service can't be reached: %s", error)
                sock.close()
            else:
                pump(sock, stream)
