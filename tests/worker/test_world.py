"""What becomes of programs that XLA does not let go of."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from everstep.wire import channel_pb2 as wire
from everstep.wire import frames
from everstep.wire.errors import Code, Failure
from everstep.worker import gloo
from everstep.worker.completions import Completions
from everstep.worker.execution import Execution
from everstep.worker.reports import Reporter
from everstep.worker.world import World, Worlds


class StuckToken:
    def __init__(self) -> None:
        self.free = threading.Event()

    def block_until_ready(self) -> None:
        self.free.wait(60)


class FakeWorld(World):
    closed = False

    def connect(self, service: str) -> list[str]:
        return []

    def build(self, rank: int, size: int, devices: Sequence[int]) -> None: ...

    def break_up(self, endpoints: Sequence[str]) -> None: ...

    def close(self) -> None:
        self.closed = True

    def adopt(self, buffer: Any, device: Any, memory_kind: str | None) -> Any:
        raise AssertionError

    def tune(self, options: Any, spans_workers: bool) -> None: ...


@pytest.fixture
def channel() -> Iterator[tuple[Reporter, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(20)
    with ours, theirs:
        yield Reporter(ours), theirs


def test_a_stuck_program_is_given_up(channel: tuple[Reporter, socket.socket]) -> None:
    reporter, head = channel
    made: list[FakeWorld] = []

    def make(number: int) -> World:
        made.append(FakeWorld(number))
        return made[-1]

    def report() -> wire.Done:
        data = frames.receive(head)
        assert data is not None
        return wire.ToHead.FromString(data).done

    worlds = Worlds(make, reporter, lambda world, failure: None, lambda world: None)
    worlds.build(1, wire.BuildWorld(world=7, size=1))
    assert report().op == 1
    (world,) = made
    completions = Completions(reporter.done)
    token = StuckToken()
    execution = Execution(world, (0,), token)
    world.executions.add(execution)
    completions.wait(2, execution)
    worlds.break_up(0, wire.BreakWorld(world=7))
    done = report()
    assert (done.op, done.error.code) == (2, Code.ABORTED)
    assert "broken up" in done.error.message
    token.free.set()  # and whatever it says later is not heard
    execution.end(Failure(Code.INTERNAL, "late"))
    completions.forget(world)
    worlds.drop(0, wire.DropWorld(world=7))
    reporter.done(3)
    assert report().op == 3


def test_numbers_that_gloo_publishes() -> None:
    """Host name and address with their sizes, then the numbers."""
    size, number = gloo._SIZE.pack, gloo._NUMBER.pack
    published = size(3) + b"abc" + size(5) + b"12345" + number(4) + number(9) + number(7)

    class Agent:
        def key_value_dir_get_bytes(self, key: str) -> list[tuple[str, bytes]]:
            return [("cpu:gloo/0,1/0", published), ("cpu:gloo/0,1/1", size(0) + size(0))]

    assert gloo.last_number(Agent(), 2) == 11
    assert gloo.last_number(object(), 2) == 1
