"""The Control service over a real gRPC connection."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import pytest

from everstep.control import client, service
from everstep.observe.events import Events, Kind
from everstep.wire import channel_pb2 as channel
from everstep.wire import control_pb2 as control
from everstep.wire.errors import Code, Failure, invalid


class Callbacks:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.attached: dict[str, service.Send] = {}
        self.results: asyncio.Queue[tuple[str, int, list[channel.HostValue], Failure | None]] = asyncio.Queue()
        self.detached: asyncio.Queue[str] = asyncio.Queue()

    def attach(self, uuid: str, send: service.Send) -> None:
        if uuid in self.attached:
            raise Failure(Code.ALREADY_EXISTS, "there is one")
        self.attached[uuid] = send

    def detach(self, uuid: str) -> None:
        del self.attached[uuid]
        self.detached.put_nowait(uuid)

    def result(self, uuid: str, call: int, values: Sequence[channel.HostValue], error: Failure | None) -> None:
        self.results.put_nowait((uuid, call, list(values), error))


class Head:
    """A head with one worker, s0w0."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.callbacks = callbacks
        self.events = Events(lambda: 12.5)
        self.killed: list[tuple[str, int]] = []

    def status(self) -> dict[str, Any]:
        return {"name": "x", "workers": [1, 2]}

    def kill(self, worker: str, signal: int) -> None:
        if worker != "s0w0":
            raise invalid(f"this run has no worker {worker!r}")
        self.killed.append((worker, signal))


@contextlib.asynccontextmanager
async def served(path: pathlib.Path, callbacks: Callbacks, head: Head | None = None) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server()
    service.add_to_server(server, head or Head(callbacks))
    server.add_insecure_port(f"unix:{path}/head.sock")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{path}/head.sock") as connection:
        yield connection
    await server.stop(None)


def open_stream(connection: grpc.aio.Channel) -> Any:
    return connection.stream_stream(
        f"/{service.SERVICE}/Callbacks",
        request_serializer=control.FromProgram.SerializeToString,
        response_deserializer=control.ToProgram.FromString,
    )()


async def register(connection: grpc.aio.Channel, uuid: str) -> Any:
    stream = open_stream(connection)
    await stream.write(control.FromProgram(register=control.Register(uuid=uuid)))
    assert (await stream.read()).WhichOneof("body") == "registered"
    return stream


def test_status(tmp_path: pathlib.Path) -> None:
    async def main() -> dict[str, Any]:
        async with served(tmp_path, Callbacks()):
            return await asyncio.to_thread(client.status, f"unix:{tmp_path}/head.sock")

    assert asyncio.run(main()) == {"name": "x", "workers": [1, 2]}


def test_kill(tmp_path: pathlib.Path) -> None:
    head = Head(Callbacks())

    async def main() -> None:
        async with served(tmp_path, head.callbacks, head):
            await asyncio.to_thread(client.kill, f"unix:{tmp_path}/head.sock", "s0w0", 9)
            with pytest.raises(Failure, match="FAILED_PRECONDITION: this run has no worker 's9w9'"):
                await asyncio.to_thread(client.kill, f"unix:{tmp_path}/head.sock", "s9w9", 9)

    asyncio.run(main())
    assert head.killed == [("s0w0", 9)]


def test_events_so_far(tmp_path: pathlib.Path) -> None:
    head = Head(Callbacks())
    first = head.events.add(Kind.LOST, "worker s0w0 is lost", slice=0, worker="s0w0", incarnation=3)
    second = head.events.add(Kind.WORLD, "world 2 is up", world=2)

    async def main() -> None:
        async with served(tmp_path, head.callbacks, head):
            assert await asyncio.to_thread(client.events, f"unix:{tmp_path}/head.sock") == [first, second]
            assert await asyncio.to_thread(lambda: client.events(f"unix:{tmp_path}/head.sock", after=1)) == [second]

    asyncio.run(main())
    assert str(first) == "00:00:12.500  lost        worker s0w0 is lost"


