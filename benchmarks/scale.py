"""How the head fares with many workers: 8, 64, 256, 1,024 of them, simulated.

    python benchmarks/scale.py [--workers 8 64 256 1024] [--steps N]

The head and the program (JAX) are real, and so are TLS and the channel. The workers are doubles that all live in this process: they run
no XLA, and answer each command at once. What is measured is the head, in CPU time: this process and the program use the same machine.

join: until all have joined, their world is up, and JAX could start. step: the head's CPU time for one step of a program over all devices.
told: from a worker's end until the last other worker has been told to leave the world. exception: until the program has it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import resource
import socket
import ssl
import subprocess
import sys
import time
import uuid
from typing import Any

import psutil
import results
from jaxlib import xla_client

from everstep.wire import addresses, door, frames
from everstep.wire import channel_pb2 as wire
from everstep.wire.credentials import HEAD, Credentials

_AT_ONCE = 32  # connections that are being made
_VECTOR_LAYOUT = b"\x0a\x01\x00"  # xla.LayoutProto: minor_to_major [0]


class Double(asyncio.Protocol):
    """A worker that does what it is told, as far as the head can see."""

    def __init__(self, name: str, total: int, token: str) -> None:
        self.name = name
        self.told_at = 0.0  # to leave its world, time.time()
        self.hold = False  # programs don't end
        self._total = total
        self._token = token
        self._buffer = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        device = wire.DeviceInfo(platform="cpu", kind="cpu", memory_kinds=["device"], default_memory_kind="device")
        hello = wire.Hello(
            version=frames.VERSION, token=self._token, name=self.name, pid=os.getpid(), host="127.0.0.1", bulk_address="127.0.0.1:9",
            devices=[device], platform_version="double", release="double", jaxlib="0",
        )  # fmt: skip
        self.send(hello=hello)

    def send(self, **body: Any) -> None:
        if self.transport is not None:
            self.transport.write(frames.encode(wire.ToHead(**body).SerializeToString()))

    def beat(self) -> None:
        self.send(heartbeat=wire.Heartbeat())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4 and len(self._buffer) >= (end := 4 + frames.length(self._buffer[:4])):
            message = wire.ToWorker.FromString(bytes(self._buffer[4:end]))
            del self._buffer[:end]
            self._obey(message)

    def _obey(self, message: wire.ToWorker) -> None:
        kind, op = str(message.WhichOneof("body")), message.op
        if kind == "connect_world":
            self.send(world_connected=wire.WorldConnected(op=op, endpoints=["127.0.0.1:9"]))
        elif kind == "break_world":
            self.told_at = self.told_at or time.time()
        elif kind == "compile":
            self._compile(op, message.compile)
        elif op and not (kind == "execute" and self.hold):
            self.send(done=wire.Done(op=op))

    def _compile(self, op: int, message: wire.Compile) -> None:
        count = len(message.devices)
        sharding = xla_client.HloSharding.iota_tile((count,)).to_proto().SerializeToString()
        output = wire.Output(dtype="f32", shape=[count], shard_shape=[1], memory_kind="device")
        self.send(
            compiled=wire.Compiled(
                op=op, name="jit_step", fingerprint=b"double", has_parameter_shardings=True, parameter_shardings=[sharding],
                has_output_shardings=True, output_shardings=[sharding], parameter_layouts=[_VECTOR_LAYOUT], output_layouts=[_VECTOR_LAYOUT],
                outputs=[output],
            )
        )  # fmt: skip
        self.send(blob_ready=wire.BlobReady(program=message.program, size=1))


def program() -> None:
    """argv: steps. Told "steps", times them; told "wait", waits for a step that does not end."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    count = len(jax.devices())
    x = jax.device_put(np.zeros(count, np.float32), NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i")))
    step = jax.jit(lambda x: x + 1)
    jax.block_until_ready(step(x))
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        try:
            for _ in range(int(line)):
                x = step(x)
            jax.block_until_ready(x)
            print(time.perf_counter() - start, flush=True)
        except jax.errors.JaxRuntimeError as error:
            if "DATA_LOSS" not in str(error):
                raise
            print(time.time(), flush=True)


class Scene:
    """A head, so many doubles, a program."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.name = f"scale-{uuid.uuid4().hex[:6]}"
        self._draining: asyncio.Future[Any] | None = None

    async def run(self, steps: int) -> dict[str, float]:
        head = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "everstep", "up", "--name", self.name, "--join", "127.0.0.1:0", "--slices", str(self.workers)),
            *("--heartbeat-timeout", "60"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            return await self._measure(head, steps)
        finally:
            head.terminate()
            await head.wait()

    async def _measure(self, head: asyncio.subprocess.Process, steps: int) -> dict[str, float]:
        assert head.stdout is not None
        assert head.stderr is not None
        await head.stderr.readline()
        lines = [(await head.stderr.readline()).decode().split() for _ in range(self.workers)]
        address, token_file = (lines[0][lines[0].index(option) + 1] for option in ("--head", "--token-file"))
        credentials = _read(token_file)
        began = time.time()
        gate = asyncio.Semaphore(_AT_ONCE)
        doubles = await asyncio.gather(*(self._join(f"s{i}w0", address, credentials, gate) for i in range(self.workers)))
        beating = asyncio.ensure_future(self._beat(doubles))
        exports = {}
        while not (line := (await head.stdout.readline()).decode().strip()).endswith("status"):
            if line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                exports[name] = value
            if len(exports) >= 4:
                break
        self._draining = asyncio.gather(head.stdout.read(), head.stderr.read())  # else it waits to write
        measured = {"join": time.time() - began}
        process = _head_process(head.pid)
        client = await asyncio.create_subprocess_exec(
            *(sys.executable, __file__, "--program"), env=os.environ | exports, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert client.stdin is not None
        assert client.stdout is not None
        assert await client.stdout.readline() == b"ready\n"

        async def ask(count: int) -> float:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write(f"{count}\n".encode())
            return float(await client.stdout.readline())

        before, idle_from = _cpu(process), time.time()
        await asyncio.sleep(2.0)
        idle = (_cpu(process) - before) / (time.time() - idle_from)  # heartbeats
        before = _cpu(process)
        seconds = await ask(steps)
        measured["step"] = (_cpu(process) - before - idle * seconds) / steps
        measured["wall"] = seconds / steps
        measured["idle"] = idle
        measured["MB"] = process.memory_info().rss / 2**20
        for double in doubles:
            double.hold, double.told_at = True, 0.0
        waiting = asyncio.ensure_future(ask(1))
        await asyncio.sleep(1.0)  # the step is under way
        died = time.time()
        victim, *others = doubles
        assert victim.transport is not None
        victim.transport.abort()
        measured["exception"] = await waiting - died
        while not all(double.told_at for double in others):  # noqa: ASYNC110 - a benchmark may look again and again
            await asyncio.sleep(0.01)
        measured["told"] = max(double.told_at for double in others) - died
        beating.cancel()
        client.stdin.close()
        await client.wait()
        for double in others:
            if double.transport is not None:
                double.transport.abort()
        return measured

    async def _join(self, name: str, address: str, credentials: Credentials, gate: asyncio.Semaphore) -> Double:
        loop = asyncio.get_running_loop()
        async with gate:
            sock = socket.socket(socket.AF_INET)
            sock.setblocking(False)
            await loop.sock_connect(sock, addresses.split(address))
            await loop.sock_sendall(sock, door.wish(door.CHANNEL))
            context = credentials.client
            assert isinstance(context, ssl.SSLContext)
            double = Double(name, self.workers, credentials.token)
            await loop.create_connection(lambda: double, sock=sock, ssl=context, server_hostname=HEAD)
        return double

    async def _beat(self, doubles: list[Double]) -> None:
        while True:
            for double in doubles:
                double.beat()
                await asyncio.sleep(1.0 / len(doubles))


def _read(token_file: str) -> Credentials:
    return Credentials.parse(pathlib.Path(token_file).read_text().strip())


def _head_process(pid: int) -> psutil.Process:
    (head,) = (child for child in psutil.Process(pid).children() if "head" in child.cmdline())
    return head


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main(counts: list[int], steps: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    samples = {}
    for count in counts:
        samples[count] = asyncio.run(Scene(count).run(steps))
        print(count, json.dumps({name: round(value, 4) for name, value in samples[count].items()}), flush=True)
    rows: list[list[str | float]] = [
        [f"{n} workers", m["join"], 1e3 * m["step"], 1e3 * m["wall"], 1e2 * m["idle"], m["MB"], 1e3 * m["told"], 1e3 * m["exception"]]
        for n, m in samples.items()
    ]
    columns = ["", "join s", "step ms (head)", "step ms (wall)", "heartbeats % core", "head MB", "told ms", "exception ms"]
    results.report("scale", columns, rows, ["workers are doubles: they run no XLA"], samples)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"]:
        program()
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 64, 256, 1024])
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    main(options.workers, options.steps)
