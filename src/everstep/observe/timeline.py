"""The recovery timeline: how long each stage took from the moment a worker was found dead until the program's work went on."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection
from typing import Any

from everstep.observe.events import clock


@dataclasses.dataclass(slots=True)
class Stage:
    """Something that was reached. seconds: after the loss was detected."""

    name: str
    seconds: float
    note: str


class ElasticEvent:
    """The loss of one worker, and the way back."""

    def __init__(self, number: int, worker: str, cause: str, wall: float, started: float) -> None:
        """cause: for people. wall: when it was detected, seconds since 1970. started: the same on the clock that times the stages."""
        self.number = number
        self.worker = worker
        self.cause = cause
        self.wall = wall
        self.started = started
        self.stages: dict[str, Stage] = {}
        self.is_final = False  # there will be no successor

    def reach(self, name: str, now: float, note: str) -> None:
        """A stage is reached; only the first time counts."""
        self.stages.setdefault(name, Stage(name, now - self.started, note))

    def as_dict(self) -> dict[str, Any]:
        """For JSON: milliseconds after detection by stage."""
        return {
            "event": self.number,
            "cause": self.cause,
            "detected": self.wall,
            "stages": {stage.name: {"ms": round(stage.seconds * 1e3, 1), "note": stage.note} for stage in self.stages.values()},
        }

    def __str__(self) -> str:
        width = max(map(len, (FIRST_FULL, *self.stages)))
        lines = [f"elastic event {self.number}: {self.cause}", f"  {'detected':<{width}}  {clock(self.wall)}"]
        lines += [
            f"  {stage.name:<{width}}  {f'+{stage.seconds * 1e3:,.0f} ms':>12}  {stage.note}"
            for stage in sorted(self.stages.values(), key=lambda stage: stage.seconds)
        ]
        return "\n".join(lines)


FREE = "survivors free"  # they can run programs again
REPLACED = "replaced"  # programs can span the successor
FIRST = "first operation done"  # a program that was dispatched after the loss has ended well, wherever
FIRST_FULL = "first operation on the successor done"


class Timeline:
    """The elastic events of a run that are not over, fed with what happens."""

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float], over: Callable[[ElasticEvent], None]) -> None:
        """clock: times the stages, seconds. wall: seconds since 1970. over: called when an event has reached all its stages."""
        self._clock = clock
        self._wall = wall
        self._over = over
        self._numbers = itertools.count(1)
        self._open: list[ElasticEvent] = []

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is being recovered from."""
        return not self._open

    def lost(self, worker: str, cause: str) -> None:
        """A worker is dead."""
        for event in [event for event in self._open if event.worker == worker]:
            self._close(event)  # its successor died before it was of use
        self._open.append(ElasticEvent(next(self._numbers), worker, cause, self._wall(), self._clock()))

    def world(self, number: int, incarnations: dict[str, int]) -> None:
        """Programs can span these workers. An empty dictionary: nobody is left."""
        note = f"world {number} of {', '.join(incarnations)}" if incarnations else "nobody is left"
        now = self._clock()
        for event in self._open:
            event.reach(FREE, now, note)
            if event.worker in incarnations:
                event.reach(REPLACED, now, f"incarnation {incarnations[event.worker]}, {note}")

    def ended(self, program: str, workers: Collection[str], seconds: float) -> None:
        """A program has ended well that was dispatched `seconds` ago."""
        now = self._clock()
        for event in list(self._open):
            if FREE not in event.stages or now - seconds < event.started:
                continue
            event.reach(FIRST, now, program)
            if REPLACED in event.stages and event.worker in workers:
                event.reach(FIRST_FULL, now, program)
            if FIRST_FULL in event.stages or event.is_final:
                self._close(event)

    def given_up(self, worker: str) -> None:
        """There will be no successor."""
        for event in self._open:
            event.is_final |= event.worker == worker

    def close(self) -> None:
        """The run is over: tell of what is open as far as it came."""
        for event in list(self._open):
            self._close(event)

    def _close(self, event: ElasticEvent) -> None:
        self._open.remove(event)
        self._over(event)
