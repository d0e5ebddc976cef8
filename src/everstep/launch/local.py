"""Workers as processes on this machine.

Each is `python -m everstep worker ...` in a session of its own, so that Ctrl-C in a terminal does not reach it. It gets one end of a pipe,
the lifeline: on it the head writes the token, which so appears on no command line and in no file, and at its end of file the worker knows
that the head is gone, however it went.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import signal
import sys
from collections.abc import Sequence

from everstep.launch.seam import ALLOCATOR, Exit, WorkerSpec

_LAST_WORDS = 1 << 18  # bytes: where its threads are, which a worker that crashes tells last, may be long


def worker_command(spec: WorkerSpec, lifeline: int, run_directory: pathlib.Path | None) -> list[str]:
    """The command line of a worker whose end of the lifeline is file descriptor `lifeline`."""
    command = [
        *(sys.executable, "-P", "-m", "everstep", "worker"),  # -P: a file in the user's directory must not shadow a module
        *("--head", spec.head, "--name", spec.name, "--slice", str(spec.slice), "--worker", str(spec.worker)),
        *("--incarnation", str(spec.incarnation), "--devices", str(spec.devices)),
        *("--lifeline", str(lifeline)),
    ]
    if run_directory is not None:
        command += ["--run-directory", str(run_directory)]
    if spec.spare:
        command += ["--spare"]
    if spec.shared_directory is not None:
        command += ["--shared-directory", spec.shared_directory]
    return command


class LocalLauncher:
    """Starts workers as children of this process. Their standard output and error go to `<logs>/<name>.<incarnation>.log`.

    run_directory: of the head, which its workers remove if it can't. None where it is elsewhere: then they die with this process.
    """

    def __init__(self, run_directory: pathlib.Path | None, logs: pathlib.Path) -> None:
        self._run_directory = run_directory
        self._logs = logs
        self._processes: set[LocalProcess] = set()

    async def start(self, spec: WorkerSpec) -> LocalProcess:
        log = self._logs / f"{spec.name}.{spec.incarnation}.log"
        ours, theirs = _pipe_with(spec.token.encode() + b"\n")
        try:
            child = await self._spawn(worker_command(spec, theirs, self._run_directory), spec, log, theirs)
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        process = LocalProcess(spec, child, log, ours)
        self._processes.add(process)
        process.ended.add_done_callback(lambda _: self._processes.discard(process))
        return process

    async def _spawn(self, command: Sequence[str], spec: WorkerSpec, log: pathlib.Path, lifeline: int) -> asyncio.subprocess.Process:
        with log.open("ab") as output:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                env=_environment(spec),
                pass_fds=[lifeline],
                start_new_session=True,
            )

    async def close(self) -> None:
        await asyncio.gather(*(process.kill() for process in tuple(self._processes)))


class LocalProcess:
    """One worker process. Its end is known at once: the event loop watches the child."""

    def __init__(self, spec: WorkerSpec, child: asyncio.subprocess.Process, log: pathlib.Path, lifeline: int) -> None:
        self.spec = spec
        self.pid = child.pid
        self._child = child
        self._log = log
        self._lifeline = lifeline
        self.ended = asyncio.ensure_future(self._end())

    async def _end(self) -> Exit:
        try:
            return Exit.of(await self._child.wait())
        finally:
            os.close(self._lifeline)

    async def started(self) -> None:
        """It runs as soon as it is there."""

    async def wait(self) -> Exit:
        return await asyncio.shield(self.ended)

    async def kill(self) -> Exit:
        if not self.ended.done():
            # The whole group: the worker leads its own, and what it has started must not outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        return await self.wait()

    def signal(self, number: int) -> bool:
        if self.ended.done():
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        return True

    def last_words(self) -> str:
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_WORDS))
                return file.read().decode(errors="replace").strip()
        except OSError:
            return ""


def _pipe_with(content: bytes) -> tuple[int, int]:
    """A pipe that already holds `content`: (writing end, reading end). The content must be short (a pipe holds 4 KiB at least)."""
    reading, writing = os.pipe()
    os.write(writing, content)
    return writing, reading


def _environment(spec: WorkerSpec) -> dict[str, str]:
    """This process's environment, without what would turn the worker's JAX into a client of some head."""
    proxy = ("IFRT_PROXY_", "JAX_BACKEND_TARGET")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(proxy)}
    return {**ALLOCATOR, **kept} | {"JAX_PLATFORMS": "cpu", "PYTHONUNBUFFERED": "1"} | dict(spec.environment)
