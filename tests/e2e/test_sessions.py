"""Several programs on one head: none notices the others, and what one leaves behind is freed."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e.clusters import Cluster
from e2e.conftest import GetCluster
from processes import wait_for

_MEGABYTE = 1 << 20

# Holds 8 MB over all devices. Each line of input adds 10; the answer is the first element.
_STEADY = """
import sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
x = jax.device_put(np.zeros(2 << 20, np.float32), NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i")))
f = jax.jit(lambda x: x + jax.numpy.sign(1 + abs(x).max()), donate_argnums=0)
print("ready", len(jax.devices()), flush=True)
for line in sys.stdin:
    for _ in range(10):
        x = f(x)
    print(float(x[0]), flush=True)
"""

# Computes and allocates for ever.
_RESTLESS = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
sharding = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
x = jax.device_put(np.ones((8, 1 << 18), np.float32), sharding)
f = jax.jit(lambda x: x + x.mean())
held = []
for step in range(1 << 30):
    x = f(x)
    held = [*held[-3:], jax.device_put(np.full(1 << 20, step, np.float32), sharding)]
    if step % 8 == 0:
        x.block_until_ready()
    if step == 16:
        print("ready", flush=True)
"""

# Is called back by a program on every device, and never answers.
_SILENT = """
import threading
import jax, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
def never(x):
    print("ready", flush=True)
    threading.Event().wait()
def call(x):
    return jax.pure_callback(never, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
f = jax.shard_map(call, mesh=Mesh(np.array(jax.devices()), ("i",)), in_specs=P("i"), out_specs=P("i"))
jax.jit(f)(np.ones(len(jax.devices()), np.float32)).block_until_ready()
"""

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture(params=[(1, 1, 4), (1, 2, 2)], ids=["1x1x4", "1x2x2"])
def shared(request: pytest.FixtureRequest, cluster: GetCluster) -> Cluster:
    return cluster(*request.param)


@pytest.fixture
def start(shared: Cluster) -> Iterator[Start]:
    """Start a program on the cluster and wait for its first line."""
    programs: list[subprocess.Popen[str]] = []

    def start(text: str) -> subprocess.Popen[str]:
        programs.append(shared.start("-c", text))
        assert _line(programs[-1]).startswith("ready"), programs[-1].communicate()[1]
        return programs[-1]

    yield start
    for program in programs:
        program.kill()
        program.communicate()


def _line(program: subprocess.Popen[str]) -> str:
    assert program.stdout is not None
    return program.stdout.readline().rstrip()


def _go_on(program: subprocess.Popen[str]) -> float:
    assert program.stdin is not None
    program.stdin.write("\n")
    program.stdin.flush()
    return float(_line(program))


def _held(cluster: Cluster) -> tuple[int, int, float]:
    """Sessions, bytes that the head knows of, bytes that the workers have told of with their last heartbeat (as megabytes)."""
    status: dict[str, Any] = cluster.status()
    on_workers = sum(worker["bytes"] for part in status["slices"] for worker in part["workers"])
    return len(status["sessions"]), status["bytes"] // _MEGABYTE, on_workers // _MEGABYTE


@pytest.mark.parametrize("other", [_RESTLESS, _SILENT], ids=["computing", "in a callback"])
def test_a_killed_program_leaves_nothing_and_disturbs_nobody(shared: Cluster, start: Start, other: str) -> None:
    steady = start(_STEADY)
    assert _go_on(steady) == 10
    alone = (1, 8, 8)
    assert wait_for(lambda: _held(shared), until=lambda held: held == alone) == alone
    workers = shared.workers()
    dying = start(other)
    assert shared.status()["sessions"][-1]["session"] != shared.status()["sessions"][0]["session"]
    dying.send_signal(signal.SIGKILL)
    assert _go_on(steady) == 20
    dying.wait()
    assert wait_for(lambda: _held(shared), until=lambda held: held == alone) == alone
    assert _go_on(steady) == 30
    assert shared.workers() == workers


def test_two_programs_at_once(shared: Cluster, start: Start) -> None:
    """Both see all devices and compute on them, in turn and at the same time."""
    first, second = start(_STEADY), start(_STEADY)
    assert len(shared.status()["sessions"]) == 2
    assert [_go_on(first), _go_on(first), _go_on(second), _go_on(first), _go_on(second)] == [10, 20, 10, 30, 20]
    for program in (first, second):
        assert program.stdin is not None
        program.stdin.write("\n\n\n")
        program.stdin.flush()
    assert [[float(_line(program)) for _ in range(3)] for program in (first, second)] == [[40, 50, 60], [30, 40, 50]]


def test_a_program_that_ends_is_forgotten(shared: Cluster, start: Start) -> None:
    program = start(_STEADY)
    assert _held(shared)[:2] == (1, 8)
    _, errors = program.communicate(timeout=30)
    assert program.returncode == 0, errors
    assert wait_for(lambda: _held(shared), until=lambda held: held == (0, 0, 0)) == (0, 0, 0)
