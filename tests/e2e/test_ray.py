"""What only a cluster can do: nodes that die, places that are missing, a driver that is killed. Runs with pytest --launcher ray."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest
from e2e.faults import PROGRAMS
from e2e.raycluster import RayCluster
from processes import Running, everstep, living, wait_for

Start = Callable[..., Running]

_TOKEN = "everstep1."  # every token begins so
_HOLD = (sys.executable, "-c", "print('up', flush=True); input()")
_EVERYTHING = (sys.executable, os.fspath(PROGRAMS / "everything.py"))


@pytest.fixture(scope="module")
def nodes(request: pytest.FixtureRequest, nothing_left_behind: None) -> Iterator[RayCluster]:
    """A cluster that tests may damage if they mend it: two nodes, with room for one worker each."""
    if request.config.getoption("launcher") != "ray":
        pytest.skip("needs Ray: make test-ray")
    cluster = RayCluster(nodes=2, cpus=2)
    yield cluster
    cluster.close()


def options(nodes: RayCluster) -> tuple[str, ...]:
    return ("--launcher", "ray", "--ray-address", nodes.address, "--resources", "CPU=2", "--slices", "2")


def events(running: Running) -> list[dict[str, Any]]:
    result = everstep("events", "--json", "--head", running.name)
    return [json.loads(line) for line in result.stdout.splitlines()]


def workers() -> list[int]:
    """Pids of worker processes, wherever they are."""
    return [pid for pid, line in living().items() if "everstep worker" in line]


def test_the_head_is_killed(start: Start, nodes: RayCluster) -> None:
    """Nothing of it is left on the cluster: not even a worker that is stopped and can't notice."""
    running = start("run", *options(nodes), "--", *_HOLD)
    assert running.line() == "up"
    stopped, _ = workers()
    os.kill(stopped, signal.SIGSTOP)
    os.kill(running.head(), signal.SIGKILL)
    assert running.finish()[0] == 1
    assert wait_for(workers, until=lambda left: not left, seconds=30) == []
    again = start("run", *options(nodes), "--", *_HOLD)  # there is room
    assert again.line() == "up"
    again.finish("\n")


def test_the_token_is_told_to_nobody_else(start: Start, nodes: RayCluster) -> None:
    """Neither on a command line, nor in an environment, nor in what Ray writes down."""
    running = start("run", *options(nodes), "--", *_HOLD)
    assert running.line() == "up"
    for pid in living():
        process = psutil.Process(pid)
        assert _TOKEN not in " ".join((*process.cmdline(), *process.environ().values()))
    running.finish("\n")
    session = pathlib.Path(tempfile.gettempdir(), "ray", "session_latest").resolve()
    written = [path for path in session.rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if _TOKEN.encode() in path.read_bytes()]


def test_a_node_is_to_go(start: Start, nodes: RayCluster) -> None:
    """Its worker is told, and nobody else's."""
    running = start("run", *options(nodes), "--grace-period", "1", "--", *_HOLD)
    assert running.line() == "up"
    nodes.drain(1)
    (leaving,) = wait_for(lambda: [event for event in events(running) if event["kind"] == "leaving"], seconds=30)
    (lost,) = wait_for(lambda: [event for event in events(running) if event["kind"] == "lost"], seconds=30)
    assert leaving["worker"] == lost["worker"]
    assert "SIGTERM announced it" in lost["message"]
    nodes.remove(1)
    nodes.add()
    assert wait_for(lambda: [event for event in events(running) if event["kind"] == "slice up"], until=lambda up: len(up) == 3, seconds=60)
    running.finish("\n")


def test_a_node_dies(start: Start, nodes: RayCluster) -> None:
    """Its worker is lost, waits for a place as long as there is none, and comes back on another node; the other one stays."""
    running = start("run", *options(nodes), "--devices-per-worker", "2", "--", *_EVERYTHING)
    assert wait_for(lambda: [event for event in events(running) if event["kind"] == "slice up"], until=lambda up: len(up) == 2, seconds=60)
    nodes.remove(2)
    (waiting,) = wait_for(lambda: [event for event in events(running) if event["kind"] == "waiting"], seconds=60)
    assert waiting["message"].endswith(" waits for a place: CPU=2; 0 of 2 are free")
    nodes.add()
    code, output, errors = running.finish(seconds=120)
    assert code == 0, errors
    *failures, last = output.splitlines()
    assert last == "done"
    assert all(f"worker {waiting['worker']} (slice {waiting['slice']}, incarnation 1, " in failure for failure in failures)
    assert waiting["message"] in errors
    assert "incarnation 2, world 3 of s0w0, s1w0" in errors
