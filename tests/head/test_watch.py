"""Silence and standstill, on a clock of the test's own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from head.test_dispatch import Scene

from everstep.head.watch import Watch
from everstep.wire import channel_pb2 as wire


class Watched(Scene):
    """Two workers and a watch over them with timeouts of 10 and 60 seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.dispatcher.open()
        self.told: list[tuple[object, ...]] = []
        self.now = asyncio.get_running_loop().time()
        self.watch = Watch(
            self.members,
            self.dispatcher,
            heartbeat_timeout=10.0,
            progress_timeout=60.0,
            suspect=lambda member, silent: self.told.append(("suspected", member.slot.name, round(silent))),
            clear=lambda member: self.told.append(("heard", member.slot.name)),
            condemn=self._condemn,
        )

    def _condemn(self, member: Any, why: str) -> None:
        member.verdict = why
        self.told.append(("condemned", member.slot.name, why))

    def pass_(self, seconds: float, *heard: str, started: int = 0, alive: tuple[str, ...] = ()) -> None:
        """Time passes, in the end these workers are heard of (`alive`: with nothing new), and the watch looks."""
        self.now += seconds
        for name in alive:
            self.member(name).last_seen = self.now
        for name in heard:
            self.member(name).last_seen = self.now
            self.member(name).started = started
        self.watch.look(self.now)


def run(scenario: Any) -> None:
    asyncio.run(scenario())


def test_silence_is_suspected_and_then_taken_for_death() -> None:
    async def scenario() -> None:
        scene = Watched()
        scene.pass_(2.9, "s0w0")
        assert scene.told == []
        for _ in range(7):
            scene.pass_(1, "s0w0")
        assert scene.told == [("suspected", "s1w0", 4)]
        scene.pass_(0.2, "s0w0")
        assert scene.told[1:] == [("condemned", "s1w0", "no heartbeat for 10.1 s")]
        scene.pass_(5, "s0w0")
        assert len(scene.told) == 2  # once

    run(scenario)


def test_a_suspect_may_be_heard_of_again() -> None:
    async def scenario() -> None:
        scene = Watched()
        scene.pass_(5, "s0w0")
        scene.pass_(1, "s0w0", "s1w0")
        scene.pass_(1, "s0w0", "s1w0")
        assert scene.told == [("suspected", "s1w0", 5), ("heard", "s1w0")]

    run(scenario)


def test_the_one_that_has_not_started_what_the_other_waits_in() -> None:
    async def scenario() -> None:
        scene = Watched()
        step = scene.execute()
        scene.member("s1w0").started = step.number - 1
        scene.pass_(59, "s0w0", started=step.number, alive=("s1w0",))
        assert scene.told == []
        scene.pass_(2, "s0w0", started=step.number, alive=("s1w0",))
        assert scene.told == [("condemned", "s1w0", "no progress for 61.0 s: it has not started step")]

    run(scenario)


def test_all_that_run_what_does_not_end() -> None:
    async def scenario() -> None:
        scene = Watched()
        step = scene.execute()
        scene.pass_(61, "s0w0", "s1w0", started=step.number)
        assert sorted(scene.told) == [("condemned", name, "no progress for 61.0 s: it has been running step") for name in ("s0w0", "s1w0")]

    run(scenario)


def test_slow_is_not_stuck() -> None:
    """Many programs in flight, each of which ends in time."""

    async def scenario() -> None:
        scene = Watched()
        steps = [scene.execute() for _ in range(5)]
        for step in steps:
            scene.pass_(50, "s0w0", "s1w0", started=step.number)
            for name in scene.links:
                scene.done(name, step)
                scene.member(name).progressed_at = scene.now
        assert scene.told == []

    run(scenario)


def test_no_program_no_progress_to_be_made() -> None:
    async def scenario() -> None:
        scene = Watched()
        scene.dispatcher.dispatch(scene.dispatcher.operation("put", ["s0w0"]), ["s0w0"], wire.ToWorker(put=wire.Put()))
        scene.pass_(1000, "s0w0", "s1w0")
        assert scene.told == []

    run(scenario)


def test_off() -> None:
    async def scenario() -> None:
        scene = Watched()
        scene.watch._progress_timeout = None
        scene.execute()
        scene.pass_(1000, "s0w0", "s1w0")
        assert scene.told == []

    run(scenario)


@pytest.mark.parametrize("held_up", [False, True])
def test_when_the_head_itself_was_held_up_nobody_is_suspected(held_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        scene = Watched()
        looks: list[float] = []
        monkeypatch.setattr(scene.watch, "look", looks.append)
        times = iter([0.0, 30.0 if held_up else 1.0] * 3)
        loop = asyncio.get_running_loop()
        rounds = iter(range(2))

        async def sleep(seconds: float) -> None:
            if next(rounds, None) is None:
                raise asyncio.CancelledError

        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "sleep", sleep)
            patch.setattr(loop, "time", lambda: next(times, 99.0), raising=False)
            with pytest.raises(asyncio.CancelledError):
                await scene.watch.run(1.0)
        assert bool(looks) is not held_up

    run(scenario)
