"""Running heads with their workers that several tests share, and plain CPU JAX to compare with."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from typing import Any

from processes import Running, everstep

# The program that `everstep run` runs: it tells its environment and stays until its input ends.
_HOLD = "import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"


@dataclasses.dataclass(frozen=True)
class Layout:
    """How devices are spread over workers."""

    slices: int
    workers_per_slice: int
    devices_per_worker: int

    @property
    def devices(self) -> int:
        return self.slices * self.workers_per_slice * self.devices_per_worker

    def __str__(self) -> str:
        return f"{self.slices}x{self.workers_per_slice}x{self.devices_per_worker}"


class Cluster:
    """A head with its workers. Programs run on it with its environment, any number of them, one after another or at once."""

    def __init__(self, layout: Layout) -> None:
        counts = (
            "--slices",
            layout.slices,
            "--workers-per-slice",
            layout.workers_per_slice,
            "--devices-per-worker",
            layout.devices_per_worker,
        )
        self.layout = layout
        self._running = Running("run", *map(str, counts), "--", sys.executable, "-c", _HOLD)
        line = self._running.line()
        assert line, f"the cluster {layout} did not start: {self._running.finish()}"
        self.environment: dict[str, str] = json.loads(line)

    def run(self, *arguments: str, timeout: float = 120, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `python ARGUMENTS` to its end, with its output. It must succeed."""
        return run(self.environment | environment, *arguments, timeout=timeout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run `python ARGUMENTS` in the background, with its input and output as pipes."""
        return subprocess.Popen(
            [sys.executable, *arguments],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def status(self) -> dict[str, Any]:
        """`everstep status --json`."""
        result = everstep("status", "--json", "--head", self._running.name)
        assert result.returncode == 0, result.stderr
        status: dict[str, Any] = json.loads(result.stdout)
        return status

    def workers(self) -> list[int]:
        """Their pids."""
        return [worker["pid"] for part in self.status()["slices"] for worker in part["workers"]]

    def close(self, said: str = "") -> None:
        """End it. It must still be well: head and workers end with code 0 and have said nothing else on the way."""
        code, _, errors = self._running.finish()
        assert (code, errors) == (0, said)


def plain(devices: int = 4) -> dict[str, str]:
    """The environment for plain CPU JAX with as many devices."""
    return os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}


def run(environment: dict[str, str], *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` to its end. Fails with its output if it exits otherwise than with 0, or not in time."""
    process = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        output, errors = process.communicate()
        raise AssertionError(f"not done after {timeout} s\n{output[-3000:]}\n{errors[-6000:]}") from None
    assert process.returncode == 0, f"exit code {process.returncode}\n{output[-3000:]}\n{errors[-6000:]}"
    return subprocess.CompletedProcess(arguments, process.returncode, output, errors)
