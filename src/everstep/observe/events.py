"""Events: what happened to the workers of a run, as plain data."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import datetime
import enum
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

KEPT = 10_000  # events; older ones are forgotten


class Kind(enum.StrEnum):
    """What an event tells."""

    JOINED = "joined"  # a worker process has joined the head
    SUSPECTED = "suspected"  # a worker has been silent for long
    HEARD = "heard"  # a suspected worker was heard of again
    FENCED = "fenced"  # a worker that is taken for dead is being killed
    LEAVING = "leaving"  # a worker has been told to go, and does soon
    KILLED = "killed"  # somebody asked for it: `everstep kill`
    LOST = "lost"  # a worker is dead
    WAITING = "waiting"  # a process that was started has no place on the cluster yet
    RESTARTING = "restarting"  # a process for its place is about to be started
    GIVEN_UP = "given up"  # no process will be started for its place any more
    WORLD = "world"  # programs can span these workers from now on
    SLICE_DOWN = "slice down"
    SLICE_UP = "slice up"
    RECOVERED = "recovered"  # the timeline of an elastic event that is over


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """One event.

    number: counts from 1. time: seconds since 1970. slice, worker, incarnation: whom it is about, None for nobody in particular.
    message: for people. details: for programs; can be written as JSON.
    """

    number: int
    time: float
    kind: Kind
    message: str
    slice: int | None = None
    worker: str | None = None
    incarnation: int | None = None
    details: dict[str, Any] = dataclasses.field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self) | {"kind": str(self.kind)}

    @staticmethod
    def of(data: dict[str, Any]) -> Event:
        """From what `as_dict` gave."""
        return Event(**data | {"kind": Kind(data["kind"])})

    def __str__(self) -> str:
        return f"{clock(self.time)}  {self.kind:<10}  {self.message}"


def clock(seconds: float) -> str:
    """The time of day in UTC, to the millisecond."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%H:%M:%S.%f")[:-3]


class Events:
    """The events of a run, in order. Used on one event loop."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._kept: collections.deque[Event] = collections.deque(maxlen=KEPT)
        self.last = 0  # number of the newest
        self._more: asyncio.Event = asyncio.Event()

    def add(
        self,
        kind: Kind,
        message: str,
        *,
        slice: int | None = None,
        worker: str | None = None,
        incarnation: int | None = None,
        **details: Any,
    ) -> Event:
        """Something has happened now."""
        self.last += 1
        event = Event(self.last, self._now(), kind, message, slice, worker, incarnation, details)
        self._kept.append(event)
        more, self._more = self._more, asyncio.Event()
        more.set()
        return event

    def after(self, number: int) -> list[Event]:
        """Those that came later than the one with this number (0: all), as far as they are kept."""
        return [event for event in self._kept if event.number > number]

    async def follow(self, number: int = 0) -> AsyncIterator[Event]:
        """The same, and then each new one as it comes, for ever."""
        while True:
            more = self._more
            for event in self.after(number):
                number = event.number
                yield event
            await more.wait()
