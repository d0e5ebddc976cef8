"""When a loop is called again, and with which slices."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """When a loop is called again after a loss of devices.

    at_least: with so many slices; None: with all. grow: at a boundary, call it again when more slices are up than it uses.
    max_events, window: at most so many losses within so many seconds.
    max_without_progress: at most so many losses in a row between which no boundary was reached.
    wait_timeout: seconds to wait for slices; None: for ever.
    """

    name: str
    at_least: int | None = None
    grow: bool = True
    max_events: int = 100
    window: float = 3600.0
    max_without_progress: int = 5
    wait_timeout: float | None = None

    def __post_init__(self) -> None:
        for field in ("max_events", "max_without_progress"):
            if getattr(self, field) < 0:
                raise ValueError(f"{field} is {getattr(self, field)}: it can't be negative")
        if self.at_least is not None and self.at_least < 1:
            raise ValueError(f"at_least is {self.at_least}: a loop needs a slice")


def pause_and_resume(
    *, max_events: int = 100, window: float = 3600.0, max_without_progress: int = 5, wait_timeout: float | None = None
) -> Policy:
    """Wait until all slices are back, then go on at full size. See Policy for the limits."""
    return Policy("pause and resume", None, False, max_events, window, max_without_progress, wait_timeout)


def replica_resize(
    at_least: int = 1,
    *,
    grow: bool = True,
    max_events: int = 100,
    window: float = 3600.0,
    max_without_progress: int = 5,
    wait_timeout: float | None = None,
) -> Policy:
    """Go on at once with the slices that are left, if they are `at_least` so many; grow back at a boundary. See Policy for the limits."""
    return Policy("replica resize", at_least, grow, max_events, window, max_without_progress, wait_timeout)
