"""The lifeline to the command that has started this head (see headprocess.py), seen from the head."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
from typing import Any


class Lifeline:
    """Ends with the command, and takes the command's program along."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._program: _Program | None = None

    def tell(self, message: dict[str, Any]) -> None:
        """Send the command a line. Nothing if it is gone."""
        with contextlib.suppress(OSError):
            self._socket.setblocking(True)
            self._socket.sendall(json.dumps(message).encode() + b"\n")

    async def cut(self) -> None:
        """Returns when the command is done or dead. In the second case its program has been killed."""
        reader, writer = await asyncio.open_connection(sock=self._socket)
        while line := await reader.readline():
            message = json.loads(line)
            if "program" in message:
                self._program = _Program(message["program"])
            elif "ended" in message:
                self._program = None
        if self._program is not None:
            self._program.kill()
        writer.close()


class _Program:
    """A process that is not our child. Where the system has handles for processes, another that gets its number is safe from us."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._handle: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                self._handle = os.pidfd_open(pid)

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            else:
                os.kill(self._pid, signal.SIGKILL)
