"""When programs have ended."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from everstep.wire.errors import Failure
from everstep.worker import xla
from everstep.worker.execution import Execution
from everstep.worker.world import World

_Queue = queue.SimpleQueue[Execution | None]


class Completions:
    """Waits for programs and reports them: a thread for each set of devices in each world, so that none waits for another's."""

    def __init__(self, report: Callable[[int, Failure | None], None]) -> None:
        self._report = report
        self._queues: dict[tuple[World, tuple[int, ...]], _Queue] = {}
        self._lock = threading.Lock()

    def wait(self, op: int, execution: Execution) -> None:
        """Report `op` when it has ended."""
        execution.on_end(lambda failure: self._report(op, failure))
        key = execution.world, execution.devices
        waiting = self._queues.get(key)
        if waiting is None:
            with self._lock:
                waiting = self._queues.get(key)
                if waiting is None:
                    waiting = self._queues[key] = queue.SimpleQueue()
                    threading.Thread(target=_run, args=(waiting,), name=f"completions {key[1]}", daemon=True).start()
        waiting.put(execution)

    def forget(self, world: World) -> None:
        """Nothing is started in this world any more."""
        with self._lock:
            for key in [key for key in self._queues if key[0] is world]:
                self._queues.pop(key).put(None)


def _run(waiting: _Queue) -> None:
    while (execution := waiting.get()) is not None:
        failure = None
        try:
            execution.token.block_until_ready()
        except Exception as error:
            failure = xla.failure(error)
            broken = execution.world.broken
            if broken is not None:
                failure = Failure(broken.code, f"{broken.message}: {failure}")
        execution.end(failure)
        del execution  # not held until the next comes
