"""A worker at work: its parts put together, and what ends it."""

from __future__ import annotations

import logging
import os
import pathlib
import socket
import sys

from everstep.wire import bulk
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure
from everstep.worker import channel, xla
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
from everstep.worker.world import World, Worlds

log = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 1.0  # if the head does not say
_NOT_JOINED = 1  # exit status


def serve(options: Options) -> int:
    """Join the head and do what it says; the process ends in here. Returns an exit status only if it can't join."""
    platform = CpuPlatform(options.devices, options.keep_combiner)
    try:
        sock = channel.connect(options.head)
    except OSError as error:
        print(f"everstep worker {options.name}: the head at {options.head} can't be reached: {error}", file=sys.stderr)
        return _NOT_JOINED
    worker = Worker(options, platform, sock)
    try:
        welcome = channel.join(sock, worker.hello())
        FAULTS.begin(welcome.name, welcome.incarnation)
        FAULTS.reach("welcome")
        log.info("worker %s joined as incarnation %d", welcome.name, welcome.incarnation)
    except (channel.Refused, OSError) as error:
        print(f"everstep worker {options.name}: the head at {options.head} does not take it: {error}", file=sys.stderr)
        worker.close()
        return _NOT_JOINED
    status = 1
    try:
        reason = worker.work(welcome)
        log.info("worker %s ends: %s", options.name, reason)
        status = 0
    except BaseException:
        log.exception("worker %s ends", options.name)
    finally:
        worker.close()
        options.farewell()
        sys.stderr.flush()
        os._exit(status)  # not by way of Python's own end: threads may be stuck in XLA, and nobody waits for them any more


class Worker:
    """The parts."""

    def __init__(self, options: Options, platform: CpuPlatform, sock: socket.socket) -> None:
        self._options = options
        self._sock = sock
        self._host = options.host or ("127.0.0.1" if sock.family == socket.AF_UNIX else str(sock.getsockname()[0]))
        self._platform = platform
        self._reporter = Reporter(sock)
        self._arrays = Arrays()
        self._callbacks = Callbacks(self._reporter)
        self._worlds = Worlds(lambda number: platform.world(number, self._host), self._reporter, self._broken, self._dropped)
        self._transfers = Transfers(self._arrays, self._worlds, self._reporter, options.token)
        self._persistence = Persistence(self._arrays, self._worlds, self._reporter)
        compiler = Compiler(self._callbacks, platform.stand_in)
        self._executor = Executor(self._arrays, self._worlds, compiler, self._transfers, self._persistence, self._reporter)
        self._socket_file: pathlib.Path | None = None
        self._server = bulk.Server(self._bulk_address(), options.token, self._provide)

    def hello(self) -> wire.Hello:
        return wire.Hello(
            token=self._options.token,
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

    def work(self, welcome: wire.Welcome) -> str:
        """Until the head says stop or is gone. Returns what it was."""
        self._executor.start()
        channel.beat(self._reporter, self._arrays, self._executor, welcome.heartbeat_interval or _HEARTBEAT_SECONDS)
        beside: dict[str, channel.Action] = {
            "connect_world": self._worlds.connect,
            "build_world": self._worlds.build,
            "break_world": self._worlds.break_up,
            "drop_world": self._worlds.drop,
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

    def _dropped(self, world: World) -> None:
        self._executor.forget(world)

    def _provide(self, key: str) -> bulk.Buffer | tuple[bulk.Buffer, ...]:
        FAULTS.reach("serve")
        kind, _, rest = key.partition("/")
        return self._executor.blob(int(rest)) if kind == "blob" and rest.isdecimal() else self._transfers.provide(key)

    def _bulk_address(self) -> str:
        """A unix socket for those on the same machine."""
        if self._options.shared_directory is None:
            return f"[{self._host}]:0" if ":" in self._host else f"{self._host}:0"
        self._socket_file = pathlib.Path(self._options.shared_directory) / f"{self._options.name}.{self._options.incarnation}.sock"
        return f"unix:{self._socket_file}"
