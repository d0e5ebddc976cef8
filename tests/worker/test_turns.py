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
        self.turns.started(execution, arguments)
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
        assert scene.before(result) == []
        _, result = scene.run(result)
    assert scene.before(result) == [first]
    first.is_over = True
    assert scene.before(result) == []


def test_some_may_not_follow() -> None:
    scene = Scene()
    first, result = scene.run()
    assert scene.before(result, may_follow=False) == [first]


# ---------------------------------------------------------------- real ones


class Hanging:
    """Two workers, of which the first hangs in a step on `state`, because the second is stopped."""

    def __init__(self, head: Head) -> None:
        self.head = head
        for _ in range(2):
            head.spawn()
        head.welcome(2)
        head.form()
        self.devices = [device for peer in head.peers for device in peer.devices]
        self.programs = {name: head.spanning(name, head.peers, self.devices) for name in ("step4", "sum4", "twice4")}
        made = [head.put(dict.fromkeys(self.devices, number * ONES)) for number in (1, 3)]
        self.state, self.other = [head.execute(head.peers, self.programs["twice4"], [array], 1)[0] for array in made]
        head.execute(head.peers, self.programs["sum4"], [self.other], 2)  # the mesh of connections is there
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
def hanging(head: Head) -> Iterator[Hanging]:
    made = Hanging(head)
    os.kill(head.peers[1].process.pid, signal.SIGSTOP)
    yield made
    made.wake()


follows = pytest.mark.skipif(VERSION < (0, 12), reason="one program after the other before jaxlib 0.12")


@follows
def test_a_step_is_started_behind_the_one_before(hanging: Hanging) -> None:
    state = hanging.start("step4", hanging.state)
    for _ in range(3):
        state = hanging.start("step4", state)
        assert hanging.has_started()
    hanging.start("sum4", hanging.other, 2)  # nothing to do with it
    assert not hanging.has_started()
    state = hanging.start("step4", state)  # whose turn comes after that
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(state, hanging.devices[0])[0, 0] == 2 * 17**5


@follows
def test_a_step_is_started_behind_what_reads_its_state(hanging: Hanging) -> None:
    read, total = hanging.start("sum4", hanging.state, 2), hanging.last
    assert hanging.has_started()
    state = hanging.start("step4", hanging.state)
    assert hanging.has_started()
    hanging.wake()
    assert hanging.head.get(total, hanging.devices[0], shape=()) == 32
    assert hanging.head.get(read, hanging.devices[0])[0, 0] == 4
    assert hanging.head.get(state, hanging.devices[0])[0, 0] == 34


@pytest.mark.skipif(VERSION >= (0, 12), reason="from jaxlib 0.12 on a program may follow another")
def test_nothing_follows(hanging: Hanging) -> None:
    hanging.start("twice4", hanging.start("step4", hanging.state))
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(hanging.last, hanging.devices[0])[0, 0] == 68


def test_not_if_the_state_is_kept(hanging: Hanging) -> None:
    hanging.start("sum4", hanging.state, 2)
    state = hanging.start("step4", hanging.state, keep=[0])
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(hanging.state, hanging.devices[0])[0, 0] == 2
    assert hanging.head.get(state, hanging.devices[0])[0, 0] == 34


@follows
def test_without_collectives_no_turn_is_taken(hanging: Hanging) -> None:
    hanging.start("step4", hanging.state)
    twice = hanging.start("twice4", hanging.other)
    assert hanging.has_started()
    hanging.start("sum4", twice, 2)  # follows that, but not the step
    assert not hanging.has_started()
    hanging.wake()
    assert hanging.head.get(twice, hanging.devices[0])[0, 0] == 12
