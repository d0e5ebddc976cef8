"""A head small enough to see through, for real worker processes: it speaks the channel, keeps no state, and waits with deadlines."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from everstep.wire import channel_pb2 as wire
from everstep.wire import dtypes, frames

TOKEN = "the token of this run"
SECONDS = 60.0  # deadline of whatever should happen

_WORKER = "import json, sys; from everstep.worker.main import Options, run; sys.exit(run(Options(**json.loads(sys.argv[1]))))"


class Failed(Exception):
    """A report said so."""

    def __init__(self, error: wire.Error) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.code = error.code
        self.message = error.message


@dataclasses.dataclass(frozen=True)
class Artifact:
    module: bytes
    options: bytes
    partitions: int


def make_artifacts(directory: pathlib.Path) -> dict[str, Artifact]:
    path = directory / "artifacts"
    script = pathlib.Path(__file__).with_name("artifacts.py")
    subprocess.run([sys.executable, script, path], check=True, env=os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}, timeout=120)
    return {name: Artifact(*made) for name, made in pickle.loads(path.read_bytes()).items()}


class Peer:
    """One worker process and the connection to it."""

    def __init__(self, process: subprocess.Popen[bytes], output: pathlib.Path) -> None:
        self.process = process
        self.output = output
        self.hello = wire.Hello()
        self.devices: list[int] = []
        self.messages: list[wire.ToHead] = []  # that are no answers: heartbeats, blobs, calls
        self._sock: socket.socket | None = None
        self._reports: dict[int, wire.ToHead] = {}
        self._changed = threading.Condition()

    def adopt(self, sock: socket.socket, hello: wire.Hello) -> None:
        self._sock, self.hello = sock, hello
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, op: int = 0, **body: Any) -> None:
        assert self._sock is not None
        self._sock.sendall(frames.encode(wire.ToWorker(op=op, **body).SerializeToString()))

    def report(self, op: int, seconds: float = SECONDS) -> Any:
        """The body of the report on an operation. Raises Failed if it is an error."""
        with self._changed:
            assert self._changed.wait_for(lambda: op in self._reports, seconds), f"no report on operation {op} in {seconds} s"
            message = self._reports.pop(op)
        body = getattr(message, str(message.WhichOneof("body")))
        if body.HasField("error"):
            raise Failed(body.error)
        return body

    def message(self, kind: str, where: Callable[[Any], bool] = lambda _: True) -> Any:
        """The next message of a kind that is no answer."""

        def found() -> wire.ToHead | None:
            return next((m for m in self.messages if m.WhichOneof("body") == kind and where(getattr(m, kind))), None)

        with self._changed:
            assert self._changed.wait_for(found, SECONDS), f"no {kind}"
            message = found()
            assert message is not None
            self.messages.remove(message)
            return getattr(message, kind)

    def reported(self, op: int) -> bool:
        with self._changed:
            return op in self._reports

    def close(self) -> None:
        if self._sock is not None:
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)  # also while the reader waits in it
            self._sock.close()

    def ended(self, seconds: float = 10.0) -> int:
        return self.process.wait(seconds)

    def _read(self) -> None:
        assert self._sock is not None
        with contextlib.suppress(OSError, frames.FrameError):
            while (data := frames.receive(self._sock)) is not None:
                message = wire.ToHead.FromString(data)
                body = getattr(message, str(message.WhichOneof("body")))
                with self._changed:
                    if (op := getattr(body, "op", 0)) and not getattr(body, "running", False):
                        self._reports[op] = message
                    else:
                        self.messages.append(message)
                    self._changed.notify_all()


class Head:
    """Starts workers and tells them what to do. Ids of devices are odd on purpose: 100, 107, 114..."""

    def __init__(self, directory: pathlib.Path, artifacts: Mapping[str, Artifact]) -> None:
        self.directory = directory
        self.shared = directory / "shared"
        self.shared.mkdir(exist_ok=True)
        self.artifacts = artifacts
        self.peers: list[Peer] = []
        self.world = 0
        self.services: list[Any] = []
        self._numbers = itertools.count(1)
        self._address = directory / "head"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._address))
        self._listener.listen()
        self._listener.settimeout(SECONDS)

    # ---------------------------------------------------------------- workers

    def number(self) -> int:
        return next(self._numbers)

    def workers(self, count: int, **options: Any) -> list[Peer]:
        """So many more, started and welcomed. options: of `spawn`."""
        peers = [self.spawn(**options) for _ in range(count)]
        self.welcome(count)
        return peers

    def spawn(self, *, devices: int = 2, token: str = TOKEN, shared: bool = True, slice_: int = 0) -> Peer:
        index = len(self.peers)
        options = {
            "head": f"unix:{self._address}",
            "token": token,
            "name": f"s{slice_}w{index}",
            "slice": slice_,
            "worker": index,
            "devices": devices,
            "shared_directory": str(self.shared) if shared else None,
        }
        output = self.directory / f"output{index}"
        # What the parent has set for its own JAX must not matter.
        environment = os.environ | {"JAX_PLATFORMS": "proxy,cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=7"}
        with output.open("wb") as file:
            command = [sys.executable, "-c", _WORKER, json.dumps(options)]
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        peer = Peer(process, output)
        self.peers.append(peer)
        return peer

    def accept(self) -> tuple[socket.socket, wire.Hello]:
        sock, _ = self._listener.accept()
        data = frames.receive(sock)
        assert data is not None
        return sock, wire.ToHead.FromString(data).hello

    def welcome(self, count: int) -> None:
        """Wait for that many and take them in."""
        for _ in range(count):
            sock, hello = self.accept()
            peer = next(peer for peer in self.peers if peer.process.pid == hello.pid)
            first = 100 + 1000 * self.peers.index(peer)
            peer.devices = [first + 7 * index for index in range(len(hello.devices))]
            welcome = wire.Welcome(version=frames.VERSION, device_ids=peer.devices, heartbeat_interval=0.2)
            sock.sendall(frames.encode(wire.ToWorker(welcome=welcome).SerializeToString()))
            peer.adopt(sock, hello)

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        for peer in self.peers:
            if peer.process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    peer.process.send_signal(signal.SIGCONT)
            try:
                peer.ended()
            except subprocess.TimeoutExpired:
                peer.process.kill()
                peer.ended()
        for service in self.services:
            service.close()
        self._listener.close()

    # ---------------------------------------------------------------- worlds

    def form(self, peers: Sequence[Peer] | None = None) -> list[str]:
        """Make a world over these, in this order; returns the endpoints."""
        members = list(self.peers if peers is None else peers)
        self.world += 1
        endpoints: list[str] = []
        if len(members) > 1:
            from everstep.worker.coordination import Coordination

            service = Coordination()
            self.services.append(service)
            connect = wire.ConnectWorld(world=self.world, service=service.open())
            reports = self.ask(members, connect_world=connect)
            endpoints = [endpoint for report in reports for endpoint in report.endpoints]
            service.immunise()
        devices = [device for peer in members for device in peer.devices]
        ops = []
        for rank, peer in enumerate(members):
            op = self.number()
            build = wire.BuildWorld(world=self.world, rank=rank, size=len(members), devices=devices)
            peer.send(op, build_world=build)
            ops.append((peer, op))
        for peer, op in ops:
            peer.report(op)
        return endpoints

    # ---------------------------------------------------------------- commands

    def ask(self, peers: Sequence[Peer], **body: Any) -> list[Any]:
        """Send one command to all and wait for their reports. Raises Failed."""
        return self.reports(self.send(peers, **body))

    def send(self, peers: Sequence[Peer], **body: Any) -> list[tuple[Peer, int]]:
        sent = [(peer, self.number()) for peer in peers]
        for peer, op in sent:
            peer.send(op, **body)
        return sent

    @staticmethod
    def reports(sent: Sequence[tuple[Peer, int]]) -> list[Any]:
        return [peer.report(op) for peer, op in sent]

    def compile(self, peer: Peer, name: str, devices: Sequence[int], **more: Any) -> tuple[int, Any]:
        """Returns the program's number and the report."""
        program, artifact = self.number(), self.artifacts[name]
        message = wire.Compile(
            program=program,
            world=self.world,
            module=wire.Source(inline=artifact.module),
            options=artifact.options,
            devices=devices,
            replicas=1,
            partitions=artifact.partitions,
            **more,
        )
        return program, self.ask([peer], compile=message)[0]

    def spanning(self, name: str, peers: Sequence[Peer], devices: Sequence[int]) -> int:
        """Compile on the first of the peers and load on the others."""
        blob = self.directory / f"blob{self.number()}"
        program, compiled = self.compile(peers[0], name, devices, blob_path=str(blob))
        ready = peers[0].message("blob_ready", lambda m: m.program == program)
        assert not ready.error.message, ready
        artifact = self.artifacts[name]
        outputs = [wire.ShardInfo(dtype=o.dtype, shape=o.shard_shape, memory_kind=o.memory_kind) for o in compiled.outputs]
        load = wire.Load(
            program=program,
            world=self.world,
            blob=wire.Source(path=str(blob), size=ready.size),
            options=artifact.options,
            devices=devices,
            replicas=1,
            partitions=artifact.partitions,
            outputs=outputs,
            callbacks=compiled.callbacks,
        )
        if len(peers) > 1:
            self.ask(peers[1:], load=load)
        return program

    def put(self, shards: Mapping[int, np.ndarray[Any, Any]], memory_kind: str = "") -> int:
        """A new array of these shards, by device."""
        array = self.number()
        for peer in self.peers:
            mine = {device: shard for device, shard in shards.items() if device in peer.devices}
            if mine:
                self.ask([peer], put=put_message(array, mine, memory_kind))
        return array

    def execute(self, peers: Sequence[Peer], program: int, arguments: Sequence[int], results: int, keep: Sequence[int] = ()) -> list[int]:
        """Run and wait. Returns the ids of the results."""
        sent, made = self.start(peers, program, arguments, results, keep)
        self.reports(sent)
        return made

    def start(
        self, peers: Sequence[Peer], program: int, arguments: Sequence[int], results: int, keep: Sequence[int] = ()
    ) -> tuple[list[tuple[Peer, int]], list[int]]:
        made = [self.number() for _ in range(results)]
        message = wire.Execute(program=program, arguments=arguments, results=made, keep_arguments=keep)
        return self.send(peers, execute=message), made

    def get(self, array: int, device: int, dtype: str = "f32", shape: Sequence[int] = (2, 2)) -> np.ndarray[Any, Any]:
        """One shard, by way of the channel."""
        peer = next(peer for peer in self.peers if device in peer.devices)
        numpy = dtypes.to_numpy(dtype)
        size = int(np.prod(shape, dtype=int)) * numpy.itemsize
        strides = np.empty(shape, numpy).strides
        piece = wire.GetPiece(device=device, box=wire.Box(start=[0] * len(shape), size=shape))
        message = wire.Get(array=array, size=size, shape=shape, byte_strides=strides, pieces=[piece])
        return np.frombuffer(self.ask([peer], get=message)[0].data, numpy).reshape(tuple(shape))


def put_message(array: int, shards: Mapping[int, np.ndarray[Any, Any]], memory_kind: str = "") -> wire.Put:
    first = next(iter(shards.values()))
    message = wire.Put(array=array, dtype=dtypes.from_numpy(first.dtype), shape=first.shape, memory_kind=memory_kind)
    for device, content in shards.items():
        message.shards.add(devices=[device], data=wire.Source(inline=content.tobytes(), size=content.nbytes))
    return message


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """What happens inside takes less than this."""
    start = time.monotonic()
    yield
    taken = time.monotonic() - start
    assert taken < seconds, f"it took {taken:.2f} s, not less than {seconds}"
