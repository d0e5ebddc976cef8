"""Keeps every place filled: starts workers, notices their end, and starts a successor for the one that ended and for no other."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import itertools
import logging
import signal
from collections.abc import Callable, Coroutine, Iterable
from typing import Protocol

from everstep.launch.seam import Exit, Launcher, Process, WorkerSpec

log = logging.getLogger(__name__)

_LINES = 20  # of a worker's log are shown when it ends
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)  # the worker has nothing to say about these
_LONGEST_PAUSE = 30.0  # seconds
_SPARE_PAUSE = 3.0  # seconds until a spare that was taken is made up for: starting one is work, and others are recovering


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """When a worker that has ended gets a successor.

    replace: whether at all. max_restarts: so many per worker within `window` seconds, then none any more. spares: processes kept ready.
    steady: seconds after which a worker counts as one that works; those that end earlier are restarted after a growing pause.
    start_timeout: a process that has not joined so many seconds after it began to run is killed.
    """

    replace: bool = True
    max_restarts: int = 10
    window: float = 600.0
    spares: int = 0
    steady: float = 10.0
    start_timeout: float = 60.0


class Budget:
    """How many more times one worker may be restarted, and how soon."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._restarts: collections.deque[float] = collections.deque()
        self._short_lives = 0

    def spend(self, now: float, lived: float) -> float | None:
        """A process has ended that lived for so many seconds: after how many its successor is to start; None: never.

        The first one at once. As long as they end before they have become steady, after 1, 2, 4... seconds: a loop of crashes, however
        fast, neither spins nor gets past the limit.
        """
        policy = self._policy
        self._short_lives = self._short_lives + 1 if lived < policy.steady else 0
        while self._restarts and now - self._restarts[0] >= policy.window:
            self._restarts.popleft()
        if not policy.replace or len(self._restarts) >= policy.max_restarts:
            return None
        self._restarts.append(now)
        return min(_LONGEST_PAUSE, 2.0 ** (self._short_lives - 2)) if self._short_lives > 1 else 0.0


class Owner(Protocol):
    """Whom the supervisor works for."""

    def exited(self, name: str, incarnation: int, how: str) -> None:
        """A worker's process has ended, e.g. with "exit code 1"."""

    def has_joined(self, name: str, incarnation: int) -> bool:
        """Whether the head has heard from that process; of spares the incarnation is 0."""

    def take_spare(self, spare: str, name: str, incarnation: int) -> bool:
        """Let a spare have a worker's place. False if it is not ready."""

    def restarting(self, name: str, incarnation: int, delay: float, spare: str | None) -> None:
        """A successor is coming."""

    def given_up(self, name: str, why: str) -> None:
        """No successor is coming."""


@dataclasses.dataclass(slots=True)
class _Place:
    """A worker's place, and the process that fills it at the moment."""

    spec: WorkerSpec
    budget: Budget
    process: Process | None = None
    since: float = 0.0


