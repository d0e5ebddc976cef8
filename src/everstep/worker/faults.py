"""Scripted faults, so that tests can let a worker die at an exact point: in its third program, in a transfer, while a world is formed.

EVERSTEP_FAULTS in the environment holds a JSON list of objects with the fields of `Fault`; it costs nothing when it is not set.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import signal
import threading

VARIABLE = "EVERSTEP_FAULTS"


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """What happens to a worker the `nth` time that it comes to a point.

    at: the name of a command as in ToWorker ("execute", "put", "compile", "build_world"...), "callback" (a program calls the program's
    process), "serve" (another worker reads a shard), "write" and "read" (part of an array to storage, from there), "start" (it is about
    to join) or "welcome" (it has joined).
    after: when that has been done, not before: a program that was started runs by then.
    how: a signal's name ("KILL", "STOP", "TERM"...), or "HANG": the thread that comes there stays there.
    """

    worker: str
    at: str
    nth: int = 1
    after: bool = False
    how: str = "KILL"
    incarnation: int = 1


class Faults:
    """Those of one process."""

    def __init__(self, faults: list[Fault]) -> None:
        self._script = faults
        self._faults: list[Fault] = []
        self._visits: collections.Counter[tuple[str, bool]] = collections.Counter()
        self._lock = threading.Lock()

    @staticmethod
    def of_environment() -> Faults:
        """Raises ValueError, TypeError for a script that makes no sense."""
        return Faults([Fault(**each) for each in json.loads(os.environ.get(VARIABLE, "[]"))])

    def begin(self, worker: str, incarnation: int) -> None:
        """This is which worker this process is; a spare is told it later."""
        self._faults = [fault for fault in self._script if (fault.worker, fault.incarnation) == (worker, incarnation)]

    def reach(self, point: str, *, after: bool = False) -> None:
        """This thread has come to a point."""
        if not self._faults:
            return
        with self._lock:
            self._visits[point, after] += 1
            visit = self._visits[point, after]
        for fault in self._faults:
            if (fault.at, fault.after, fault.nth) == (point, after, visit):
                _happen(fault.how)


def _happen(how: str) -> None:
    if how == "HANG":
        threading.Event().wait()
    os.kill(os.getpid(), signal.Signals[f"SIG{how}"])


FAULTS = Faults.of_environment()
