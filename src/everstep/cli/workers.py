"""The workers that a head starts for itself: couples what watches their processes with the runtime."""

from __future__ import annotations

import asyncio
import logging
import signal as signals
from collections.abc import Iterable

from everstep.cli.errors import CommandError
from everstep.head.runtime import Runtime
from everstep.launch.seam import Launcher, WorkerSpec
from everstep.launch.supervisor import Policy, Supervisor
from everstep.wire.errors import Code, Failure, invalid

log = logging.getLogger(__name__)


class Workers:
    """Couples a supervisor and a runtime."""

    def __init__(self, launcher: Launcher, policy: Policy, runtime: Runtime) -> None:
        self._runtime = runtime
        self._supervisor = Supervisor(launcher, policy, self)
        runtime.fence = self._supervisor.fence

    async def start(self, specs: Iterable[WorkerSpec]) -> None:
        """Raises CommandError if a process can't be started."""
        try:
            await self._supervisor.start(specs)
        except OSError as error:
            raise CommandError(f"a worker can't be started: {error}") from error

    async def until_started(self) -> None:
        """Wait until the runtime is up. Raises CommandError if a worker ends by itself before, or it can't be for another reason."""
        started = asyncio.ensure_future(self._runtime.started())
        first_end, fatal = self._supervisor.first_end, self._runtime.fatal
        await asyncio.wait((started, first_end, fatal), return_when=asyncio.FIRST_COMPLETED)
        if started.done():
            self._supervisor.started()
            return
        started.cancel()
        # How a process ended and what it said is the better story, and may come a moment after the end of its connection.
        await asyncio.wait((first_end,), timeout=0.2)
        raise CommandError((first_end if first_end.done() else fatal).result())

    def kill(self, worker: str, signal: int) -> None:
        """Send it a signal. Raises Failure if that can't be done."""
        if worker not in self._runtime.members.slots:
            raise invalid(f"this run has no worker {worker!r}; it has {', '.join(self._runtime.members.slots)}")
        if not self._supervisor.signal(worker, signal):
            raise Failure(Code.FAILED_PRECONDITION, f"worker {worker} has no process of this head at the moment")
        self._runtime.history.killed(worker, signals.Signals(signal).name)

    def close(self) -> None:
        """From now on ends are of no interest."""
        self._supervisor.close()

    # What the supervisor tells.

    def exited(self, name: str, incarnation: int, how: str) -> None:
        self._runtime.worker_exited(name, incarnation, how)

    def has_joined(self, name: str, incarnation: int) -> bool:
        return self._runtime.has_joined(name, incarnation)

    def take_spare(self, spare: str, name: str, incarnation: int) -> bool:
        return self._runtime.take_spare(spare, name, incarnation)

    def restarting(self, name: str, incarnation: int, delay: float, spare: str | None) -> None:
        self._runtime.history.restarting(name, incarnation, delay, spare)

    def given_up(self, name: str, why: str) -> None:
        self._runtime.history.given_up(name, why)
