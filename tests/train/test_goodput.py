"""Where time goes, by a clock that the test sets."""

from __future__ import annotations

import io
import json
import pathlib
import time

import pytest

from everstep.elastic import Event, SliceLostError, SlicesChanged
from everstep.train.goodput import Goodput, Part
from everstep.train.metrics import Metrics


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_every_second_goes_to_one_part() -> None:
    clock = Clock()
    goodput = Goodput(clock)

    def spend(seconds: float, part: Part | bool) -> None:
        clock.now += seconds
        _ = goodput.step(part) if isinstance(part, bool) else goodput.lap(part)

    spend(1, Part.OTHER)
    spend(20, Part.COMPILING)
    spend(5, False)
    spend(2, Part.CHECKPOINTS)
    spend(5, False)
    clock.now += 4  # in a step for 0.5 s; the loss is seen 3.5 s ago, and raised 3 s ago
    goodput.interrupt(3.5, 3.0)
    spend(6, Part.COMPILING)
    spend(1, Part.RESTORING)
    clock.now += 2
    seconds, recovery = goodput.step(True)
    assert (seconds, recovery) == (2, {Part.DETECTING: 0.5, Part.WAITING: 3, Part.COMPILING: 6, Part.RESTORING: 1})
    spend(5, False)
    assert goodput.seconds == {
        Part.PRODUCTIVE: 15,
        Part.RECOMPUTED: 2.5,
        Part.DETECTING: 0.5,
        Part.WAITING: 3,
        Part.RESTORING: 1,
        Part.COMPILING: 26,
        Part.CHECKPOINTS: 2,
        Part.OTHER: 1,
    }
    assert sum(goodput.seconds.values()) == clock.now - 100
    assert goodput.share == pytest.approx(15 / 51)
    assert (goodput.interruptions, goodput.downtime) == (1, 10.5)


def test_another_loss_before_it_goes_on_belongs_to_the_same_downtime() -> None:
    clock = Clock()
    goodput = Goodput(clock)
    clock.now += 10
    goodput.interrupt(2.0, 1.0)
    clock.now += 5
    goodput.interrupt(4.0, 3.0)
    clock.now += 1
    _, recovery = goodput.step(False)
    assert recovery == {Part.DETECTING: 2, Part.WAITING: 4, Part.RECOMPUTED: 1}
    assert (goodput.interruptions, goodput.downtime, goodput.seconds[Part.PRODUCTIVE]) == (2, 7, 1)


def test_times_that_make_no_sense_do_not_count_twice() -> None:
    """Another host's clock may be ahead, or behind."""
    clock = Clock()
    goodput = Goodput(clock)
    clock.now += 10
    goodput.interrupt(50.0, 1.0)
    goodput.interrupt(-3.0, 0.0)
    assert goodput.seconds[Part.DETECTING] == 9
    assert sum(goodput.seconds.values()) == 10


def test_what_is_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 2, "loss": 1.0}\n{"step": 3, "lo')  # of a process that was killed
    screen = io.StringIO()
    lost = SliceLostError("worker s1w0 (slice 1, incarnation 1, pid 7) is lost: signal 9 (SIGKILL), at 12:00:00.000 UTC")
    with Metrics(tmp_path, 5, 1, 10, screen) as metrics:
        (tmp_path / "metrics.jsonl").write_text("")
        metrics.step(2, 2.5, 3, 3)
        metrics.step(3, 2.0, 3, 3)
        metrics.again(Event(time.time(), lost, (0, 1, 2), 3))
        metrics.step(4, 1.5, 3, 3, restored=True)
        metrics.step(4, 1.5, 2, 3)
        metrics.again(Event(time.time(), SlicesChanged("slices 0, 1, 2 are up"), (0, 2), 3))
        metrics.step(5, 1.0, 3, 3)
        metrics.summary()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [(line["step"], "redone" in line) for line in lines if "loss" in line] == [
        (2, True),
        (3, False),
        (4, False),
        (4, True),
        (5, False),
    ]
    assert [(line["lost"], line["worker"]) for line in lines if "lost" in line] == [(1, "s1w0")]
    assert sum("recovery" in line for line in lines) == 2
    assert (lines[-1]["losses"], lines[-1]["steps_lost"], lines[-1]["steps"]) == (1, 1, 5)
    assert set(lines[-1]["seconds_by_part"]) == set(Part)
    assert "1 losses of devices survived, 1 steps lost" in screen.getvalue()
