"""A head that only relays host callbacks, and a backend that does with a module what client, head and worker do with it."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import itertools
import pathlib
import tempfile
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import jax
import pytest

from everstep.control import service
from everstep.wire import channel_pb2 as channel
from everstep.wire import values
from everstep.wire.errors import Failure


class FakeHead:
    """Serves the Control service in a thread of its own; `call` is what a worker would do."""

    def __init__(self, path: pathlib.Path) -> None:
        self.target = f"grpc://unix:{path}"
        self.attached = threading.Event()
        self.detached = threading.Event()
        self.uuids: list[str] = []
        self._sends: dict[str, service.Send] = {}
        self._answers: dict[int, tuple[threading.Event, list[Any]]] = {}
        self._numbers = itertools.count(1)
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(path),))
        self._thread.start()
        self._started.wait()

    async def _serve(self, path: pathlib.Path) -> None:
        server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        service.add_to_server(server, self)  # type: ignore[arg-type]  # callbacks are all it has
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        self._stop = asyncio.Event()
        self._started.set()
        await self._stop.wait()
        await server.stop(None)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    @property
    def callbacks(self) -> FakeHead:
        return self

    # the routes of callbacks, as control/service.py wants them

    def attach(self, uuid: str, send: service.Send) -> None:
        self.uuids.append(uuid)
        self._sends[uuid] = send
        self.attached.set()

    def detach(self, uuid: str) -> None:
        del self._sends[uuid]
        self.detached.set()

    def result(self, uuid: str, call: int, values: Sequence[channel.HostValue], error: Failure | None) -> None:
        done, answer = self._answers.pop(call)
        answer[:] = [list(values), error]
        done.set()

    # the worker

    def call(self, callback: str, *operands: Any) -> tuple[Any, ...]:
        """Call a callback of the program and wait for its answer. Raises Failure if it failed."""
        number = next(self._numbers)
        done, answer = self._answers[number] = threading.Event(), []
        send = self._sends[callback.partition("/")[0]]
        messages = [values.encode(operand) for operand in operands]
        self._loop.call_soon_threadsafe(send, number, callback, messages)
        done.wait()
        results, failure = answer
        if failure is not None:
            raise failure
        return tuple(map(values.decode, results))


@pytest.fixture
def head() -> Iterator[FakeHead]:
    with tempfile.TemporaryDirectory(prefix="evt-") as directory:
        head = FakeHead(pathlib.Path(directory) / "s")
        yield head
        head.close()


@dataclasses.dataclass
class Compiled:
    """What reached the backend: for each module the ids of its callbacks."""

    ids: list[list[str]] = dataclasses.field(default_factory=list)


@pytest.fixture
def proxied(head: FakeHead, monkeypatch: pytest.MonkeyPatch) -> Iterator[Compiled]:
    """The hook installed over a backend that, like client, head and worker together, sends modules as portable artifacts, compiles
    what it finds in them, and calls back through the head. Its devices are this process's CPU devices.
    """
    from jax._src import compilation_cache, compiler
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    from everstep.jax_plugin import backend, compile_hook

    compiled = Compiled()
    real = compiler.backend_compile_and_load

    def backend_compile_and_load(backend: Any, module: Any, executable_devices: Any, options: Any, host_callbacks: Sequence[Any]) -> Any:
        assert not host_callbacks, "the client can't carry callables"
        with module.context:
            copy = ir.Module.parse(mlir.module_to_bytecode(module))
        artifact = stablehlo.serialize_portable_artifact(copy, stablehlo.get_minimum_version(), allow_other_dialects=True)
        with mlir.make_ir_context() as context:
            module = stablehlo.deserialize_portable_artifact(context, artifact)
            attributes = module.operation.attributes
            ids = [entry.value for entry in attributes[compile_hook.ATTRIBUTE]] if compile_hook.ATTRIBUTE in attributes else []
            compiled.ids.append(ids)
            return real(backend, module, executable_devices, options, [functools.partial(head.call, callback) for callback in ids])

    monkeypatch.setattr(compiler, "backend_compile_and_load", backend_compile_and_load)
    monkeypatch.setattr(compilation_cache, "is_cache_used", compilation_cache.is_cache_used)
    monkeypatch.setattr(compile_hook, "_is_proxy", lambda client: True)
    monkeypatch.setattr(compile_hook, "_server", None)
    monkeypatch.setattr(backend, "target", lambda: head.target)
    compile_hook.install()
    jax.clear_caches()
    yield compiled
    jax.clear_caches()
    if compile_hook._server is not None:
        compile_hook._server.close()
        assert head.detached.wait(10)
