"""Order, the gate, and which failure is told."""

import asyncio
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from everstep.head.arrays import Array, Placement
from everstep.head.channel import Link
from everstep.head.dispatch import SUSPICION, Dispatcher
from everstep.head.members import Member, Members, lost
from everstep.head.operations import Operation
from everstep.head.specs import ArraySpec, Sharding
from everstep.wire import channel_pb2 as wire
from everstep.wire import frames
from everstep.wire.errors import Code, Failure


class RecordingLink(Link):
    """A link that keeps what is sent. writes: how many frames each time."""

    def __init__(self) -> None:
        super().__init__(mock.Mock(), "")
        self.sent: list[wire.ToWorker] = []
        self.writes: list[int] = []
        self.written = asyncio.Event()
        self._transport = mock.Mock(write=self._record)

    def _record(self, data: bytes) -> None:
        before = len(self.sent)
        while data:
            end = 4 + frames.length(data[:4])
            self.sent.append(wire.ToWorker.FromString(data[4:end]))
            data = data[end:]
        self.writes.append(len(self.sent) - before)
        self.written.set()


class Scene:
    """Two slices of one worker each, joined, and a dispatcher."""

    def __init__(self) -> None:
        self.members = Members(2, 1, 1)
        self.links = {name: RecordingLink() for name in self.members.slots}
        for name, link in self.links.items():
            self.members.join(wire.Hello(name=name, incarnation=1, devices=[wire.DeviceInfo(platform="cpu")]), link).is_up = True
        self.stuck: list[Operation] = []
        self.dispatcher = Dispatcher(self.members, self.stuck.append)

    def member(self, name: str) -> Member:
        member = self.members.get(name)
        assert member is not None
        return member

    def execute(self, **options: Any) -> Operation:
        operation = self.dispatcher.operation("step", self.links, spanning=True, program=True)
        self.dispatcher.dispatch(operation, self.links, wire.ToWorker(execute=wire.Execute(program=1)), **options)
        return operation

    def done(self, name: str, operation: Operation, code: Code = Code.OK, message: str = "", *, running: bool = False) -> None:
        error = wire.Error(code=code, message=message) if code else None
        self.dispatcher.report(self.member(name), wire.ToHead(done=wire.Done(op=operation.number, error=error, running=running)))

    def lose(self, name: str) -> None:
        member = self.member(name)
        failure = lost(member, "signal 9 (SIGKILL)", 0.0)
        self.members.remove(member, failure)
        self.dispatcher.lose(member, failure)


Timer = tuple[float, Callable[..., None], tuple[Any, ...]]


def run(scenario: Any, timers: list[Timer] | None = None) -> None:
    """timers: what the scenario wants called later is noted there and never called."""

    async def noted() -> None:
        loop = asyncio.get_running_loop()

        def call_later(delay: float, call: Callable[..., None], *arguments: Any) -> asyncio.TimerHandle:
            assert timers is not None
            timers.append((delay, call, arguments))
            return loop.call_at(loop.time() + 3600, lambda: None)

        loop.call_later = call_later  # type: ignore[method-assign,assignment]
        await scenario()

    asyncio.run(scenario() if timers is None else noted())


@pytest.fixture
def timers() -> list[Timer]:
    return []


def test_commands_wait_for_a_world_in_order() -> None:
    async def scenario() -> None:
        scene = Scene()
        order: list[str] = []
        first = scene.execute(prepare=lambda: order.append("first"))
        second = scene.execute(prepare=lambda: order.append("second"))
        assert not any(link.sent for link in scene.links.values())
        scene.dispatcher.open()
        assert order == ["first", "second"]
        for link in scene.links.values():
            assert [message.op for message in link.sent] == [first.number, second.number]

    run(scenario)


def test_what_fails_while_it_waits_is_never_sent() -> None:
    async def scenario() -> None:
        scene = Scene()
        operation = scene.execute()
        operation.fail(Failure(Code.INVALID_ARGUMENT, "its argument failed"))
        scene.dispatcher.open()
        assert not any(link.sent for link in scene.links.values())
        assert scene.dispatcher.in_flight() == 0

    run(scenario)


def test_an_operation_for_a_worker_that_is_away_fails_with_data_loss() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        scene.lose("s1w0")
        operation = scene.execute()
        with pytest.raises(Failure, match=r"DATA_LOSS: .*s1w0"):
            await operation.done()

    run(scenario)


def test_the_death_that_caused_an_error_is_told_not_the_error() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        operation = scene.execute()
        scene.done("s0w0", operation, Code.UNKNOWN, "Gloo all-reduce failed: Connection reset by peer")
        assert operation.failure is None
        scene.lose("s1w0")
        with pytest.raises(Failure, match=r"DATA_LOSS: worker s1w0 .*SIGKILL"):
            await operation.done()
        assert scene.dispatcher.in_flight() == 0

    run(scenario)


def test_a_death_is_told_by_what_reads_the_results_too() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        step = scene.execute()
        spec = ArraySpec("f32", (2,), Sharding((0, 1), tiles=(2,), tile_of=(0, 1)))
        array = Array(1, spec, Placement((0, 1), scene.members.slot_of_device), (step,))
        get = scene.dispatcher.operation("get", ["s0w0"])
        get.follow(array)
        scene.dispatcher.dispatch(get, ["s0w0"], wire.ToWorker(get=wire.Get(array=1)))
        scene.done("s0w0", get, Code.UNKNOWN, "Gloo all-reduce failed: Connection reset by peer")
        assert get.failure is None
        scene.lose("s1w0")
        with pytest.raises(Failure, match=r"DATA_LOSS: worker s1w0 .*SIGKILL"):
            await get.done()
        scene.done("s0w0", step, Code.UNKNOWN, "Gloo all-reduce failed: Connection reset by peer")
        assert scene.dispatcher.in_flight() == 0

    run(scenario)


