"""What a run tells: a line on the console, metrics.jsonl, and TensorBoard's files."""

from __future__ import annotations

import contextlib
import json
import pathlib
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

from everstep import elastic
from everstep.train.goodput import Goodput, Part

_BAR = 20  # characters


class Metrics:
    """Writes down each step. A step that is done once more, after a loss of devices or a restart, is written once more, with `redone`."""

    def __init__(self, directory: pathlib.Path, steps: int, every: int, tokens: int, screen: TextIO = sys.stdout) -> None:
        """steps: of the whole run. every: so many steps a line on the screen. tokens: in a step."""
        from tensorboardX import SummaryWriter

        self.goodput = Goodput()
        self._steps = steps
        self._every = every
        self._tokens = tokens
        self._screen = screen
        path = directory / "metrics.jsonl"
        self.reached = _last_step(path)  # steps that have been written
        self._redone = 0  # after losses
        self._file = path.open("a", buffering=1)
        self._board = SummaryWriter(str(directory / "tensorboard"), flush_secs=10)

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()
        self._board.close()

    def again(self, event: elastic.Event) -> None:
        """The loop is called again, because of this."""
        now, error = time.time(), event.error
        if isinstance(error, elastic.SliceLostError):
            since = event.time if error.since is None else error.since
            self.goodput.interrupt(now - since, now - event.time)
            self.note(f"{type(error).__name__}: {error}", lost=error.slice, worker=error.worker, since=round(since, 3))
        else:
            self.goodput.interrupt(None, now - event.time)
            self.note(f"more slices: {error}")

    def step(self, number: int, loss: float, slices: int, of: int, restored: bool = False) -> None:
        """Step `number` (from 1) is done. restored: before devices were lost, and that is only known now."""
        again = number <= self.reached
        seconds, recovery = (0.0, {}) if restored else self.goodput.step(again)
        self.reached = max(self.reached, number)
        self._redone += again and self.goodput.interruptions > 0
        self._write({"step": number, "loss": loss, "seconds": round(seconds, 6), "slices": slices, **({"redone": True} if again else {})})
        if recovery:
            total = sum(recovery.values()) + seconds
            self.note(f"goes on {total:.2f} s later: {_split({**recovery, 'first step': seconds}, total)}", recovery=_rounded(recovery))
        rate = self._tokens / seconds if seconds else 0.0
        if not again:
            for name, value in (("loss", loss), ("tokens per second", rate), ("slices", slices), ("goodput", self.goodput.share)):
                self._board.add_scalar(name, value, number)
        if number % self._every == 0 or number == self._steps:
            done = _BAR * number // self._steps
            self._say(
                f"[{'#' * done}{'.' * (_BAR - done)}] {number}/{self._steps}  loss {loss:.4f}  {rate:,.0f} tokens/s  "
                f"slices {slices}/{of}  goodput {self.goodput.share:.0%}"
            )
            self._write_goodput(number)

    def evaluation(self, number: int, loss: float) -> None:
        """The loss on what is held out, after so many steps."""
        self._write({"step": number, "validation_loss": loss})
        self._board.add_scalar("validation loss", loss, number)
        self._say(f"step {number}: validation loss {loss:.4f}")

    def note(self, message: str, **details: Any) -> None:
        """Something else that happened."""
        self._write({"note": message, **details})
        self._say(message)

    def summary(self) -> None:
        """At the end: how often devices were lost and what it has cost, and where the time went."""
        goodput = self.goodput
        self._say(
            f"{goodput.interruptions} losses of devices survived, {self._redone} steps lost, {goodput.downtime:.1f} s of downtime, "
            f"goodput {goodput.share:.1%}"
        )
        self._say(f"{sum(goodput.seconds.values()):.1f} s: {_split(goodput.seconds, sum(goodput.seconds.values()))}")
        self._write_goodput(self.reached)

    def _write_goodput(self, number: int) -> None:
        goodput = self.goodput
        self._write(
            {
                "steps": number,
                "goodput": round(goodput.share, 4),
                "seconds_by_part": _rounded(goodput.seconds),
                "losses": goodput.interruptions,
                "steps_lost": self._redone,
                "downtime": round(goodput.downtime, 3),
            }
        )

    def _write(self, values: dict[str, Any]) -> None:
        self._file.write(json.dumps({"time": round(time.time(), 3), **values}) + "\n")

    def _say(self, line: str) -> None:
        print(line, file=self._screen, flush=True)


def _last_step(path: pathlib.Path) -> int:
    """The last step that an earlier process of this run has written; 0: there is none."""
    last = 0
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):  # the last one may be cut off
            values = json.loads(line)
            last = max(last, values["step"] if "loss" in values else 0)
    return last


def _rounded(seconds: Mapping[Part, float]) -> dict[str, float]:
    return {str(part): round(value, 4) for part, value in seconds.items()}


def _split(seconds: Mapping[Any, float], total: float) -> str:
    """What matters of it, the longest first."""
    told = sorted(((value, part) for part, value in seconds.items() if value >= max(0.0005, total / 1000)), reverse=True)
    return ", ".join(f"{part} {value:.2f} s" for value, part in told)
