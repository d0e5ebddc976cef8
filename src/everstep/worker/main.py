"""The worker process: owns the devices of one host and does what a head says."""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How a worker is started.

    head: "unix:/path" or "host:port". token: that of the run. name: "s<slice>w<worker>". devices: how many it has.
    incarnation: 0 lets the head count. spare: it has no place yet; slice, worker and incarnation come with one. If it was started by hand
    its name says where it wants to be: "s<slice>", or "" for anywhere.
    shared_directory: a directory that it shares with the head, None if they are on different machines.
    host: the address by which other workers reach this one; None: the one by which it reaches the head.
    farewell: called last, just before the process ends because the head says so or is gone.
    keep_combiner: leave XLA's pass on that combines all-reduces; with it the death of a worker may take others along. For benchmarks.
    """

    head: str
    token: str
    name: str
    slice: int
    worker: int
    incarnation: int = 0
    devices: int = 1
    spare: bool = False
    shared_directory: str | None = None
    host: str | None = None
    keep_combiner: bool = False
    farewell: Callable[[], None] = lambda: None


def run(options: Options) -> int:
    """Serve the head until it says stop or its connection ends; the process ends with that. Returns its exit status if it can't join."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the head that has started it ignores it, and that is inherited
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program; the head then stops its workers
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)  # kill -USR1: where its threads are, into its log
    prepare_environment()
    _raise_file_limit()
    from everstep.worker import service  # jax reads the environment when it is imported

    return service.serve(options)


def prepare_environment() -> None:
    """What this process's parent has set for a JAX of its own is not meant for the worker."""
    for name in list(os.environ):
        if name.startswith(("JAX_", "IFRT_PROXY_")):
            del os.environ[name]
    os.environ["JAX_PLATFORMS"] = "cpu"
    flags = os.environ.pop("XLA_FLAGS", "").split()
    os.environ["XLA_FLAGS"] = " ".join(flag for flag in flags if "xla_force_host_platform_device_count" not in flag)


def _raise_file_limit() -> None:
    """A world takes a socket for each pair of devices."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
