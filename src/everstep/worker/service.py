"""A worker at work: its parts put together, and what ends it."""

from __future__ import annotations

import gc
import logging
import os
import pathlib
import socket
import ssl
import sys
import threading

from everstep.wire import addresses, bulk, door
from everstep.wire import channel_pb2 as wire
from everstep.wire.credentials import Credentials
from everstep.wire.errors import Code, Failure
from everstep.worker import channel, leaving, xla
from everstep.worker.arrays import Arrays
from everstep.worker.callbacks import Callbacks
from everstep.worker.cpu import CpuPlatform
from everstep.worker.executor import Executor
from everstep.worker.faults import FAULTS
from everstep.worker.main import Options
from everstep.worker.persistence import Persistence
from everstep.worker.programs import Compiler
from everstep.worker.reports import Reporter
from everstep.worker.transfers import Transfers
from everstep.worker.tunnel import Tunnel
from everstep.worker.world import World, Worlds

log = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 1.0  # if the head does not say
_NOT_JOINED = 1  # exit status
_FROM_HEAD = 8  # transfers to and from the head at a time: more would not be faster, and would crowd out its channel


def serve(options: Options) -> int:
    """Join the head and do what it says; the process ends in here. Returns an exit status only if it can't join."""
    who = f" {options.name}" if options.name else ""
    platform = CpuPlatform(options.devices, options.keep_combiner)
    try:
        credentials = Credentials.parse(options.token)
        sock = channel.connect(options.head, credentials)
    except (OSError, ValueError) as error:
        how = "is not of the run that the token belongs to" if isinstance(error, ssl.SSLError) else "can't be reached"
        print(f"everstep worker{who}: the head at {options.head} {how}: {error}", file=sys.stderr)
        return _NOT_JOINED
    worker = Worker(options, credentials, platform, sock)
    FAULTS.begin(options.name, options.incarnation)
    FAULTS.reach("start")
    try:
        channel.greet(sock, worker.hello())
        welcome = worker.wait_for_welcome()
        FAULTS.begin(welcome.name, welcome.incarnation)
        FAULTS.reach("welcome")
        log.info("worker %s joined as incarnation %d", welcome.name, welcome.incarnation)
    except (channel.Refused, OSError) as error:
        print(f"everstep worker{who}: the head at {options.head} does not take it: {error}", file=sys.stderr)
        worker.close()
        return _NOT_JOINED
    status = 1
    try:
        reason = worker.work(welcome)
        log.info("worker %s ends: %s", welcome.name, reason)
        status = 0
    except channel.HeadGone as gone:  # whoever has started this worker may want to start it again
        log.info("worker %s ends: %s", welcome.name, gone)
    except BaseException:
        log.exception("worker %s ends", options.name)
    finally:
        worker.close()
        options.farewell()
        sys.stderr.flush()
        os._exit(status)  # not by way of Python's own end: threads may be stuck in XLA, and nobody waits for them any more


class Worker:
    """The parts."""

    def __init__(self, options: Options, credentials: Credentials, platform: CpuPlatform, sock: channel.Connection) -> None:
        self._options = options
        self._credentials = credentials
        self._sock = sock
        self._host = options.host or ("127.0.0.1" if sock.family == socket.AF_UNIX else str(sock.getsockname()[0]))
        self._platform = platform
        self._reporter = Reporter(sock)
        self._arrays = Arrays()
        self._callbacks = Callbacks(self._reporter)
        self._worlds = Worlds(lambda number: platform.world(number, self._host), self._reporter, self._broken, self._dropped)
        head = bulk.Client(credentials, lambda _: door.call_for_data(options.head, credentials), _FROM_HEAD)
        self._transfers = Transfers(self._arrays, self._worlds, self._reporter, bulk.Client(credentials), head)
        self._persistence = Persistence(self._arrays, self._worlds, self._reporter)
        compiler = Compiler(self._callbacks, platform.stand_in)
        self._executor = Executor(self._arrays, self._worlds, compiler, self._transfers, self._persistence, self._reporter)
        self._socket_file: pathlib.Path | None = None
        self._server = bulk.Server(self._bulk_address(), credentials, self._provide)
        self._tunnels: dict[int, Tunnel] = {}

    def hello(self) -> wire.Hello:
        return wire.Hello(
            token=self._credentials.token,
            name=self._options.name,
            slice=self._options.slice,
            worker=self._options.worker,
            incarnation=self._options.incarnation,
            pid=os.getpid(),
            host=self._host,
            bulk_address=self._server.address,
            shares_directory=self._options.shared_directory is not None,
            devices=self._platform.devices,
            jaxlib=xla.JAXLIB,
            spare=self._options.spare,
            platform_version=self._platform.version,
        )

    def wait_for_welcome(self) -> wire.Welcome:
        """Raises Refused, OSError."""
        waiting = threading.Event()
        if self._options.spare:
            channel.beat(self._reporter, self._arrays, self._executor, _HEARTBEAT_SECONDS, waiting)
        try:
            return channel.welcome(self._sock, spare=self._options.spare)
        finally:
            waiting.set()

    def work(self, welcome: wire.Welcome) -> str:
        """Until the head says stop. Returns what it said. Raises HeadGone."""
        gc.freeze()  # what is there by now stays: looking for garbage takes milliseconds then (worker/world.py)
        self._executor.start()
        channel.end_with_the_head(self._sock, welcome.patience)
        leaving.on_request(self._reporter, welcome.grace)
        channel.beat(self._reporter, self._arrays, self._executor, welcome.heartbeat_interval or _HEARTBEAT_SECONDS, threading.Event())
        beside: dict[str, channel.Action] = {
            "connect_world": self._connect_world,
            "build_world": self._worlds.build,
            "break_world": self._worlds.break_up,
            "drop_world": self._drop_world,
            "abandon": self._persistence.abandon,
            "buffer_ready": self._transfers.buffers.ready,
            "callback_result": self._callbacks.answer,
        }
        return channel.read(self._sock, beside, self._executor)

    def close(self) -> None:
        """Leave nothing behind."""
        self._server.close()
        if self._socket_file is not None:
            self._socket_file.unlink(missing_ok=True)

    def _broken(self, world: World, failure: Failure) -> None:
        self._callbacks.abandon(world, failure)
        if failure.code is Code.DATA_LOSS:  # else its members all live, and what they send each other comes
            self._transfers.abandon(failure)

    def _connect_world(self, op: int, message: wire.ConnectWorld) -> None:
        if not addresses.is_unix(self._options.head):
            tunnel = self._tunnels[message.world] = Tunnel(self._options.head, self._credentials, message.service)
            message.service = tunnel.address
        self._worlds.connect(op, message)

    def _drop_world(self, op: int, message: wire.DropWorld) -> None:
        self._worlds.drop(op, message)
        if (tunnel := self._tunnels.pop(message.world, None)) is not None:
            tunnel.close()

    def _dropped(self, world: World) -> None:
        self._executor.forget(world)

    def _provide(self, key: str) -> bulk.Buffer | bulk.Lent:
        FAULTS.reach("serve")
        kind, _, rest = key.partition("/")
        return self._executor.blob(int(rest)) if kind == "blob" and rest.isdecimal() else self._transfers.provide(key)

    def _bulk_address(self) -> str:
        """A unix socket for those on the same machine."""
        if self._options.shared_directory is None:
            return addresses.join(self._host, 0)
        self._socket_file = pathlib.Path(self._options.shared_directory) / f"{self._options.name}.{self._options.incarnation}.sock"
        return f"unix:{self._socket_file}"
