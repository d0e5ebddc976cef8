"""Waiting for effects: for those of all programs, not of the last one on each device.

JAX keeps the token of the last program on each device, and in each thread of its own: devices run one after the other, so the others have
ended when that has, and a program runs in the thread that calls it. On Everstep one whose callback takes long is overtaken by the next, and
threads end before what they have called.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

from jax._src import dispatch

_RuntimeTokens: Any = dispatch.RuntimeTokenSet

NEEDS = ("set_output_runtime_token", "block_until_ready")  # of JAX's class


class Unfinished:
    """Tokens of programs with effects that may still run. A thread takes out those that have ended."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Any, set[Any]] | threading.Event] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, token: Any, siblings: set[Any]) -> None:
        """It is in `siblings`, too, as long as it may run."""
        siblings.add(token)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="everstep-effects", daemon=True)
                self._thread.start()
        self._queue.put((token, siblings))

    def wait(self) -> None:
        """Until all have ended that were added before."""
        if self._thread is not None:
            passed = threading.Event()
            self._queue.put(passed)
            passed.wait()

    def _run(self) -> None:
        while True:
            entry = self._queue.get()
            if isinstance(entry, threading.Event):
                entry.set()
            else:
                token, siblings = entry
                _end(token)
                siblings.discard(token)
                del token, siblings
            del entry


def _end(token: Any) -> None:
    """Wait until it has ended. Errors are told by the last program's, as JAX has it."""
    with contextlib.suppress(Exception):
        token.block_until_ready()


unfinished = Unfinished()


def install(is_ours: Callable[[Any], bool]) -> None:
    """is_ours: tells clients of the proxy backend from others."""
    set_token, block = (getattr(_RuntimeTokens, name) for name in NEEDS)
    if hasattr(block, "_everstep"):
        return
    threads = threading.local()

    def set_output_runtime_token(self: Any, device: Any, token: Any) -> None:
        if is_ours(device.client):
            if not hasattr(threads, "tokens"):
                threads.tokens = set()
            unfinished.add(token, threads.tokens)
        set_token(self, device, token)

    def block_until_ready(self: Any) -> None:
        for token in list(getattr(threads, "tokens", ())):
            _end(token)
        block(self)

    block_until_ready._everstep = True  # type: ignore[attr-defined]
    for name, function in zip(NEEDS, (set_output_runtime_token, block_until_ready), strict=True):
        setattr(_RuntimeTokens, name, function)
