"""When programs have ended."""

from __future__ import annotations

import queue
import threading
from typing import Any

from everstep.wire.errors import Failure
from everstep.worker import xla
from everstep.worker.programs import Program
from everstep.worker.reports import Reporter


class Completions:
    """Waits for programs and reports them: a thread for each set of devices, so that none waits for another's."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._queues: dict[tuple[int, ...], queue.SimpleQueue[tuple[int, Program, Any]]] = {}
        self._lock = threading.Lock()

    def wait(self, op: int, program: Program, token: Any) -> None:
        """Report `op` when the execution with this token has ended."""
        devices = program.placement.local.devices
        waiting = self._queues.get(devices)
        if waiting is None:
            with self._lock:
                waiting = self._queues.get(devices)
                if waiting is None:
                    waiting = self._queues[devices] = queue.SimpleQueue()
                    threading.Thread(target=self._run, args=(waiting,), name=f"completions {devices}", daemon=True).start()
        waiting.put((op, program, token))

    def _run(self, waiting: queue.SimpleQueue[tuple[int, Program, Any]]) -> None:
        while True:
            op, program, token = waiting.get()
            failure = None
            try:
                token.block_until_ready()
            except Exception as error:
                failure = xla.failure(error)
                broken = program.placement.world.broken
                if broken is not None:
                    failure = Failure(broken.code, f"{broken.message}: {failure}")
            self._reporter.done(op, failure)
            del program, token  # not held until the next comes
