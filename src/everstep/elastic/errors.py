"""What can go wrong.

ElasticError
├── SliceLostError     devices were lost
├── SlicesChanged      more slices are up than the loop uses: it is to be called again with them
├── SnapshotLostError  no snapshot survives: the checkpoint is needed
└── GaveUpError        the policy does not allow another attempt
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import jax

if TYPE_CHECKING:
    from everstep.elastic.running import Event

# As the head words it (head/members.py). Other servers of the protocol word it otherwise, but begin with the code too.
_LOST = re.compile(
    r"DATA_LOSS: worker (?P<worker>\S+) \(slice (?P<slice>\d+), incarnation (?P<incarnation>\d+), pid \d+\) is lost: (?P<cause>.*)"
)


class ElasticError(Exception):
    """All errors of this package."""


class SliceLostError(ElasticError):
    """Devices were lost.

    slice, worker, incarnation: whose; None where the backend does not say. cause: what was seen. `__cause__`: JAX's own error.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _LOST.search(message)
        self.slice = int(found["slice"]) if found else None
        self.worker = found["worker"] if found else None
        self.incarnation = int(found["incarnation"]) if found else None
        self.cause = found["cause"] if found else message

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
