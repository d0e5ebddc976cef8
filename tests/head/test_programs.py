"""What stays loaded, and what does not."""

from __future__ import annotations

import asyncio
import pathlib
import types
from collections.abc import Sequence
from typing import Any

import pytest

from everstep.head.arrays import Placement
from everstep.head.channel import Link
from everstep.head.dispatch import Dispatcher
from everstep.head.members import Member, Members, lost
from everstep.head.programs import CompileRequest, Program, Programs
from everstep.head.worlds import World
from everstep.wire import channel_pb2 as wire


class Compiler(Link):
    """A link to a worker that compiles whatever it is sent, at once. callbacks: ids that it finds in it."""

    def __init__(self, callbacks: Sequence[str]) -> None:
        super().__init__(None, "")  # type: ignore[arg-type]
        self.callbacks = callbacks
        self.sent: list[wire.ToWorker] = []
        self.scene: Scene | None = None

    def send_frame(self, frame: bytes) -> None:
        message = wire.ToWorker.FromString(frame[4:])
        self.sent.append(message)
        if message.WhichOneof("body") == "compile":
            assert self.scene is not None
            report = wire.Compiled(op=message.op, name="step", callbacks=self.callbacks)
            self.scene.dispatcher.report(self.scene.member, wire.ToHead(compiled=report))

    def unloaded(self) -> list[int]:
        return [number for message in self.sent for number in message.unload.programs]


class Scene:
    """A worker of one device in a world, and the table of programs."""

    def __init__(self, directory: pathlib.Path, callbacks: Sequence[str] = ()) -> None:
        members = Members(1, 1, 1)
        self.link = Compiler(callbacks)
        self.link.scene = self
        hello = wire.Hello(name="s0w0", incarnation=1, shares_directory=True, devices=[wire.DeviceInfo(platform="cpu")])
        self.member: Member = members.join(hello, self.link)
        self.member.is_up = True
        self.dispatcher = Dispatcher(members, lambda _: None)
        worlds: Any = types.SimpleNamespace(current=World(1, (self.member,), None))
        self.programs = Programs(self.dispatcher, members, worlds, lambda ids: Placement(tuple(ids), members.slot_of_device), directory)
        self.dispatcher.open()

    async def get(self) -> Program:
        return await self.programs.get(CompileRequest(b"module", b"options", (0,), 1, 1))


def run(scenario: Any) -> None:
    asyncio.run(scenario())


def test_a_program_that_nobody_holds_stays_for_whoever_asks_again(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        scene = Scene(tmp_path)
        program = await scene.get()
        scene.programs.release(program)
        assert len(scene.programs) == 0
        assert await scene.get() is program
        assert scene.link.unloaded() == []

    run(scenario)


def test_a_program_with_host_callbacks_goes_with_its_last_user(tmp_path: pathlib.Path) -> None:
    """Nobody can ask for it again, and they may be those of a process that is gone."""

    async def scenario() -> None:
        scene = Scene(tmp_path, ["process/1"])
        program = await scene.get()
        assert await scene.get() is program
        scene.programs.release(program)
        assert scene.link.unloaded() == []
        scene.programs.release(program)
        assert scene.link.unloaded() == [program.number]
        assert await scene.get() is not program

    run(scenario)


@pytest.mark.parametrize("dies", [False, True])
def test_a_program_may_go_before_it_is_serialized(tmp_path: pathlib.Path, dies: bool) -> None:
    async def scenario() -> None:
        scene = Scene(tmp_path, ["process/1"])
        program = await scene.get()
        scene.programs.release(program)
        if dies:
            scene.programs.lose(scene.member, lost(scene.member, "signal 9 (SIGKILL)", 0.0))
        else:
            file = tmp_path / f"program-{program.number}"
            file.write_bytes(b"serialized")
            scene.programs.blob_ready(wire.BlobReady(program=program.number, size=10), scene.member)
            assert not file.exists()

    run(scenario)
