"""The head's end of the channel to its workers: accepts them, checks who they are, sends commands, hands on reports."""

from __future__ import annotations

import asyncio
import hmac
import logging
from typing import TYPE_CHECKING, Protocol

from google.protobuf.message import DecodeError

import everstep
from everstep.wire import channel_pb2 as wire
from everstep.wire import frames
from everstep.wire.errors import Failure, invalid

if TYPE_CHECKING:
    from everstep.head.members import Member

log = logging.getLogger(__name__)

HELLO_TIMEOUT = 10.0  # seconds: a connection that does not say who it is by then is closed


class Owner(Protocol):
    """Who decides about workers: the runtime."""

    def joined(self, hello: wire.Hello, link: Link) -> wire.Welcome | None: ...  # None: it has to wait for it
    def reported(self, link: Link, message: wire.ToHead) -> None: ...
    def closed(self, link: Link, cause: str) -> None: ...


class Link(asyncio.Protocol):
    """The connection to one worker. Parses frames as they arrive: no task and no stream per worker."""

    def __init__(self, owner: Owner, token: str) -> None:
        self._owner = owner
        self._token = token
        self._buffer = bytearray()
        self._held = bytearray()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.greeted = False  # it has said who it is
        self.welcomed = False
        self.last_seen = 0.0  # loop time, seconds; of one that waits for its welcome
        self.member: Member | None = None  # set by the owner when it joins
        self.cause = "connection closed"

    def send(self, message: wire.ToWorker) -> None:
        """Queue one command."""
        self.send_frame(frames.encode(message.SerializeToString()))

    def send_frame(self, frame: bytes) -> None:
        """The same for a frame that goes to several workers and is encoded once."""
        if self._transport is not None:
            if self._held:
                frame = bytes(self._held) + frame
                self._held.clear()
            self._transport.write(frame)

    def hold(self, frame: bytes) -> bool:
        """Queue one that goes with the next, in one write, or with `send_held`. Whether it is the first."""
        first = not self._held
        self._held += frame
        return first

    def send_held(self) -> None:
        if self._held:
            self.send_frame(b"")

    def abort(self, cause: str) -> None:
        """Drop the connection without sending what is queued."""
        self.cause = cause
        if self._transport is not None:
            self._transport.abort()

    def refuse(self, why: str) -> None:
        """Tell one that waits for its welcome that there is none."""
        self.send(wire.ToWorker(welcome=wire.Welcome(version=frames.VERSION, refused=why)))
        self.close()

    def close(self) -> None:
        """Send what is queued, then end the connection."""
        if self._transport is not None:
            self._transport.close()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._timer = asyncio.get_running_loop().call_later(HELLO_TIMEOUT, self.abort, "no hello")

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= 4:
                length = frames.length(buffer[start : start + 4])
                end = start + 4 + length
                if len(buffer) < end:
                    break
                self._message(bytes(buffer[start + 4 : end]))
                start = end
        except (frames.FrameError, DecodeError) as error:
            self.abort(f"it sent nonsense: {error}")
            return
        if start:
            del buffer[:start]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
        if self.greeted:
            self._owner.closed(self, f"{self.cause}: {exc}" if exc else self.cause)

    def _message(self, data: bytes) -> None:
        message = wire.ToHead.FromString(data)
        if self.welcomed:
            self._owner.reported(self, message)
            return
        self.last_seen = asyncio.get_running_loop().time()
        if not self.greeted:
            self.greet(message.hello)

    def greet(self, hello: wire.Hello) -> None:
        """Take it in, or refuse it. Once more for one that had to wait."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            if hello.version != frames.VERSION:
                raise invalid(
                    f"the worker runs everstep {hello.release or 'unknown'} (channel version {hello.version}), the head "
                    f"{everstep.__version__} (channel version {frames.VERSION}): install the same release on both",
                )
            if not hmac.compare_digest(hello.token.encode(), self._token.encode()):
                raise invalid("the token is not that of this run")
            welcome = self._owner.joined(hello, self)
            self.greeted = True
        except Failure as failure:
            log.warning("refused a worker that calls itself %r: %s", hello.name, failure.message)
            self.refuse(failure.message)
            return
        if welcome is None:
            return
        self.welcomed = True
        self.send(wire.ToWorker(welcome=welcome))