class Supervisor:
    """Watches the processes of one run."""

    def __init__(self, launcher: Launcher, policy: Policy, owner: Owner) -> None:
        # Why not everything will be up: how a worker ended before.
        self.first_end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._launcher = launcher
        self._policy = policy
        self._owner = owner
        self._places: dict[str, _Place] = {}
        self._spares: dict[str, Process] = {}
        self._spare_numbers = itertools.count(1)
        self._starting_up = True
        self._tasks: set[asyncio.Task[None]] = set()
        self._now: Callable[[], float] = asyncio.get_running_loop().time

    async def start(self, specs: Iterable[WorkerSpec]) -> None:
        """Start the first incarnations and the spares. Raises OSError if a process can't be started."""
        for spec in specs:
            self._places[spec.name] = _Place(spec, Budget(self._policy))
            await self._fill(self._places[spec.name], spec)
        for _ in range(self._policy.spares):
            await self._start_spare()

    def started(self) -> None:
        """All workers are up: from now on one that ends by itself is replaced, too."""
        self._starting_up = False

    def fence(self, name: str, incarnation: int) -> bool:
        """Kill an incarnation for good. False if it is none of ours."""
        place = self._places.get(name)
        if place is None or place.process is None or place.spec.incarnation != incarnation:
            return False
        self._run(_kill(place.process))
        return True

    def signal(self, name: str, number: int) -> bool:
        """Send a signal to the process of a worker. False if there is none at the moment."""
        place = self._places.get(name)
        return place is not None and place.process is not None and place.process.signal(number)

    def close(self) -> None:
        """From now on ends are of no interest."""
        for task in tuple(self._tasks):
            task.cancel()

    async def _fill(self, place: _Place, spec: WorkerSpec) -> None:
        process = await self._launcher.start(spec)
        self._settle(place, spec, process)
        self._run(self._expect(spec, process))

    def _settle(self, place: _Place, spec: WorkerSpec, process: Process) -> None:
        place.spec, place.process, place.since = spec, process, self._now()
        self._run(self._watch(place, spec, process))

    async def _start_spare(self) -> None:
        template = next(iter(self._places.values())).spec
        spec = dataclasses.replace(template, name=f"spare{next(self._spare_numbers)}", slice=0, worker=0, incarnation=0, spare=True)
        process = await self._launcher.start(spec)
        self._spares[spec.name] = process
        self._run(self._watch_spare(spec.name, process))
        self._run(self._expect(spec, process))

    async def _expect(self, spec: WorkerSpec, process: Process) -> None:
        """Kill a process that hangs before it has joined: nothing else would ever find it."""
        await process.started()
        await asyncio.sleep(self._policy.start_timeout)
        if spec.spare and spec.name not in self._spares:
            return  # it has a place by now, or has ended
        if not self._owner.has_joined(spec.name, spec.incarnation):
            timeout = self._policy.start_timeout
            log.error("worker %s has not joined within %g s of its start (--start-timeout): it is killed", spec.name, timeout)
            await process.kill()

    async def _watch(self, place: _Place, spec: WorkerSpec, process: Process) -> None:
        end = await process.wait()
        lived = self._now() - place.since
        place.process = None
        self._owner.exited(spec.name, spec.incarnation, str(end))
        words = _last_words(spec.name, process, end)
        if self._starting_up and end.signal not in _FROM_OUTSIDE:
            if not self.first_end.done():
                self.first_end.set_result(f"worker {spec.name} has ended before everything was up: {end}{words}")
            return
        if words:
            log.warning("the last words of worker %s:%s", spec.name, words)
        await self._replace(place, lived)

    async def _replace(self, place: _Place, lived: float) -> None:
        delay = place.budget.spend(self._now(), lived)
        if delay is None:
            policy = self._policy
            often = f"it has been {policy.max_restarts} times within {policy.window:.0f} s (--max-restarts, --restart-window)"
            why = often if policy.replace else "replacing is switched off (--no-replace)"
            self._owner.given_up(place.spec.name, why)
            if self._starting_up and not self.first_end.done():
                self.first_end.set_result(f"worker {place.spec.name} has ended before everything was up, and is not replaced: {why}")
            return
        spec = dataclasses.replace(place.spec, incarnation=place.spec.incarnation + 1)
        if not delay:
            for name, process in list(self._spares.items()):
                if self._owner.take_spare(name, spec.name, spec.incarnation):
                    del self._spares[name]
                    self._owner.restarting(spec.name, spec.incarnation, 0.0, name)
                    self._settle(place, spec, process)
                    self._run(self._make_up())
                    return
        self._owner.restarting(spec.name, spec.incarnation, delay, None)
        await asyncio.sleep(delay)
        try:
            await self._fill(place, spec)
        except OSError as error:
            log.error("worker %s can't be started: %s", spec.name, error)
            place.spec = spec
            await self._replace(place, 0.0)

    async def _make_up(self) -> None:
        while True:
            await asyncio.sleep(_SPARE_PAUSE)
            try:
                return await self._start_spare()
            except OSError as error:
                log.error("a spare can't be started: %s", error)

    async def _watch_spare(self, name: str, process: Process) -> None:
        started = self._now()
        end = await process.wait()
        if self._spares.pop(name, None) is None:
            return  # it has a place now, and is watched there
        log.warning("%s has ended: %s%s", name, end, _last_words(name, process, end))
        if self._now() - started >= self._policy.steady:
            await self._make_up()
        else:
            log.error("%s is not replaced: it has ended too soon after its start", name)

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _kill(process: Process) -> None:
    await process.kill()


def _last_words(name: str, process: Process, end: Exit) -> str:
    if end.signal in _FROM_OUTSIDE:
        return ""
    return "".join(f"\n  {name}| {line}" for line in telling_lines(process.last_words()))


def telling_lines(log: str) -> list[str]:
    """The last ones, or those about what it crashed of."""
    lines = log.splitlines()
    # Where a worker crashes, Python tells first of what, and then of all its threads. What XLA had to say comes right before.
    crash = next((number for number, line in enumerate(lines) if line.startswith("Fatal Python error")), len(lines))
    first = max(0, min(crash - _LINES // 2, len(lines) - _LINES))
    return lines[first : first + _LINES]
