"""Host buffers for workers that don't share a directory with the head: they fetch and fill them through a bulk server."""

from __future__ import annotations

import mmap
import pathlib
import socket
from collections.abc import Mapping

from everstep.head.buffers import Buffer
from everstep.wire import bulk
from everstep.wire.credentials import Credentials
from everstep.wire.errors import Code, Failure


class RemoteBuffers:
    """Serves the buffers of a runtime under the keys "buffer/<number>"."""

    def __init__(self, credentials: Credentials, buffers: Mapping[int, Buffer], directory: pathlib.Path) -> None:
        """directory: where the runtime makes the files that workers fill."""
        self._directory = directory
        self._buffers = buffers
        self._server = bulk.Server("", credentials, self._provide, self._accept)

    def serve(self, sock: socket.socket) -> None:
        """A connection, until it ends."""
        self._server.serve(sock)

    def close(self) -> None:
        self._server.close()

    def _provide(self, key: str) -> memoryview:
        return self._find(key).view()

    def _accept(self, key: str) -> memoryview:
        buffer = self._find(key)
        if buffer.settled:
            raise Failure(Code.FAILED_PRECONDITION, f"{key} is filled already")
        with open(self._directory / f"buffer-{buffer.number}", "r+b") as file:
            return memoryview(mmap.mmap(file.fileno(), 0))

    def _find(self, key: str) -> Buffer:
        kind, _, number = key.partition("/")
        buffer = self._buffers.get(int(number)) if kind == "buffer" and number.isdecimal() else None
        if buffer is None:
            raise Failure(Code.NOT_FOUND, f"the head has no {key}")
        return buffer
