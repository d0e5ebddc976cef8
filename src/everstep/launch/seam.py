"""The seam between the head and whatever starts worker processes.

`local.py` starts them on this machine, `ray.py` on a Ray cluster. An implementation keeps four promises:

- `start` returns as soon as the process (Ray: the actor, Kubernetes: the pod) exists; it does not wait until the worker has joined.
- `wait` returns the moment the end is known, with the exit code or signal: the head tells it as the cause of death.
- `kill` is final. After it has returned, no instruction of that incarnation runs any more. A node
  that doesn't answer is not gone. A successor is started only then.
- Who joins is decided by the token in the specification, never by the environment or by what the launcher's own bookkeeping believes.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Mapping
from typing import Protocol

# For workers, unless the user has set it: fresh memory in huge pages (glibc 2.35 and later). Large arrays come and go with every step;
# clearing them page by page took up to half of the time of copies, and a tenth of a training step.
ALLOCATOR: Mapping[str, str] = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One incarnation of one worker, as it is to be started.

    head: address of the channel, "unix:/path" or "host:port". token: proves to the head that the worker belongs to this run.
    slice, worker: which slice, and the index within it. devices: how many devices it owns.
    shared_directory: for host buffers, None if it doesn't share a filesystem with the head. spare: it has no place yet.
    """

    name: str
    slice: int
    worker: int
    incarnation: int
    devices: int
    head: str
    token: str = dataclasses.field(repr=False)
    shared_directory: str | None = None
    spare: bool = False
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: with an exit code, or by a signal (then the code is None), or as the launcher says where neither is known."""

    code: int | None
    signal: int | None = None
    cause: str = ""

    @staticmethod
    def of(returncode: int) -> Exit:
        """From a return code as `subprocess` gives it: negative for a signal."""
        return Exit(None, -returncode) if returncode < 0 else Exit(returncode)

    def __str__(self) -> str:
        if self.cause:
            return self.cause
        if self.signal is None:
            return f"exit code {self.code}"
        try:
            return f"signal {self.signal} ({signal.Signals(self.signal).name})"
        except ValueError:
            return f"signal {self.signal}"


class Process(Protocol):
    """A started worker."""

    @property
    def spec(self) -> WorkerSpec: ...

    @property
    def pid(self) -> int:
        """Process id on its host; 0 if the launcher can't know it."""

    async def started(self) -> None:
        """Returns when it runs, or has ended: where there is no room for it, it may have to wait."""

    async def wait(self) -> Exit:
        """Returns when the process has ended. May be awaited by several."""

    async def kill(self) -> Exit:
        """End it now, whatever it does, and return when it has ended."""

    def signal(self, number: int) -> bool:
        """Send it a signal. False if it has ended. A launcher that can only kill does that for SIGKILL and raises ValueError for others."""

    def last_words(self) -> str:
        """The end of what it wrote to its standard error, for a message to people; "" if there is nothing."""


class Launcher(Protocol):
    """Starts workers."""

    async def start(self, spec: WorkerSpec) -> Process:
        """Raises OSError if the process can't be started."""

    async def close(self) -> None:
        """Kill all that are left."""
