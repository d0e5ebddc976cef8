"""Workers that are started by hand and share nothing with the head but the network."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import sys
from collections.abc import Callable

from processes import Running, everstep, wait_for

from everstep.cli import certificates
from everstep.wire.credentials import Credentials

Start = Callable[..., Running]

_PROGRAM = """
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
devices = jax.devices()
print(len(devices), sorted({device.slice_index for device in devices}))
sharding = NamedSharding(Mesh(np.array(devices), ("x",)), PartitionSpec("x"))
data = np.arange(1 << 20, dtype=np.float32).reshape(4, -1)  # too large for the channel
array = jax.device_put(data, sharding)
np.testing.assert_array_equal(np.asarray(jax.jit(lambda x: x * 2)(array)), data * 2)
moved = jax.device_put(array, devices[3])  # from worker to worker
np.testing.assert_array_equal(np.asarray(moved), data)
print(float(jax.jit(lambda x: (x > 0).sum())(array)))
"""


def incarnations(running: Running) -> list[int | None]:
    """Of the workers that are up."""
    status = json.loads(everstep("status", "--json", "--head", running.name).stdout)
    return [worker["incarnation"] if worker["up"] else None for part in status["slices"] for worker in part["workers"]]


def test_programs_run_on_workers_that_joined(start: Start) -> None:
    running = start("up", "--workers", "external", "--slices", "2", "--devices-per-worker", "2")
    assert running.process.stderr is not None
    assert "waiting for workers at 127.0.0.1:" in running.process.stderr.readline()
    commands = [shlex.split(running.process.stderr.readline()) for _ in range(2)]

    def join(command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    workers = [join(command) for command in commands]
    lines = [running.line() for _ in range(9)]
    assert "is up: 2 workers, 4 devices" in lines[0]
    exports = dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))

    def program() -> str:
        command = [sys.executable, "-c", _PROGRAM]
        return subprocess.run(command, env=os.environ | exports, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout

    assert program() == f"4 [0, 1]\n{float((1 << 20) - 1)}\n"

    # One that is dead is replaced by the same command.
    workers[1].kill()
    workers[1].wait()
    assert wait_for(lambda: incarnations(running), until=lambda found: found == [1, None]) == [1, None]
    workers[1] = join(commands[1])
    assert wait_for(lambda: incarnations(running), until=lambda found: found == [1, 2], seconds=30) == [1, 2]
    assert program() == f"4 [0, 1]\n{float((1 << 20) - 1)}\n"

    # One more takes whichever place is free, or waits for it.
    anywhere = [argument for argument in commands[0] if argument not in ("--slice", "0")]
    workers.append(join(anywhere))
    dead = workers.pop(0)
    dead.kill()
    dead.wait()
    assert wait_for(lambda: incarnations(running), until=lambda found: found == [2, 2], seconds=30) == [2, 2]
    assert program() == f"4 [0, 1]\n{float((1 << 20) - 1)}\n"

    running.process.terminate()
    assert running.finish()[0] == 0
    for worker in workers:
        assert worker.wait(10) == 0


def test_what_is_not_of_this_run_is_refused(start: Start, tmp_path: pathlib.Path) -> None:
    """Whoever has another run's certificate, or the right token and none; and a worker does not join another run's head."""
    running = start("up", "--join", "127.0.0.1:0")
    assert running.process.stderr is not None
    running.process.stderr.readline()
    command = shlex.split(running.process.stderr.readline())
    at = command.index("--token-file") + 1
    token = pathlib.Path(command[at]).read_text()
    _, stranger = certificates.make()
    refused = {
        f"{stranger}": "is not of the run that the token belongs to",
        f"{dataclasses.replace(stranger, token=Credentials.parse(token).token)}": "is not of the run that the token belongs to",
        f"{dataclasses.replace(Credentials.parse(token), token='guessed')}": "the token is not that of this run",
        Credentials.parse(token).token: "the whole line",
        "everstep1.nonsense": "these are no credentials of a run",
    }
    for number, (credentials, why) in enumerate(refused.items()):
        command[at] = str(tmp_path / f"token{number}")
        pathlib.Path(command[at]).write_text(credentials)
        result = everstep(*command[1:])
        assert result.returncode == 1
        assert why in result.stderr


def test_nobody_there(tmp_path: pathlib.Path) -> None:
    token = tmp_path / "token"
    token.write_text(str(certificates.make()[1]))
    result = everstep("worker", "--head", "127.0.0.1:9", "--slice", "0", "--token-file", str(token))
    assert result.returncode == 1
    assert "can't be reached" in result.stderr


def test_an_address_that_is_not_ours() -> None:
    result = everstep("up", "--join", "192.0.2.1:7777")
    assert result.returncode == 2
    assert "can't listen at" in result.stderr
    assert result.stderr.count("\n") == 1
