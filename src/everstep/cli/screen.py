"""What people should know of, on standard error."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import threading

_MOST = 1000  # messages that wait to be written
_CLOSE_SECONDS = 1.0


class Screen(logging.Handler):
    """Writes from a thread of its own: a terminal that is held (Ctrl-S), or a pipe that nobody reads, must not hold up the head."""

    def __init__(self, descriptor: int) -> None:
        """descriptor: of an open file, which is the caller's."""
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("everstep: %(message)s"))
        self._descriptor = descriptor
        self._waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._left_out = 0
        self._thread = threading.Thread(target=self._write, name="screen", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        if self._waiting.qsize() >= _MOST:
            self._left_out += 1
            return
        if self._left_out:
            self._waiting.put(f"everstep: {self._left_out} messages are left out here; the log of the head has them")
            self._left_out = 0
        self._waiting.put(self.format(record))

    def close(self) -> None:
        """Write what waits, unless that takes long. Called when the process ends."""
        self._waiting.put(None)
        self._thread.join(_CLOSE_SECONDS)
        super().close()

    def _write(self) -> None:
        while (text := self._waiting.get()) is not None:
            data = f"{text}\n".encode(errors="replace")
            with contextlib.suppress(OSError):  # nobody is there any more
                while data:
                    data = data[os.write(self._descriptor, data) :]
