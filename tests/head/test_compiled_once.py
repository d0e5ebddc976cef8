"""What is compiled is compiled once."""

from __future__ import annotations

import asyncio
import pathlib
import types

from head.test_dispatch import Scene

from everstep.head.arrays import Placement
from everstep.head.programs import CompileRequest, Programs
from everstep.head.worlds import World
from everstep.wire import channel_pb2 as wire


class Compilers(Scene):
    """The scene with programs, in a world of both workers."""

    def __init__(self, directory: pathlib.Path) -> None:
        super().__init__()
        worlds = types.SimpleNamespace(current=World(1, tuple(self.members), None))
        place = lambda devices: Placement(tuple(devices), self.members.slot_of_device)  # noqa: E731
        self.programs = Programs(self.dispatcher, self.members, worlds, place, directory)  # type: ignore[arg-type]
        self.dispatcher.open()

    def sent(self, name: str) -> list[str | None]:
        """What a worker was sent since it was last asked, without what it answered."""
        messages, self.links[name].sent = self.links[name].sent, []
        for message in messages:
            if message.HasField("compile"):
                self.dispatcher.report(self.member(name), wire.ToHead(compiled=wire.Compiled(op=message.op, name="f")))
                self.programs.blob_ready(wire.BlobReady(program=message.compile.program), self.member(name))
        return [message.WhichOneof("body") for message in messages]


def test_a_program_is_compiled_once_for_whatever_devices(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        scene = Compilers(tmp_path)

        async def get(*devices: int) -> list[list[str | None]]:
            work = asyncio.ensure_future(scene.programs.get(CompileRequest(b"module", b"options", devices, 1, 1)))
            sent: list[list[str | None]] = [[], []]
            while not work.done():
                await asyncio.sleep(0)
                sent = [before + scene.sent(name) for before, name in zip(sent, scene.links, strict=True)]
            assert (await work).devices == devices
            return sent

        assert await get(0) == [["compile"], []]
        assert await get(0) == [[], []]
        assert await get(1) == [[], ["load"]]

    asyncio.run(scenario())