def test_events_as_they_come(tmp_path: pathlib.Path) -> None:
    head = Head(Callbacks())
    head.events.add(Kind.JOINED, "one")

    async def main() -> list[str]:
        async with served(tmp_path, head.callbacks, head):
            stream = client.Events(f"unix:{tmp_path}/head.sock")
            events = iter(stream)
            seen = [(await asyncio.to_thread(next, events)).message]
            head.events.add(Kind.LOST, "two")
            seen.append((await asyncio.to_thread(next, events)).message)
            stream.close()
            assert await asyncio.to_thread(next, events, None) is None
            return seen

    assert asyncio.run(main()) == ["one", "two"]


def test_nobody_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Failure, match="does not answer"):
        client.status(f"unix:{tmp_path}/head.sock")


def test_calls_go_out_and_answers_come_back(tmp_path: pathlib.Path) -> None:
    value = channel.HostValue(dtype="f32", shape=[2], data=b"12345678")

    async def main() -> None:
        callbacks = Callbacks()
        async with served(tmp_path, callbacks) as connection:
            stream = await register(connection, "u1")
            callbacks.attached["u1"](7, "u1/0", [value])
            callbacks.attached["u1"](8, "u1/1", [])
            first, second = (await stream.read()).call, (await stream.read()).call
            assert (first.call, first.callback, list(first.operands)) == (7, "u1/0", [value])
            assert (second.call, second.callback, list(second.operands)) == (8, "u1/1", [])
            # In any order, and a result of no values is a result.
            await stream.write(control.FromProgram(result=control.Result(call=8)))
            error = channel.Error(code=Code.INVALID_ARGUMENT, message="no")
            await stream.write(control.FromProgram(result=control.Result(call=7, error=error)))
            assert await callbacks.results.get() == ("u1", 8, [], None)
            uuid, call, values, failure = await callbacks.results.get()
            assert (uuid, call, values) == ("u1", 7, [])
            assert str(failure) == "INVALID_ARGUMENT: no"
            stream.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("how", ["cancel", "done_writing"])
def test_a_program_that_leaves_is_detached(tmp_path: pathlib.Path, how: str) -> None:
    async def main() -> None:
        callbacks = Callbacks()
        async with served(tmp_path, callbacks) as connection:
            stream = await register(connection, "u1")
            done = getattr(stream, how)()
            if how == "done_writing":
                await done
            assert await callbacks.detached.get() == "u1"
            await register(connection, "u1")  # and may come again

    asyncio.run(main())


def test_two_programs(tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        callbacks = Callbacks()
        async with served(tmp_path, callbacks) as connection:
            one, other = await register(connection, "u1"), await register(connection, "u2")
            callbacks.attached["u2"](1, "u2/0", [])
            callbacks.attached["u1"](2, "u1/0", [])
            assert (await one.read()).call.call == 2
            assert (await other.read()).call.call == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("first", "code"),
    [
        (control.FromProgram(register=control.Register()), grpc.StatusCode.INVALID_ARGUMENT),
        (control.FromProgram(result=control.Result(call=1)), grpc.StatusCode.INVALID_ARGUMENT),
        (control.FromProgram(), grpc.StatusCode.INVALID_ARGUMENT),
        (control.FromProgram(register=control.Register(uuid="taken")), grpc.StatusCode.ALREADY_EXISTS),
    ],
)
def test_who_does_not_register_well_is_refused(tmp_path: pathlib.Path, first: control.FromProgram, code: grpc.StatusCode) -> None:
    async def main() -> grpc.StatusCode:
        async with served(tmp_path, Callbacks()) as connection:
            await register(connection, "taken")
            stream = open_stream(connection)
            with contextlib.suppress(grpc.aio.AioRpcError):
                await stream.write(first)
                await stream.read()
            refused: grpc.StatusCode = await stream.code()
            return refused

    assert asyncio.run(main()) == code
