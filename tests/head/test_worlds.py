"""When a world is formed, beside which, and what becomes of the old one. Workers are doubles that do what they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from everstep.head import worlds
from everstep.head.channel import Link
from everstep.head.dispatch import Dispatcher
from everstep.head.members import Member, Members, lost
from everstep.head.worlds import World, Worlds
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code


class Obedient(Link):
    """A link to a worker that does everything at once, unless it is to hold that back or to fail at it."""

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(None, "")  # type: ignore[arg-type]
        self.scene = scene
        self.name = name
        self.sent: list[wire.ToWorker] = []
        self.hold: set[str] = set()
        self.fail: set[str] = set()

    def send_frame(self, frame: bytes) -> None:
        message = wire.ToWorker.FromString(frame[4:])
        self.sent.append(message)
        kind = str(message.WhichOneof("body"))
        if message.op and kind not in self.hold:
            asyncio.get_running_loop().call_soon(self.scene.done, self.name, message.op, kind in self.fail)

    def kinds(self) -> list[str]:
        sent, self.sent = self.sent, []
        return [str(message.WhichOneof("body")) for message in sent]


class FakeCoordination:
    opened = 0

    def open(self) -> str:
        FakeCoordination.opened += 1
        return "127.0.0.1:1"

    def immunise(self) -> None: ...
    def close(self) -> None: ...


class Scene:
    def __init__(self, coordination: Callable[[], Any] = FakeCoordination) -> None:
        self.members = Members(3, 1, 1)
        self.links = {name: Obedient(self, name) for name in self.members.slots}
        self.dispatcher = Dispatcher(self.members, lambda operation: None)
        self.changes: list[World | None] = []
        self.failures: list[str] = []
        self.worlds = Worlds(lambda: list(self.members), self.dispatcher, coordination, self._changed, self.failures.append, self._late)

    def _changed(self, world: World | None) -> None:
        self.changes.append(world)
        for member in world.members if world else ():
            member.is_up = True
        self.dispatcher.open()

    def _late(self, member: Member, why: str) -> None:
        assert why == "no answer for 0 s while a world was formed"
        self.lose(member.slot.name)

    def join(self, name: str) -> Member:
        return self.members.join(wire.Hello(name=name, devices=[wire.DeviceInfo(platform="cpu")]), self.links[name])

    def lose(self, name: str) -> None:
        member = self.members.get(name)
        assert member is not None
        failure = lost(member, "signal 9 (SIGKILL)", 0.0)
        self.members.remove(member, failure)
        self.worlds.lose(member, failure)
        self.dispatcher.lose(member, failure)

    def done(self, name: str, op: int, failed: bool) -> None:
        member = self.members.get(name)
        if member is not None:
            error = wire.Error(code=10, message="broken") if failed else None
            kind = "world_connected" if any(m.op == op and m.HasField("connect_world") for m in self.links[name].sent) else "done"
            body = wire.WorldConnected(op=op, error=error) if kind == "world_connected" else wire.Done(op=op, error=error)
            self.dispatcher.report(member, wire.ToHead(**{kind: body}))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110 - conditions of all kinds
                await asyncio.sleep(0.001)

    def slots(self) -> list[tuple[str, ...] | None]:
        return [world.slots if world else None for world in self.changes]


def run(scenario: Callable[[], Any]) -> None:
    asyncio.run(scenario())


def test_a_world_of_all_and_one_without_the_dead() -> None:
    async def scenario() -> None:
        scene = Scene()
        for name in scene.links:
            scene.join(name)
        scene.worlds.reform()
        await scene.until(lambda: scene.changes)
        scene.lose("s1w0")
        assert scene.worlds.current is None
        assert scene.links["s0w0"].sent[-1].break_world.cause.code == Code.DATA_LOSS
        assert scene.links["s0w0"].kinds() == ["connect_world", "build_world", "break_world"]
        await scene.until(lambda: len(scene.changes) == 2)
        assert scene.slots() == [("s0w0", "s1w0", "s2w0"), ("s0w0", "s2w0")]
        await scene.worlds.close()

    run(scenario)


def test_one_who_comes_does_not_disturb_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "DROP_PAUSE", 0.0)

    async def scenario() -> None:
        scene = Scene()
        scene.join("s0w0")
        scene.join("s2w0")
        scene.worlds.reform()
        await scene.until(lambda: scene.changes)
        scene.links["s0w0"].kinds()
        scene.links["s0w0"].hold = {"execute"}
        running = scene.dispatcher.operation("step", ["s0w0"], program=True)
        scene.dispatcher.dispatch(running, ["s0w0"], wire.ToWorker(execute=wire.Execute(program=1)))
        scene.join("s1w0")
        scene.worlds.reform()
        assert scene.worlds.current is scene.changes[0]  # until the other one is up
        await scene.until(lambda: len(scene.changes) == 2)
        assert scene.slots()[1] == ("s0w0", "s1w0", "s2w0")
        assert scene.links["s0w0"].kinds() == ["execute", "connect_world", "build_world"]  # nothing was broken or dropped
        scene.done("s0w0", running.number, False)
        await scene.until(lambda: scene.links["s0w0"].sent)
        assert scene.links["s0w0"].kinds() == ["drop_world"]
        await scene.worlds.close()

    run(scenario)


def test_a_death_while_a_world_is_formed() -> None:
    async def scenario() -> None:
        scene = Scene()
        for name in scene.links:
            scene.join(name)
        scene.links["s1w0"].hold = {"build_world"}
        scene.worlds.reform()
        await scene.until(lambda: any(message.HasField("build_world") for message in scene.links["s1w0"].sent))
        scene.lose("s1w0")
        await scene.until(lambda: scene.changes)
        assert scene.slots() == [("s0w0", "s2w0")]
        assert scene.failures == []  # the workers that are left can
        assert "drop_world" in scene.links["s0w0"].kinds()
        await scene.worlds.close()

    run(scenario)


@pytest.mark.parametrize("at", ["connect_world", "build_world"])
def test_one_who_lives_but_does_not_answer_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    monkeypatch.setattr(worlds, "FORM_TIMEOUT", 0.2)

    async def scenario() -> None:
        scene = Scene()
        for name in scene.links:
            scene.join(name)
        scene.links["s1w0"].hold = {at}
        scene.worlds.reform()
        await scene.until(lambda: scene.changes)
        assert scene.slots() == [("s0w0", "s2w0")]
        await scene.worlds.close()

    run(scenario)


def test_nobody_left() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.join("s0w0")
        scene.worlds.reform()
        await scene.until(lambda: scene.changes)
        scene.lose("s0w0")
        await scene.until(lambda: len(scene.changes) == 2)
        assert scene.slots() == [("s0w0",), None]
        scene.join("s0w0")
        scene.worlds.reform()
        await scene.until(lambda: len(scene.changes) == 3)
        assert scene.slots()[2] == ("s0w0",)
        await scene.worlds.close()

    run(scenario)


@pytest.mark.parametrize("how", ["a worker fails", "no port is free"])
def test_what_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(worlds, "FORM_PAUSE", 0.0)
    attempts = []

    class Once(FakeCoordination):
        def open(self) -> str:
            attempts.append(1)
            if how == "no port is free" and len(attempts) == 1:
                raise RuntimeError("no port")
            return super().open()

    async def scenario() -> None:
        scene = Scene(Once)
        for name in ("s0w0", "s1w0"):
            scene.join(name)
        if how == "a worker fails":
            scene.links["s1w0"].fail = {"build_world"}
        scene.worlds.reform()
        await scene.until(lambda: scene.failures)
        scene.links["s1w0"].fail = set()
        await scene.until(lambda: scene.changes)
        assert scene.slots() == [("s0w0", "s1w0")]
        await scene.worlds.close()

    run(scenario)


def test_pulled_out_of_what_is_stuck() -> None:
    async def scenario() -> None:
        scene = Scene()
        for name in scene.links:
            scene.join(name)
        scene.worlds.reform()
        await scene.until(lambda: scene.changes)
        scene.worlds.abandon()
        await scene.until(lambda: len(scene.changes) == 2)
        assert scene.slots()[0] == scene.slots()[1]
        assert scene.links["s2w0"].kinds() == ["connect_world", "build_world", "break_world", "connect_world", "build_world"]
        await scene.worlds.close()

    run(scenario)
