"""Threads for callbacks."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any


class Threads:
    """As many threads as there is work at once, since work may wait for other work: callbacks run programs that call back.

    Not a ThreadPoolExecutor: Python stops that before JAX's exit handler waits for the last effects, whose callbacks still need threads.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._start()  # when Python exits no thread can be started any more, so there must be one

    def submit(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call it soon in a thread that has nothing else to do. It must not raise."""
        self._work.put((function, arguments))
        if not self._idle.acquire(blocking=False):
            with contextlib.suppress(RuntimeError):  # Python exits: one of the threads there are will come to it
                self._start()

    def _start(self) -> None:
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            function, arguments = self._work.get()
            function(*arguments)
            self._idle.release()
            del function, arguments  # let go of operands while waiting
