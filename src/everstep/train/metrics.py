"""What a run tells: a line on the console, metrics.jsonl, and TensorBoard's files."""

from __future__ import annotations

import json
import pathlib
import sys
import time
from types import TracebackType
from typing import Any, TextIO

_BAR = 20  # characters


class Metrics:
    """Writes down each step. A step that is done once more after a loss of devices is written once more, with `redone`."""

    def __init__(self, directory: pathlib.Path, steps: int, every: int, tokens: int, screen: TextIO = sys.stdout) -> None:
        """steps: of the whole run. every: so many steps a line on the screen. tokens: in a step."""
        from tensorboardX import SummaryWriter

        self._steps = steps
        self._every = every
        self._tokens = tokens
        self._screen = screen
        self._file = (directory / "metrics.jsonl").open("a", buffering=1)
        self._board = SummaryWriter(str(directory / "tensorboard"), flush_secs=10)
        self._began = self._last = time.monotonic()
        self._useful = 0.0
        self._reached = 0  # steps that have been written

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
        self._board.close()

    @property
    def goodput(self) -> float:
        """The share of the time that went into steps that counted."""
        return self._useful / max(time.monotonic() - self._began, 1e-9)

    def resume(self, step: int) -> None:
        """Training goes on, or begins, after so many steps; what came before is not counted as time spent."""
        self._last = time.monotonic()
        self._reached = max(self._reached, step)

    def step(self, number: int, loss: float, slices: int, of: int) -> None:
        """Step `number` (from 1) is done."""
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        redone = number <= self._reached
        if not redone:
            self._useful += seconds
            self._reached = number
        rate = self._tokens / max(seconds, 1e-9)
        self._write({"step": number, "loss": loss, "seconds": round(seconds, 6), "slices": slices, **({"redone": True} if redone else {})})
        if not redone:
            for name, value in (("loss", loss), ("tokens per second", rate), ("slices", slices), ("goodput", self.goodput)):
                self._board.add_scalar(name, value, number)
        if number % self._every == 0 or number == self._steps:
            done = _BAR * number // self._steps
            self._say(
                f"[{'#' * done}{'.' * (_BAR - done)}] {number}/{self._steps}  loss {loss:.4f}  {rate:,.0f} tokens/s  "
                f"slices {slices}/{of}  goodput {self.goodput:.0%}"
            )

    def evaluation(self, number: int, loss: float) -> None:
        """The loss on what is held out, after so many steps."""
        self._write({"step": number, "validation_loss": loss})
        self._board.add_scalar("validation loss", loss, number)
        self._say(f"step {number}: validation loss {loss:.4f}")

    def note(self, message: str, **details: Any) -> None:
        """Something else that happened."""
        self._write({"note": message, **details})
        self._say(message)

    def _write(self, values: dict[str, Any]) -> None:
        self._file.write(json.dumps({"time": round(time.time(), 3), **values}) + "\n")

    def _say(self, line: str) -> None:
        print(line, file=self._screen, flush=True)
