"""The workers that a head starts for itself, and what becomes of them."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterable

from everstep.cli.errors import CommandError
from everstep.head.runtime import Runtime
from everstep.launch.seam import Exit, Launcher, Process, WorkerSpec

log = logging.getLogger(__name__)

_LINES = 20  # of a worker's log are shown when it ends
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)  # the worker has nothing to say about these


class Workers:
    """Starts workers, and tells the runtime of each end the moment it is known."""

    def __init__(self, launcher: Launcher, runtime: Runtime) -> None:
        self._launcher = launcher
        self._runtime = runtime
        self._up = False
        self._watches: set[asyncio.Task[None]] = set()
        self._first_end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self, specs: Iterable[WorkerSpec]) -> None:
        """Raises CommandError if a process can't be started."""
        for spec in specs:
            try:
                process = await self._launcher.start(spec)
            except OSError as error:
                raise CommandError(f"worker {spec.name} can't be started: {error}") from error
            watch = asyncio.ensure_future(self._watch(process))
            self._watches.add(watch)
            watch.add_done_callback(self._watches.discard)

    async def until_started(self) -> None:
        """Wait until the runtime is up. Raises CommandError if a worker ends before, or it can't be for another reason."""
        started = asyncio.ensure_future(self._runtime.started())
        await asyncio.wait((started, self._first_end, self._runtime.fatal), return_when=asyncio.FIRST_COMPLETED)
        if started.done():
            self._up = True
            return
        started.cancel()
        # How a process ended and what it said is the better story, and may come a moment after the end of its connection.
        await asyncio.wait((self._first_end,), timeout=0.2)
        raise CommandError((self._first_end if self._first_end.done() else self._runtime.fatal).result())

    def close(self) -> None:
        """From now on ends are of no interest."""
        for watch in tuple(self._watches):
            watch.cancel()

    async def _watch(self, process: Process) -> None:
        end = await process.wait()
        spec = process.spec
        self._runtime.worker_exited(spec.name, spec.incarnation, str(end))
        words = _last_words(process, end)
        if words and self._up:
            log.warning("the last words of worker %s:%s", spec.name, words)
        if not self._first_end.done():
            self._first_end.set_result(f"worker {spec.name} has ended before everything was up: {end}{words}")


def _last_words(process: Process, end: Exit) -> str:
    if end.signal in _FROM_OUTSIDE:
        return ""
    return "".join(f"\n  {process.spec.name}| {line}" for line in process.last_words().splitlines()[-_LINES:])
