"""What can go wrong.

ElasticError
├── SliceLostError     devices were lost
├── SlicesChanged      more slices are up than the loop uses: it is to be called again with them
├── SnapshotLostError  no snapshot survives: the checkpoint is needed
└── GaveUpError        the policy does not allow another attempt
"""

from __future__ import annotations

import calendar
import re
import time
from typing import TYPE_CHECKING

import jax

if TYPE_CHECKING:
    from everstep.elastic.running import Event

# As the head words it (head/members.py, head/watch.py). Other servers of the protocol word it otherwise.
_LOST = re.compile(r"worker (?P<worker>\S+) \(slice (?P<slice>\d+), incarnation (?P<incarnation>\d+), pid \d+\) is lost: (?P<cause>.*)")
_SEEN = re.compile(r"at (?P<hours>\d\d):(?P<minutes>\d\d):(?P<seconds>\d\d\.\d+) UTC")
_SILENT = re.compile(r"no (heartbeat|progress) for (?P<seconds>[\d.]+) s")

_DAY = 86_400.0


class ElasticError(Exception):
    """All errors of this package."""


class SliceLostError(ElasticError):
    """Devices were lost.

    slice, worker, incarnation: whose; None where the backend does not say. cause: what was seen. since: seconds since 1970, when the head
    saw its end or, if it is one that only fell silent, last heard of it; None where the backend does not say. `__cause__`: JAX's own error.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _LOST.search(message)
        self.slice = int(found["slice"]) if found else None
        self.worker = found["worker"] if found else None
        self.incarnation = int(found["incarnation"]) if found else None
        self.cause = found["cause"] if found else message
        self.since = _since(self.cause)

    @staticmethod
    def of(error: BaseException) -> SliceLostError | None:
        """For an error that tells of a loss of devices, itself or as what it was raised from; None for any other."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, SliceLostError):
                return cause
            if isinstance(cause, jax.errors.JaxRuntimeError) and "DATA_LOSS" in str(cause):
                lost = SliceLostError(str(cause))
                lost.__cause__ = cause
                return lost
            cause = cause.__cause__
        return None


class SlicesChanged(ElasticError):
    """More slices are up than the loop uses. Raised by Attempt.boundary; let it pass."""


class SnapshotLostError(ElasticError):
    """No snapshot survives as a whole."""


class GaveUpError(ElasticError):
    """The policy does not allow another attempt. history: what has happened, oldest first."""

    def __init__(self, why: str, history: list[Event]) -> None:
        super().__init__("\n".join([why, *(f"  {event}" for event in history)]))
        self.history = history


def _since(cause: str) -> float | None:
    """The time of day in a cause, on the day in UTC that is nearest, less what the worker had been silent for by then."""
    seen = _SEEN.search(cause)
    if seen is None:
        return None
    now = time.time()
    midnight = calendar.timegm((*time.gmtime(now)[:3], 0, 0, 0))
    at = midnight + 3600 * int(seen["hours"]) + 60 * int(seen["minutes"]) + float(seen["seconds"])
    silent = _SILENT.search(cause)
    return at + _DAY * round((now - at) / _DAY) - (float(silent["seconds"]) if silent else 0.0)
