"""Workers on hosts of their own, on networks that are slow, lossy, or cut. Real hosts are network namespaces here: this needs root."""

from __future__ import annotations

import json
import os
import pathlib
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import hosts
import pytest
from processes import everstep, wait_for

pytestmark = [
    pytest.mark.once,
    pytest.mark.timeout(120, method="signal"),  # the others still run
    pytest.mark.skipif(not hosts.available(), reason="network namespaces need root, iproute2 and /dev/net/tun"),
]

HEARTBEAT_TIMEOUT = 4.0  # seconds
_SECONDS = 60.0  # most that anything takes
LOOP = os.fspath(pathlib.Path(__file__).with_name("loop.py"))


class Cluster:
    """A head on host 1, and a worker of two devices on each other host."""

    def __init__(self, network: hosts.Network, *, ipv6: bool = False) -> None:
        self.network = network
        self._head, *self._others = network.hosts
        self.name = f"net{os.getpid()}"
        self._errors = tempfile.TemporaryFile("a+")  # noqa: SIM115 - no pipe: nobody would read it, and who writes would wait
        address = f"[{self._head.address6}]:0" if ipv6 else f"{self._head.address}:0"
        shape = ("--slices", str(len(self._others)), "--devices-per-worker", "2", "--heartbeat-timeout", str(HEARTBEAT_TIMEOUT))
        self.up = self._head.start(
            [sys.executable, "-m", "everstep", "up", "--name", self.name, "--join", address, *shape],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.up.stdout is not None
        assert self.up.stderr is not None
        lines = [self.up.stderr.readline() for _ in range(len(self._others) + 1)]
        self.commands = [[sys.executable, "-m", *shlex.split(line)] for line in lines[1:]]
        self.workers: list[subprocess.Popen[str]] = []
        for number in range(len(self._others)):
            self.join(number)
        exports = [self.up.stdout.readline() for _ in range(9)]
        self.environment = dict(line.strip().removeprefix("export ").split("=", 1) for line in exports if line.startswith("export "))

    def join(self, number: int) -> subprocess.Popen[str]:
        """Start the worker of a slice on its host."""
        host = self._others[number]
        self.workers.append(host.start(self.commands[number], stdout=subprocess.DEVNULL, stderr=self._errors))
        return self.workers[-1]

    def program(self) -> subprocess.Popen[str]:
        process = self._head.start(
            [sys.executable, LOOP], env=os.environ | self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
        )
        assert self.line(process) == "started"
        return process

    def line(self, process: subprocess.Popen[str]) -> str:
        """The next line of its output. Fails with what is known if none comes."""
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
        if not ready:
            raise AssertionError("\n".join(["no line comes", *map(str, self.events()), self.errors()]))
        return process.stdout.readline().strip()

    def errors(self) -> str:
        """What the program and the workers have written to standard error so far."""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def cut(self, number: int, *, off: bool = True) -> None:
        self._others[number].is_cut = off

    def end(self, process: subprocess.Popen[str]) -> int:
        """Let the program end. How many steps it has done."""
        output, _ = process.communicate(timeout=60)
        match = re.search(r"(\d+) steps", output)
        assert match, self.errors()
        return int(match[1])

    def incarnations(self) -> list[int | None]:
        """Of the workers that are up."""
        status = json.loads(everstep("status", "--json", "--head", self.name).stdout)
        return [worker["incarnation"] if worker["up"] else None for part in status["slices"] for worker in part["workers"]]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in everstep("events", "--json", "--head", self.name).stdout.splitlines()]

    def close(self) -> None:
        self.up.send_signal(signal.SIGTERM)
        self.up.wait(20)
        self._errors.close()


@pytest.fixture
def network() -> Iterator[hosts.Network]:
    network = hosts.Network(3)
    yield network
    network.close()


@pytest.fixture
def cluster(network: hosts.Network) -> Iterator[Cluster]:
    cluster = Cluster(network)
    yield cluster
    cluster.close()


def test_a_slow_and_lossy_network_is_no_death(network: hosts.Network) -> None:
    """By IPv6."""
    network.delay, network.loss = 0.01, 0.01
    cluster = Cluster(network, ipv6=True)
    program = cluster.program()
    # A partition that is over before anybody is taken for dead.
    cluster.cut(1)
    time.sleep(HEARTBEAT_TIMEOUT / 4)  # it has to last a while to be one
    cluster.cut(1, off=False)
    assert cluster.end(program) >= 0
    assert [event for event in cluster.events() if event["kind"] in ("lost", "fenced")] == []
    cluster.close()


def test_a_host_that_is_cut_off(cluster: Cluster) -> None:
    """It is declared dead in time, and its worker ends itself before that; the others go on; once healed the next one takes its place."""
    program = cluster.program()
    cut = time.monotonic()
    cluster.cut(1)
    failure = cluster.line(program)
    declared = time.monotonic() - cut
    assert re.search(r"DATA_LOSS: worker s1w0 \(slice 1, incarnation 1, pid \d+\) is lost: no heartbeat for \d\.\d s", failure)
    assert declared < 2 * HEARTBEAT_TIMEOUT
    assert cluster.line(program) == "going on"
    # Still cut off: nobody could have told it.
    assert cluster.workers[1].wait(2 * HEARTBEAT_TIMEOUT) == 1
    cluster.cut(1, off=False)
    cluster.join(1)
    assert cluster.line(program) == "complete"
    assert cluster.incarnations() == [1, 2]
    assert cluster.end(program) > 0


def test_a_host_that_vanishes_and_comes_back_at_once(cluster: Cluster) -> None:
    """Its connections are half open at the head: no word of their end has come. A successor is refused until the head knows."""
    program = cluster.program()
    cluster.cut(1)
    cluster.workers[1].kill()
    cluster.workers[1].wait()
    cluster.cut(1, off=False)
    successor = cluster.join(1)
    assert re.search(r"is lost: (no heartbeat for|connection closed)", cluster.line(program))
    assert cluster.line(program) == "going on"
    wait_for(lambda: successor.poll() is not None or cluster.incarnations() == [1, 2], seconds=30)
    if successor.poll() is not None:  # it came too early
        assert "worker s1w0 is already there (incarnation 1)" in cluster.errors()
        cluster.join(1)
    assert cluster.line(program) == "complete"
    assert cluster.incarnations() == [1, 2]
    assert cluster.end(program) > 0