def test_what_has_failed_in_part_is_still_done_where_it_can_be() -> None:
    """A second worker dies while a command for both waits for a world: the other one gets it."""

    async def scenario() -> None:
        scene = Scene()
        put = scene.dispatcher.operation("put", scene.links)
        scene.dispatcher.dispatch(put, scene.links, {name: wire.ToWorker(put=wire.Put(array=1)) for name in scene.links})
        scene.lose("s1w0")
        scene.dispatcher.open()
        assert [message.op for message in scene.links["s0w0"].sent] == [put.number]
        scene.done("s0w0", put)
        assert scene.dispatcher.in_flight() == 0

    run(scenario)


def test_an_error_that_comes_after_the_death_that_caused_it() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        copy = scene.dispatcher.operation("copy", scene.links, sources=scene.links)
        spec = ArraySpec("f32", (2,), Sharding((0, 1), tiles=(2,), tile_of=(0, 1)))
        array = Array(1, spec, Placement((0, 1), scene.members.slot_of_device), (copy,))
        copy.feed(array)
        scene.dispatcher.dispatch(copy, scene.links, {name: wire.ToWorker(build=wire.Build(array=1)) for name in scene.links})
        scene.lose("s1w0")
        scene.done("s0w0", copy, Code.UNAVAILABLE, "connection reset")
        assert array.failures is not None
        assert {failure.code for failure in array.failures.values()} == {Code.DATA_LOSS}
        assert scene.dispatcher.in_flight() == 0

    run(scenario)


def test_an_error_of_all_workers_is_the_programs_own() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        operation = scene.execute()
        for name in scene.links:
            scene.done(name, operation, Code.INTERNAL, "the callback raised")
        with pytest.raises(Failure, match="the callback raised"):
            await operation.done()
        assert scene.stuck == []
        assert scene.dispatcher.in_flight() == 0

    run(scenario)


def test_an_error_after_the_success_of_all_others_is_told_at_once() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        operation = scene.execute()
        scene.done("s1w0", operation)
        scene.done("s0w0", operation, Code.UNKNOWN, "the callback raised")
        with pytest.raises(Failure, match="the callback raised"):
            await operation.done()
        assert scene.dispatcher.in_flight() == 0

    run(scenario)


def test_an_error_of_one_worker_alone_frees_the_others(timers: list[Timer]) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        operation = scene.execute()
        scene.done("s0w0", operation, Code.UNKNOWN, "the callback raised")
        assert operation.failure is None
        [(delay, settle, arguments)] = timers
        assert delay == SUSPICION
        settle(*arguments)
        with pytest.raises(Failure, match="the callback raised"):
            await operation.done()
        assert scene.stuck == [operation]

    run(scenario, timers)


def test_an_error_of_one_device_frees_the_others_of_its_worker_too(timers: list[Timer]) -> None:
    """Not one worker has ended: all have a device that waits."""

    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        operation = scene.execute()
        scene.done("s0w0", operation, Code.UNKNOWN, "the callback raised", running=True)
        scene.done("s1w0", operation, Code.UNKNOWN, "the callback raised there too", running=True)
        assert operation.failure is None
        [(delay, settle, arguments)] = timers
        assert delay == SUSPICION
        settle(*arguments)
        with pytest.raises(Failure, match=r"the callback raised$"):
            await operation.done()
        assert scene.stuck == [operation]
        for name in scene.links:  # which the end of the world has freed
            scene.done(name, operation, Code.ABORTED, "the world was broken up")
        assert scene.dispatcher.in_flight() == 0

    run(scenario, timers)


def test_an_error_of_one_device_that_ends_the_program_everywhere_is_the_programs_own(timers: list[Timer]) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        operation = scene.execute()
        scene.done("s0w0", operation, Code.UNKNOWN, "the callback raised", running=True)
        for name in scene.links:
            scene.done(name, operation, Code.UNKNOWN, "the callback raised")
        with pytest.raises(Failure, match="the callback raised"):
            await operation.done()
        assert scene.stuck == []
        assert scene.dispatcher.in_flight() == 0

    run(scenario, timers)


def test_a_users_error_is_told_at_once() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.dispatcher.open()
        operation = scene.execute()
        scene.done("s0w0", operation, Code.RESOURCE_EXHAUSTED, "out of memory")
        with pytest.raises(Failure, match="RESOURCE_EXHAUSTED"):
            await operation.done()

    run(scenario)


def test_freeing_goes_with_the_next_command_or_a_moment_later() -> None:
    async def main() -> None:
        scene = Scene()
        scene.dispatcher.open()
        link = scene.links["s0w0"]
        scene.dispatcher.free(("s0w0", "s1w0"), [7])
        scene.dispatcher.free(("s0w0",), [8])
        assert link.writes == []
        scene.execute()
        assert link.writes == [3]
        assert [message.WhichOneof("body") for message in link.sent] == ["delete", "delete", "execute"]
        scene.dispatcher.free(("s0w0",), [9])
        link.written.clear()
        await link.written.wait()
        assert link.writes == [3, 1]
        assert list(link.sent[-1].delete.arrays) == [9]

    asyncio.run(main())
