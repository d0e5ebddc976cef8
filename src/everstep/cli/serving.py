"""What the head process consists of: puts launcher, runtime, frontend and control together, and takes everything down in the end."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import logging
import os
import pathlib
import secrets
import sys
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import grpc

from everstep.cli import options
from everstep.cli.errors import CommandError, UsageError
from everstep.cli.launchers import launcher_of
from everstep.cli.lifeline import Lifeline
from everstep.cli.remotebuffers import RemoteBuffers
from everstep.cli.rundirectory import RunDirectory
from everstep.cli.screen import Screen
from everstep.cli.workers import Workers
from everstep.control import service as control
from everstep.frontend import service as frontend
from everstep.head.door import Door
from everstep.head.runtime import Runtime, RuntimeConfig
from everstep.launch.seam import Launcher, WorkerSpec
from everstep.wire.credentials import Credentials

if TYPE_CHECKING:
    from everstep.worker.coordination import Coordination

log = logging.getLogger(__name__)

_TEARDOWN_SECONDS = 5.0

_SERVER_OPTIONS = (*frontend.SERVER_OPTIONS, ("grpc.so_reuseport", 0))  # the last so that a port in use is an error


async def serve(chosen: options.HeadOptions, directory: RunDirectory, lifeline: Lifeline) -> None:
    """Be a head until the lifeline is cut. Raises CommandError for what prevents it."""
    work = asyncio.ensure_future(_Head(chosen, directory, lifeline).run())
    cut = asyncio.ensure_future(lifeline.cut())
    await asyncio.wait((cut, work), return_when=asyncio.FIRST_COMPLETED)
    _end_in_any_case()
    cut.cancel()
    work.cancel()
    try:
        await work
    except asyncio.CancelledError:
        pass
    except CommandError:
        raise
    except Exception as error:
        log.exception("the head has failed")
        raise CommandError(f"the head has failed: {error!r}") from error


class _Head:
    def __init__(self, chosen: options.HeadOptions, directory: RunDirectory, lifeline: Lifeline) -> None:
        self._options = chosen
        self._directory = directory
        self._lifeline = lifeline
        self._logs = chosen.log_directory or directory.path
        self._head, self._workers = _credentials(chosen)
        self._shared = directory.make_shared(chosen.shared_directory)
        self._channel = str(chosen.join) if chosen.join else f"unix:{directory.workers_socket}"
        self._target = directory.target()
        _log_to(self._logs / "head.log")

    async def run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            ports: set[int] = set()
            runtime = Runtime(self._config(ports))
            launcher = await launcher_of(self._options, self._directory.path, self._logs, runtime.history.waiting)
            stack.push_async_callback(_close, runtime, launcher)
            await self._listen(runtime, ports, stack)
            workers = Workers(launcher, self._options.policy, runtime)
            stack.callback(workers.close)
            await stack.enter_async_context(self._served(runtime, workers))
            if self._options.launcher == options.EXTERNAL:
                self._ask_for_workers(runtime)
            else:
                await workers.start(self._specs(runtime))
            await workers.until_started()
            self._lifeline.tell({"ready": self._ready(runtime)})
            await asyncio.Event().wait()

    def _config(self, ports: set[int]) -> RuntimeConfig:
        """ports: of the coordination services that there are at any time."""
        chosen = self._options

        def coordination() -> Coordination:
            from everstep.worker.coordination import Coordination  # imports jaxlib: one worker alone needs none

            return Coordination(ports)

        return RuntimeConfig(
            slices=chosen.slices,
            workers_per_slice=chosen.workers_per_slice,
            devices_per_worker=chosen.devices_per_worker,
            token=self._head.token,
            directory=self._shared,
            coordination=coordination,
            heartbeat_interval=min(1.0, chosen.heartbeat_timeout / 5),
            heartbeat_timeout=chosen.heartbeat_timeout,
            progress_timeout=chosen.progress_timeout,
            grace=chosen.grace_period,
        )

    async def _listen(self, runtime: Runtime, ports: set[int], stack: contextlib.AsyncExitStack) -> None:
        """For workers: on this machine at a unix socket, else at one port for all that they want."""
        try:
            if self._options.join is None:
                await runtime.listen(str(self._directory.workers_socket))
                return
            door = Door(str(self._options.join), self._head)
        except OSError as error:
            raise _cannot_listen(self._channel, error) from error
        buffers = RemoteBuffers(self._head, runtime.buffers, self._shared)
        door.open(runtime.link, buffers.serve, ports)
        stack.callback(buffers.close)
        stack.callback(door.close)
        self._channel = door.address

    @contextlib.asynccontextmanager
    async def _served(self, runtime: Runtime, workers: Workers) -> AsyncIterator[None]:
        """Programs and the command line are served. The unix socket is there in any case: `everstep status` uses it."""
        server = grpc.aio.server(options=_SERVER_OPTIONS)
        frontend.add_to_server(server, runtime)
        _bind(server, self._directory.target())
        if (listen := self._options.listen) is not None:
            port = _bind(server, str(listen))
            self._target = str(options.Address(listen.host, port))
        control.add_to_server(server, _Control(self._options.name, self._target, runtime, workers))
        await server.start()
        try:
            yield
        finally:
            await server.stop(None)

    def _specs(self, runtime: Runtime) -> list[WorkerSpec]:
        return [
            WorkerSpec(
                name=slot.name,
                slice=slot.slice,
                worker=slot.worker,
                incarnation=1,
                devices=len(slot.devices),
                head=self._channel,
                token=str(self._workers),
                shared_directory=None if self._options.join else str(self._shared),
            )
            for slot in runtime.members.slots.values()
        ]

    def _ask_for_workers(self, runtime: Runtime) -> None:
        token = "TOKEN-FILE"
        if self._workers is not None:
            token = str(self._directory.token)
            self._directory.token.touch(mode=0o600)
            self._directory.token.write_text(f"{self._workers}\n")
        lines = [f"waiting for workers at {self._channel}. Start them with (on other machines: a copy of the token file):"]
        for slot in runtime.members.slots.values():
            place = f"--slice {slot.slice} --devices {len(slot.devices)}"
            lines.append(f"  everstep worker --head {self._channel} --token-file {token} {place}")
        log.warning("%s", "\n".join(lines))

    def _ready(self, runtime: Runtime) -> dict[str, Any]:
        return {
            "target": f"grpc://{self._target}",
            "shared_directory": str(self._shared),
            "workers": len(runtime.members),
            "devices": len(runtime.members.devices),
        }


class _Control:
    """What the head offers to the command line and the plugin."""

    def __init__(self, name: str, target: str, runtime: Runtime, workers: Workers) -> None:
        self._about = {"name": name, "pid": os.getpid(), "target": f"grpc://{target}"}
        self._runtime = runtime
        self.callbacks = runtime.callbacks
        self.events = runtime.events
        self.kill = workers.kill

    def status(self) -> dict[str, Any]:
        return self._about | self._runtime.status()


def _credentials(chosen: options.HeadOptions) -> tuple[Credentials, Credentials | None]:
    """Those of the head and of its workers, None where somebody else has given workers theirs. Raises UsageError."""
    if chosen.join is None:
        local = Credentials(secrets.token_urlsafe(32))
        return local, local
    if chosen.token_file is None:
        from everstep.cli import certificates  # imports cryptography: nothing needs it on one machine

        return certificates.make()
    try:
        head = Credentials.parse(chosen.token_file.read_text().strip())
    except (OSError, ValueError) as error:
        raise UsageError(f"the token can't be read: {error}") from error
    if head.server is None:
        raise UsageError(f"{chosen.token_file} holds no token of a head: `everstep kubernetes render` makes one")
    return head, None


def _end_in_any_case() -> None:
    """End this process after a while, even if something in it is stuck: the workers then clean up."""
    timer = threading.Timer(_TEARDOWN_SECONDS, os._exit, (1,))
    timer.daemon = True
    timer.start()


async def _close(runtime: Runtime, launcher: Launcher) -> None:
    """Both at once: a world's service ends only when its workers are gone, but the runtime must not take them for lost."""
    await asyncio.gather(runtime.close(), launcher.close())


def _cannot_listen(address: str, error: OSError) -> UsageError:
    return UsageError(f"can't listen at {address}: {error.strerror or error}")


def _bind(server: grpc.aio.Server, address: str) -> int:
    try:
        return int(server.add_insecure_port(address))
    except RuntimeError as error:
        raise UsageError(f"can't listen at {address}: it is in use, or not an address of this machine") from error


def _log_to(path: pathlib.Path) -> None:
    """Everything to a file; what people should know of to standard error too.

    What libraries write to standard error goes to the file: gRPC and XLA are talkative, and the terminal is the program's.
    """
    screen = Screen(os.dup(sys.stderr.fileno()))
    log_file = path.open("a", buffering=1)
    file = logging.StreamHandler(log_file)
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    os.dup2(log_file.fileno(), sys.stderr.fileno())
    faulthandler.enable()
    logging.basicConfig(level=logging.INFO, handlers=[file, screen])
