"""Processes that have lost who should end them."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import signal
import sys

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None  # looked up here: not between fork and exec


def die_with_parent(parent: int) -> None:
    """On Linux, have the kernel kill this process when the thread of process `parent` that has started it ends."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it has died before this call
            os.kill(os.getpid(), signal.SIGKILL)


def kill_workers(run_directory: pathlib.Path) -> None:
    """Kill the workers of a head that is dead. They leave by themselves, but not if they are stopped or stuck. (Linux.)

    Those of another head that has taken over the directory's name meanwhile are left alone.
    """
    mark = f"\0--run-directory\0{run_directory}\0".encode()
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "cmdline").read_bytes() and not _has_its_head(entry):
                os.kill(int(entry.name), signal.SIGKILL)


def _has_its_head(worker: pathlib.Path) -> bool:
    """Whether a process (its directory in /proc) is the child of a head that lives."""
    parent = (worker / "stat").read_text().rpartition(")")[2].split()[1]  # proc(5): the state, then the parent's pid
    try:
        return b"\0everstep\0head\0" in pathlib.Path("/proc", parent, "cmdline").read_bytes()
    except OSError:
        return False
