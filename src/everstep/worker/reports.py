"""What the worker tells the head. Any thread may."""

from __future__ import annotations

import contextlib
import socket
import threading

from everstep.wire import channel_pb2 as wire
from everstep.wire import frames
from everstep.wire.errors import Failure
from everstep.wire.stream import Stream


class Reporter:
    """The sending end of the channel."""

    def __init__(self, sock: socket.socket | Stream) -> None:
        self._sock = sock
        self._lock = threading.Lock()

    def send(self, message: wire.ToHead) -> None:
        """A connection that has ended is found by the reader: not told here."""
        frame = frames.encode(message.SerializeToString())
        with self._lock, contextlib.suppress(OSError):
            self._sock.sendall(frame)

    def done(self, op: int, failure: Failure | None = None, *, running: bool = False) -> None:
        """The end of an operation that has nothing else to tell. op 0: nobody wants to know.

        running: it has not ended, and another report follows, but it can only end in this failure.
        """
        if op:
            error = self.error(failure) if failure is not None else None
            self.send(wire.ToHead(done=wire.Done(op=op, error=error, running=running)))

    @staticmethod
    def error(failure: Failure) -> wire.Error:
        return wire.Error(code=failure.code, message=failure.message)
