"""What a benchmark compares: the same program on Everstep, on plain JAX, on plain multi-process JAX. All live at once and take turns.

A benchmark file is both: started by hand it is the one that compares, and with `--side` the program that is measured, which then calls
`serve` with its measurements: functions that return seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

SAME_PASSES = "--xla_disable_hlo_passes=cpu-all-reduce-combiner"  # what Everstep's workers leave out

_ANSWER = "seconds: "

Measurement = Callable[[], Sequence[float]]


class Side:
    """Processes that run a benchmark file's program; one call at a time, on all of them."""

    def __init__(self, name: str, commands: Sequence[Sequence[str]], environments: Sequence[Mapping[str, str]]) -> None:
        self.name = name
        self._processes = [
            subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for command, environment in zip(commands, environments, strict=True)
        ]

    def __enter__(self) -> Side:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self._processes:  # all, before waiting for one: they end together
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        for process in self._processes:
            process.wait()
            assert process.stdout is not None
            process.stdout.close()

    def measure(self, what: str) -> list[float]:
        """Seconds, as the measurement of that name returned them (in the first process)."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(what + "\n")
            process.stdin.flush()
        answers = [self._answer(process) for process in self._processes]
        return answers[0]

    def _answer(self, process: subprocess.Popen[str]) -> list[float]:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(_ANSWER):  # libraries print as well
                return list(json.loads(line.removeprefix(_ANSWER)))
        raise RuntimeError(f"{self.name}: the program has ended while it was measured")


def serve(measurements: Mapping[str, Measurement]) -> None:
    """The program's side: run the measurements that are asked for, until there are no more."""
    for line in sys.stdin:
        print(_ANSWER + json.dumps(list(measurements[line.strip()]())), flush=True)


def everstep(file: str, *, workers: int, devices: int) -> Side:
    """One slice of `workers` with `devices` each."""
    command = [sys.executable, "-m", "everstep", "run", "--workers-per-slice", str(workers), "--devices-per-worker", str(devices), "--"]
    return Side(f"everstep {workers}x{devices}", [[*command, sys.executable, file, "--side"]], [{}])


def plain(file: str, *, devices: int, flags: str = "", name: str = "plain") -> Side:
    """In-process CPU JAX."""
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} {flags}"}
    return Side(f"{name} 1x{devices}", [[sys.executable, file, "--side"]], [environment])


def multi_process(file: str, *, processes: int, devices: int, flags: str = "", name: str = "plain") -> Side:
    """Plain JAX in several processes that know of each other: jax.distributed, gloo."""
    return Side(
        f"{name} {processes}x{devices}",
        [[sys.executable, file, "--side"]] * processes,
        environments(processes=processes, devices=devices, flags=flags),
    )


def environments(*, processes: int, devices: int, flags: str = "") -> list[dict[str, str]]:
    """What each of several processes of plain JAX must have in its environment for `join_others`."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    return [
        {
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} {flags}",
            "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
            "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
            "JAX_NUM_PROCESSES": str(processes),
            "JAX_PROCESS_ID": str(i),
        }
        for i in range(processes)
    ]


def join_others() -> None:
    """In the program, before it uses JAX: become one of several processes, if `multi_process` has started it."""
    if "JAX_NUM_PROCESSES" in os.environ:
        import jax

        jax.distributed.initialize(
            os.environ["JAX_COORDINATOR_ADDRESS"], int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])
        )
