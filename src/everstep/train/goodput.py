"""Where the time of a run goes: all of it, each second to one part."""

from __future__ import annotations

import collections
import enum
import time
from collections.abc import Callable


class Part(enum.StrEnum):
    """What time was spent on."""

    PRODUCTIVE = "productive steps"
    RECOMPUTED = "recomputed steps"  # steps done once more, and what was under way when devices were lost
    DETECTING = "detecting"  # from when a dead worker's end was seen, or it was last heard of, to the exception in the loop
    WAITING = "waiting for slices"
    RESTORING = "restoring"
    COMPILING = "compiling"  # the first time as well
    CHECKPOINTS = "checkpoint stalls"  # the loop stands still for them; what is written beside it costs nothing
    OTHER = "other"  # starting up, evaluating


class Goodput:
    """A clock with laps: the time since the last lap goes to the part that is named at its end. So the parts add up to the whole."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds."""
        self._clock = clock
        self._last = clock()
        self.seconds = dict.fromkeys(Part, 0.0)
        self.interruptions = 0
        self.downtime = 0.0  # seconds from interruptions to the first step after each, without that step
        self._recovery: dict[Part, float] | None = None  # the seconds of the one that is not over

    @property
    def share(self) -> float:
        """Goodput: the share of the time until the last lap that went into steps that counted."""
        return self.seconds[Part.PRODUCTIVE] / max(sum(self.seconds.values()), 1e-9)

    def lap(self, part: Part, ago: float = 0.0) -> float:
        """The time since the last lap went into `part`, until so many seconds ago. Returns how much that was."""
        now = max(self._last, self._clock() - ago)
        seconds, self._last = now - self._last, now
        self.seconds[part] += seconds
        if self._recovery is not None:
            self._recovery[part] += seconds
        return seconds

    def interrupt(self, seen: float | None, caught: float) -> None:
        """The loop was interrupted, and is called again now.

        seen: so many seconds ago a loss of devices was seen; None: it is for more slices. caught: so many seconds ago the loop ended.
        """
        self.lap(Part.RECOMPUTED, caught if seen is None else max(seen, caught))
        self.interruptions += seen is not None
        self._recovery = self._recovery or collections.defaultdict(float)
        self.lap(Part.DETECTING, caught)
        self.lap(Part.WAITING)

    def step(self, again: bool) -> tuple[float, dict[Part, float]]:
        """A step is done; again: one that was done before. Returns its seconds and, if it is the first after an interruption, the split."""
        recovery, self._recovery = self._recovery, None
        self.downtime += sum((recovery or {}).values())
        return self.lap(Part.RECOMPUTED if again else Part.PRODUCTIVE), dict(recovery or {})
