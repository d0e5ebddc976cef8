"""Real `everstep` processes, and what tests need to look after them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

import psutil

from everstep.cli import rundirectory

T = TypeVar("T")

SESSION_MARK = "EVERSTEP_TEST_SESSION"  # environment variable of everything a test session starts, directly or not


def wait_for(look: Callable[[], T], until: Callable[[T], bool] = bool, seconds: float = 10.0) -> T:
    """Call `look` again and again until its result will do or the time is over; the last result."""
    deadline = time.monotonic() + seconds
    while not until(result := look()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return result


def living() -> dict[int, str]:
    """The processes that this test session has started and that still are: pid and command line."""
    found = {}
    for process in psutil.process_iter():
        try:
            if process.environ().get(SESSION_MARK) == os.environ[SESSION_MARK] and process.status() != psutil.STATUS_ZOMBIE:
                found[process.pid] = " ".join(process.cmdline())
        except psutil.Error:
            continue
    found.pop(os.getpid(), None)
    return found


def is_alive(pid: int) -> bool:
    """Whether it runs, or could again."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def everstep(*arguments: str, seconds: float = 60, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `everstep ARGUMENTS` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "everstep", *arguments],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | environment,
        check=False,
    )


class Running:
    """An `everstep run` or `everstep up` in the background, in a session of its own, with its head and workers."""

    def __init__(self, command: str, *arguments: str, head: str | None = None) -> None:
        """head: the name of a running one that the command is to talk to."""
        self.name = uuid.uuid4().hex[:8]
        which = ("--head", head) if head else ("--name", self.name)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "everstep", command, *which, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
            start_new_session=True,
        )

    @property
    def directory(self) -> pathlib.Path:
        return rundirectory.root() / self.name

    @property
    def shared_directory(self) -> pathlib.Path:
        return pathlib.Path((self.directory / "shared").read_text())

    def line(self) -> str:
        """The next line of standard output, without its end."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def head(self) -> int:
        (head,) = (child.pid for child in psutil.Process(self.process.pid).children() if "--lifeline" in child.cmdline())
        return head

    def program(self) -> int:
        (program,) = (child.pid for child in psutil.Process(self.process.pid).children() if "--lifeline" not in child.cmdline())
        return program

    def workers(self) -> list[int]:
        """Pids in the order of their start."""
        return sorted(child.pid for child in psutil.Process(self.head()).children())

    def finish(self, text: str | None = None, seconds: float = 30) -> tuple[int, str, str]:
        """Send it text and the end of its input, and wait for its end: exit code, rest of standard output, standard error."""
        output, errors = self.process.communicate(text, timeout=seconds)
        return self.process.returncode, output, errors

    def close(self) -> None:
        """End it if it still runs."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.communicate(timeout=30)
