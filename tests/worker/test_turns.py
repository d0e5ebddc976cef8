"""What is started behind a program that has not ended, and what waits for its end."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness import Head, Peer

from everstep.wire import channel_pb2 as wire
from everstep.worker.programs import Program
from everstep.worker.turns import _AHEAD, Turns
from everstep.worker.xla import VERSION

ONES = np.ones((2, 2), np.float32)


# ---------------------------------------------------------------- the rule

_numbers = itertools.count(1)


class Ran:
    """An execution, as far as its turn is concerned."""

    def __init__(self, world: object, *devices: int) -> None:
        self.world, self.devices = world, devices
        self.number = next(_numbers)
        self.is_over = False
        self.ended = self

    def is_set(self) -> bool:
        return self.is_over


class Array:
    def __init__(self, world: object) -> None:
        self.world = world
        self.made_by = self.read_by = 0


class Scene:
    """Programs in one world, on the devices 0 and 1 unless it says otherwise."""

    def __init__(self) -> None:
        self.turns: Any = Turns()

    def array(self, world: object = None) -> Any:
        return Array(world or self)

    def run(self, *arguments: Any, devices: tuple[int, ...] = (0, 1)) -> tuple[Any, Any]:
        """The execution and its result."""
        execution, result = Ran(self, *devices), self.array()
        self.turns.started(execution, arguments, takes_turns=True)
        result.made_by = execution.number
        return execution, result

    def before(
        self, *arguments: Any, overwritten: tuple[int, ...] = (), devices: tuple[int, ...] = (0, 1), may_follow: bool = True
    ) -> list[Any]:
        return list(self.turns.before(devices, arguments, overwritten, may_follow=may_follow))


def test_another_waits_for_the_end() -> None:
    scene = Scene()
    assert scene.before(scene.array()) == []
    first, _ = scene.run()
    assert scene.before(scene.array()) == [first]
    first.is_over = True
    assert scene.before(scene.array()) == []


def test_what_reads_a_result_follows() -> None:
    scene = Scene()
    _, result = scene.run()
    assert scene.before(scene.array(), result) == []
    second, _ = scene.run(scene.array(), result)
    assert scene.before(result) == [second]  # the result of one further back says nothing of the last


def test_what_overwrites_an_argument_follows() -> None:
    scene = Scene()
    _, state = scene.run()
    copying, _ = scene.run(state)
    assert scene.before(state, overwritten=(0,)) == []
    assert scene.before(state) == [copying]  # it only reads it, too
    assert scene.before(scene.array(), state, overwritten=(0,)) == [copying]


def test_memory_of_others_is_not_overwritten() -> None:
    scene = Scene()
    put, adopted = scene.array(), scene.array(object())
    adopted.made_by = 1
    reading, _ = scene.run(put, adopted)
    assert scene.before(put, overwritten=(0,)) == scene.before(adopted, overwritten=(0,)) == [reading]


def test_each_device_counts() -> None:
    scene = Scene()
    one, made_by_one = scene.run(devices=(0,))
    two, made_by_two = scene.run(devices=(1,))
    assert scene.before(scene.array()) == [one, two]
    assert scene.before(made_by_one) == [two]
    assert scene.before(made_by_one, made_by_two) == []
    assert scene.before(made_by_two, devices=(1, 2)) == []


def test_not_too_many_are_ahead() -> None:
    scene = Scene()
    first, result = scene.run()
    for _ in range(_AHEAD - 1):
        assert scene.turns.too_many() == []
        _, result = scene.run(result)
    assert scene.turns.too_many() == [first]
    first.is_over = True
    assert scene.turns.too_many() == []


def test_some_may_not_follow() -> None:
    scene = Scene()
    first, result = scene.run()
    assert scene.before(result, may_follow=False) == [first]


# ---------------------------------------------------------------- real ones


class Hanging:
    """Two workers, of which the first hangs in a step on `state`, because the second is stopped."""

    def __init__(self, head: Head, devices: int) -> None:
        self.head = head
        head.workers(2, devices=devices)
        head.form()
        self.devices = [device for peer in head.peers for device in peer.devices]
        count = len(self.devices)
        self.programs = {name: head.spanning(f"{name}{count}", head.peers, self.devices) for name in ("step", "sum", "twice")}
        made = [head.put(dict.fromkeys(self.devices, number * ONES)) for number in (1, 3)]
        self.state, self.other = [head.execute(head.peers, self.programs["twice"], [array], 1)[0] for array in made]
        head.execute(head.peers, self.programs["sum"], [self.other], 2)  # the mesh of connections is there
        self.sent: list[tuple[Peer, int]] = []
        self.last = 0

    def start(self, name: str, array: int, results: int = 1, **more: Any) -> int:
        """Returns the id of the first result; `last` is that of the last."""
        sent, (result, *others) = self.head.start(self.head.peers, self.programs[name], [array], results, **more)
        self.sent += sent
        self.last = others[-1] if others else result
        return result

    def wake(self) -> None:
        """Let the second worker go on, and wait until all is done."""
        os.kill(self.head.peers[1].process.pid, signal.SIGCONT)
        sent, self.sent = self.sent, []
        self.head.reports(sent)

    def has_started(self) -> bool:
        """Whether the first worker has started the last program, now that it has come to it."""
        first, (_, op) = self.head.peers[0], self.sent[-2]
        self.head.ask([first], delete=wire.Delete())
        first.messages.clear()
        first.message("heartbeat")  # may have been made before
        return bool(first.message("heartbeat").started >= op)


@pytest.fixture
def hanging(head: Head, request: pytest.FixtureRequest) -> Iterator[Hanging]:
    made = Hanging(head, getattr(request, "param", 2))
    os.kill(head.peers[1].process.pid, signal.SIGSTOP)
    yield made
    made.wake()


follows = pytest.mark.skipif(VERSION < (0, 12), reason="one program after the other before jaxlib 0.12")


@follows
def test_a_step_is_started_behind_the_one_before(hanging: Hanging) -> None:
    state = hanging.start("step", hanging.state)
    for _ in range(3):
        state = hanging.start("step", state)
        assert hanging.has_started()
    hanging.start("sum", hanging.other, 2)  # nothing to do with it
    assert not hanging.has_started()
    state = hanging.start("step", state)  # whose turn comes after that
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(state, hanging.devices[0])[0, 0] == 2 * 17**5


@follows
def test_a_step_is_started_behind_what_reads_its_state(hanging: Hanging) -> None:
    read, total = hanging.start("sum", hanging.state, 2), hanging.last
    assert hanging.has_started()
    state = hanging.start("step", hanging.state)
    assert hanging.has_started()
    hanging.wake()
    assert hanging.head.get(total, hanging.devices[0], shape=()) == 32
    assert hanging.head.get(read, hanging.devices[0])[0, 0] == 4
    assert hanging.head.get(state, hanging.devices[0])[0, 0] == 34


@pytest.mark.skipif(VERSION >= (0, 12), reason="from jaxlib 0.12 on a program may follow another")
def test_nothing_follows(hanging: Hanging) -> None:
    hanging.start("twice", hanging.start("step", hanging.state))
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(hanging.last, hanging.devices[0])[0, 0] == 68


def test_not_if_the_state_is_kept(hanging: Hanging) -> None:
    hanging.start("sum", hanging.state, 2)
    state = hanging.start("step", hanging.state, keep=[0])
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(hanging.state, hanging.devices[0])[0, 0] == 2
    assert hanging.head.get(state, hanging.devices[0])[0, 0] == 34


def test_what_is_kept_is_not_what_was_read(hanging: Hanging) -> None:
    """A step that must leave its argument reads a copy: another that overwrites the argument does not depend on it."""
    kept = hanging.start("step", hanging.state, keep=[0])
    state = hanging.start("step", hanging.state)
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(kept, hanging.devices[0])[0, 0] == hanging.head.get(state, hanging.devices[0])[0, 0] == 34


@pytest.mark.parametrize("hanging", [1, 2], indirect=True, ids=["one device", "two devices"])
def test_the_executor_goes_on(hanging: Hanging) -> None:
    """Whatever hangs, and however much is behind it: what is for one device is started, and ends."""
    head, first = hanging.head, hanging.head.peers[0]
    device = first.devices[0]
    double, _ = head.compile(first, "double", [device])
    state = hanging.start("step", hanging.state)
    for number in range(40):
        hanging.start("twice" if number else "sum", state, 1 if number else 2)
    (doubled,) = head.execute([first], double, [head.put({device: ONES})], 1)
    np.testing.assert_array_equal(head.get(doubled, device), 2 * ONES)
    head.ask([first], delete=wire.Delete(arrays=[doubled]))
    hanging.wake()


def test_another_may_overtake_what_waits() -> None:
    program, ran = Program.__new__(Program), Ran(None)
    ran.wait = lambda: None  # type: ignore[attr-defined]
    left = [[ran], [ran, ran], []]
    program._before = lambda *_: left.pop(0)  # type: ignore[method-assign, assignment, misc, return-value]
    program.await_turn([], ())
    assert left == []


@follows
def test_without_collectives_no_turn_is_taken(hanging: Hanging) -> None:
    hanging.start("step", hanging.state)
    twice = hanging.start("twice", hanging.other)
    assert hanging.has_started()
    hanging.start("sum", twice, 2)  # follows that, but not the step
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(twice, hanging.devices[0])[0, 0] == 12
