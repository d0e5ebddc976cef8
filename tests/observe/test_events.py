"""Events in order, and the timeline of a recovery."""

from __future__ import annotations

import asyncio
import json

from everstep.observe import events as module
from everstep.observe.events import Event, Events, Kind
from everstep.observe.timeline import FIRST, FIRST_FULL, FREE, REPLACED, ElasticEvent, Timeline


def test_events_can_be_written_as_json() -> None:
    events = Events(lambda: 1.5)
    event = events.add(Kind.SLICE_DOWN, "slice 1 is down", slice=1, note="x")
    assert Event.of(json.loads(json.dumps(event.as_dict()))) == event
    assert event.as_dict()["kind"] == "slice down"
    assert str(event) == "00:00:01.500  slice down  slice 1 is down"


def test_old_ones_are_forgotten_and_numbers_go_on(monkeypatch: object) -> None:
    events = Events()
    for index in range(module.KEPT + 5):
        events.add(Kind.HEARD, str(index))
    kept = events.after(0)
    assert (kept[0].number, kept[-1].number, len(kept)) == (6, module.KEPT + 5, module.KEPT)


def test_follow() -> None:
    async def main() -> list[str]:
        events = Events()
        events.add(Kind.HEARD, "one")
        events.add(Kind.HEARD, "two")
        seen = []
        async for event in events.follow(1):
            seen.append(event.message)
            if len(seen) == 3:
                break
            asyncio.get_running_loop().call_soon(events.add, Kind.HEARD, f"later {len(seen)}")
        return seen

    assert asyncio.run(main()) == ["two", "later 1", "later 2"]


class Scene:
    def __init__(self) -> None:
        self.now = 100.0
        self.over: list[ElasticEvent] = []
        self.timeline = Timeline(lambda: self.now, lambda: self.now + 1000, self.over.append)

    def stages(self) -> dict[str, float]:
        (event,) = self.over
        return {stage.name: round(stage.seconds, 3) for stage in event.stages.values()}


def test_the_stages_of_a_recovery() -> None:
    scene = Scene()
    scene.timeline.lost("s1w0", "worker s1w0 is lost: signal 9 (SIGKILL)")
    scene.now += 0.05
    scene.timeline.world(2, {"s0w0": 1})
    scene.now += 0.1
    scene.timeline.ended("jit_old", ["s0w0"], seconds=1.0)  # it was sent before
    scene.timeline.ended("jit_step", ["s0w0"], seconds=0.05)
    scene.now += 1
    scene.timeline.world(3, {"s0w0": 1, "s1w0": 2})
    scene.timeline.ended("jit_step", ["s0w0"], seconds=0.05)
    scene.now += 0.2
    assert not scene.over
    scene.timeline.ended("jit_step", ["s0w0", "s1w0"], seconds=0.2)
    assert scene.stages() == {FREE: 0.05, FIRST: 0.15, REPLACED: 1.15, FIRST_FULL: 1.35}
    assert scene.timeline.is_quiet
    assert str(scene.over[0]).splitlines() == [
        "elastic event 1: worker s1w0 is lost: signal 9 (SIGKILL)",
        "  detected                               00:18:20.000",
        "  survivors free                               +50 ms  world 2 of s0w0",
        "  first operation done                        +150 ms  jit_step",
        "  replaced                                  +1,150 ms  incarnation 2, world 3 of s0w0, s1w0",
        "  first operation on the successor done     +1,350 ms  jit_step",
    ]


def test_without_a_successor_it_is_over_with_the_first_program() -> None:
    scene = Scene()
    scene.timeline.lost("s1w0", "it is lost")
    scene.timeline.given_up("s1w0")
    scene.timeline.world(2, {"s0w0": 1})
    scene.timeline.ended("jit_step", ["s0w0"], seconds=0.0)
    assert set(scene.stages()) == {FREE, FIRST}


def test_a_second_loss_of_the_same_worker_ends_the_first_event() -> None:
    scene = Scene()
    scene.timeline.lost("s1w0", "it is lost")
    scene.timeline.lost("s1w0", "it is lost again")
    assert [event.cause for event in scene.over] == ["it is lost"]
    assert not scene.timeline.is_quiet


def test_what_is_open_is_told_in_the_end() -> None:
    scene = Scene()
    scene.timeline.lost("s0w0", "it is lost")
    scene.timeline.world(0, {})
    scene.timeline.close()
    assert set(scene.stages()) == {FREE}
    assert "nobody is left" in str(scene.over[0])
