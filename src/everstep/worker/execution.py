"""What runs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from everstep.wire.errors import Failure

if TYPE_CHECKING:
    from everstep.worker.world import World


_numbers = itertools.count(1)


class Execution:
    """A program that has been started. It ends once: when XLA says so, or when its world is given up. No two have the same number."""

    def __init__(self, world: World, devices: tuple[int, ...], token: Any) -> None:
        """devices: those of this worker. token: what XLA tells its end by."""
        self.number = next(_numbers)
        self.world = world
        self.devices = devices
        self.token = token
        self.ended = threading.Event()
        self._failure: Failure | None = None
        self._report: Callable[[Failure | None], None] | None = None
        self._lock = threading.Lock()

    def on_end(self, report: Callable[[Failure | None], None]) -> None:
        """Call this with the failure, or None, when it ends; at once if it has."""
        with self._lock:
            self._report = report
            ended = self.ended.is_set()
        if ended:
            report(self._failure)

    def end(self, failure: Failure | None) -> None:
        """It has ended. Only the first to say so is heard."""
        with self._lock:
            if self.ended.is_set():
                return
            self._failure = failure
            self.ended.set()
            report = self._report
        self.world.executions.discard(self)
        if report is not None:
            report(failure)
