"""A Ray cluster on this machine, in a process of its own, that tests can take nodes from."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

_PROGRAM = pathlib.Path(__file__).with_name("ray_nodes.py")


class RayCluster:
    """Nodes are numbered from 1 in the order in which they came."""

    def __init__(self, nodes: int, cpus: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, os.fspath(_PROGRAM), str(nodes), str(cpus)],
            env=os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_raylet_start_wait_time_s": "120"},  # seconds; on a loaded machine
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._line()
        assert self.address, "the Ray cluster did not start"

    def add(self) -> None:
        """One node more."""
        self._say("add")

    def remove(self, node: int) -> None:
        """A node is gone at once, with all that runs on it."""
        self._say(str(node))

    def drain(self, node: int) -> None:
        """Ray says that a node is to go, as before a preemption."""
        self._say(f"drain {node}")

    def close(self) -> None:
        self._process.communicate(timeout=60)

    def _say(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        assert self._line() == "done"

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
