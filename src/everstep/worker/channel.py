"""The worker's end of the channel: joins the head, and takes its commands."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from everstep import __version__
from everstep.wire import addresses, door, frames
from everstep.wire import channel_pb2 as wire
from everstep.wire.credentials import Credentials
from everstep.wire.stream import Stream
from everstep.worker import xla
from everstep.worker.arrays import Arrays
from everstep.worker.executor import Executor
from everstep.worker.faults import FAULTS
from everstep.worker.reports import Reporter

_WELCOME_SECONDS = 60.0

Connection: TypeAlias = socket.socket | Stream
Action: TypeAlias = Callable[[int, Any], None]  # number of the operation, body of the command


class Refused(Exception):
    """The head does not want this worker; the message says why."""


class HeadGone(Exception):
    """The head is gone or has given this worker up; the message says what was seen."""


def connect(address: str, credentials: Credentials) -> Connection:
    """The head at "unix:/path", or at "host:port" with TLS. Raises OSError (ssl.SSLError if that is not the head of this run)."""
    return addresses.connect(address) if addresses.is_unix(address) else door.call(address, door.CHANNEL, credentials)


def greet(sock: Connection, hello: wire.Hello) -> None:
    """Say who this is. Raises OSError."""
    hello.version = frames.VERSION
    hello.release = __version__
    sock.sendall(frames.encode(wire.ToHead(hello=hello).SerializeToString()))


def welcome(sock: Connection, *, spare: bool) -> wire.Welcome:
    """The head's answer; a spare may wait long for it. Raises Refused, OSError."""
    sock.settimeout(None if spare else _WELCOME_SECONDS)
    data = frames.receive(sock)
    sock.settimeout(None)
    if data is None:
        raise Refused("the head closed the connection without a word: is it of the same release?")
    answer = wire.ToWorker.FromString(data).welcome
    if answer.refused:
        raise Refused(answer.refused)
    if answer.version != frames.VERSION:
        raise Refused(
            f"the head speaks version {answer.version} of the channel, this worker (everstep {__version__}) version {frames.VERSION}: "
            "install the same release on both"
        )
    return answer


def end_with_the_head(sock: Connection, patience: float) -> None:
    """Let the connection break when the head's machine has confirmed nothing for so many seconds, heartbeats among it.

    So a worker that is cut off ends by itself, and before the head starts another in its place: two never work at the same time.
    Linux: tcp(7), TCP_USER_TIMEOUT. Elsewhere it ends when the connection is told to be broken.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, option, int(patience * 1000))


def read(sock: Connection, beside: dict[str, Action], executor: Executor) -> str:
    """Take commands until Stop comes; returns why. Raises HeadGone when the connection ends before.

    beside: what to do at once, by the name of the field in ToWorker; everything else waits its turn in the executor.
    """
    while True:
        try:
            data = frames.receive(sock)
        except OSError as error:
            raise HeadGone(f"the connection to the head broke: {error}") from error
        if data is None:
            raise HeadGone("the head closed the connection")
        message = wire.ToWorker.FromString(data)
        name = message.WhichOneof("body")
        if name is None:
            continue
        if name == "stop":
            return f"the head said stop: {message.stop.reason}"
        body = getattr(message, name)
        action = beside.get(name)
        if action is not None:
            FAULTS.reach(name)
            action(message.op, body)
            FAULTS.reach(name, after=True)
        else:
            executor.push(message.op, name, body)


def beat(reporter: Reporter, arrays: Arrays, executor: Executor, interval: float, stop: threading.Event) -> None:
    """Tell the head every so many seconds that this process lives, in a thread, until `stop` is set."""

    def run() -> None:
        while not stop.is_set():
            heartbeat = wire.Heartbeat(arrays=len(arrays), bytes=arrays.nbytes(), programs=executor.programs(), started=executor.started)
            reporter.send(wire.ToHead(heartbeat=heartbeat))
            xla.take_back()
            stop.wait(interval)

    threading.Thread(target=run, name="heartbeat", daemon=True).start()
