"""Whose turn it is on the lane of programs with host callbacks."""

from __future__ import annotations

import math
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

from everstep.worker import launches
from everstep.worker.launches import Lane

SECONDS = 30.0


class Run:
    """A run of a program that lasts until it is let go; as its own callback, it counts how often it is looked at."""

    def __init__(self, *, spans_workers: bool = False) -> None:
        self.ready, self.began, self.let_go = threading.Event(), threading.Event(), threading.Event()
        self.called = math.inf  # when its callback was; infinity: it is in none
        self.looks = 0
        self.looked = threading.Condition()
        self.program: Any = types.SimpleNamespace(callbacks=[self], placement=types.SimpleNamespace(spans_workers=spans_workers))

    def prepare(self) -> None:
        assert self.ready.wait(SECONDS)

    def work(self) -> None:
        self.began.set()
        assert self.let_go.wait(SECONDS)

    def oldest_call(self, after: float) -> float:
        with self.looked:
            self.looks += 1
            self.looked.notify_all()
        return self.called if self.called >= after else math.inf

    def is_looked_at(self) -> None:
        """Often, from now on: whoever waits for it has had occasion to go on."""
        with self.looked:
            enough = self.looks + 10
            assert self.looked.wait_for(lambda: self.looks >= enough, SECONDS)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "_PATIENCE", 0.01)


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    made: list[Run] = []
    yield made
    for run in made:
        run.ready.set()
        run.let_go.set()


def start(lane: Lane, runs: list[Run], run: Run, program: Any = None, *, ready: bool = True) -> Run:
    runs.append(run)
    if ready:
        run.ready.set()
    lane.run(run.prepare, run.work, program or run.program)
    return run


def test_a_program_that_takes_long_is_waited_for(runs: list[Run]) -> None:
    lane = Lane()
    first, second = start(lane, runs, Run()), start(lane, runs, Run())
    assert first.began.wait(SECONDS)
    first.is_looked_at()
    assert not second.began.is_set()
    first.let_go.set()
    assert second.began.wait(SECONDS)


def test_one_that_is_long_in_a_callback_is_overtaken(runs: list[Run]) -> None:
    lane = Lane()
    first, second = start(lane, runs, Run()), start(lane, runs, Run())
    assert first.began.wait(SECONDS)
    assert not second.began.is_set()
    first.called = time.monotonic()
    assert second.began.wait(SECONDS)
    third = start(lane, runs, Run())
    second.is_looked_at()
    assert not third.began.is_set(), "the second is in no callback, and waited for"


def test_one_that_spans_workers_is_overtaken(runs: list[Run]) -> None:
    """What it waits for may be in a callback on another worker."""
    lane = Lane()
    start(lane, runs, Run(spans_workers=True))
    assert start(lane, runs, Run()).began.wait(SECONDS)


def test_a_callback_of_an_earlier_run_of_the_same_program_does_not_count(runs: list[Run]) -> None:
    lane = Lane()
    first = start(lane, runs, Run())
    assert first.began.wait(SECONDS)
    first.called = time.monotonic()
    second = start(lane, runs, Run(), first.program)
    assert second.began.wait(SECONDS)
    third = start(lane, runs, Run())
    first.is_looked_at()
    assert not third.began.is_set()


def test_programs_run_in_their_order_and_not_in_that_of_their_arguments(monkeypatch: pytest.MonkeyPatch, runs: list[Run]) -> None:
    monkeypatch.setattr(launches, "_PATIENCE", SECONDS)
    lane = Lane()
    first, second = start(lane, runs, Run(), ready=False), start(lane, runs, Run())
    first.ready.set()
    assert first.began.wait(SECONDS)
    assert not second.began.is_set()
    first.let_go.set()
    assert second.began.wait(SECONDS)


def test_one_whose_arguments_are_long_in_coming_is_overtaken(runs: list[Run]) -> None:
    """They may come from a callback that waits for the last."""
    lane = Lane()
    first = start(lane, runs, Run())
    assert first.began.wait(SECONDS)
    first.called = time.monotonic()
    second, third = start(lane, runs, Run(), ready=False), start(lane, runs, Run())
    assert third.began.wait(SECONDS)
    assert not second.began.is_set()
