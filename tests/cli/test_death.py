"""Whoever is killed, nothing is left behind: no process, no socket, no directory, no shared memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from processes import Running, is_alive, wait_for

Start = Callable[..., Running]

_SECONDS = 10.0  # the promise is "a couple of seconds"; the machine may be busy


@pytest.fixture
def running(start: Start) -> Running:
    """Two workers, and a program that ends only by SIGKILL."""
    script = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\nwhile True: time.sleep(60)"
    running = start("run", "--slices", "2", "--", sys.executable, "-c", script)
    assert running.line() == "up"
    return running


class Remains:
    """What may be left of a run, written down while everything lives."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._processes = {running.head(): "head", running.program(): "program"} | dict.fromkeys(running.workers(), "worker")
        self._directories = (running.directory, running.shared_directory)

    def __call__(self) -> list[str]:
        return [
            *(what for pid, what in self._processes.items() if is_alive(pid)),
            *(str(path) for path in self._directories if path.exists()),
        ]


def check_nothing_remains(remains: Remains) -> None:
    assert wait_for(remains, until=lambda left: not left, seconds=_SECONDS) == []


@pytest.mark.parametrize("workers_stopped", [False, True], ids=["", "workers stopped"])
@pytest.mark.parametrize("victims", [("run",), ("head",), ("run", "head"), ("head", "run")], ids="+".join)
def test_after_sigkill(running: Running, victims: tuple[str, ...], workers_stopped: bool) -> None:
    remains = Remains(running)
    pids = {"run": running.process.pid, "head": running.head()}
    # When both are killed it is for a worker to notice.
    stopped = running.workers()[: 2 if len(victims) == 1 else 1] if workers_stopped else []
    for worker in stopped:
        os.kill(worker, signal.SIGSTOP)
    for victim in victims:
        os.kill(pids[victim], signal.SIGKILL)
    check_nothing_remains(remains)
    code, _, errors = running.finish()
    if victims == ("head",):
        assert code == 1
        assert "the head has died (signal 9 (SIGKILL))" in errors
    else:
        assert code == -signal.SIGKILL


def test_after_sigkill_while_one_who_cleans_up_is_stuck(running: Running) -> None:
    """A worker that is stopped at a bad moment holds the lock that says that a head lives."""
    remains = Remains(running)
    script = "import fcntl, os, signal, sys; fcntl.flock(open(sys.argv[2]+'/lock'), fcntl.LOCK_EX); os.kill(os.getpid(), signal.SIGSTOP)"
    stuck = subprocess.Popen([sys.executable, "-c", script, "--run-directory", str(running.directory), "--"])
    for worker in running.workers():
        os.kill(worker, signal.SIGSTOP)
    os.kill(running.head(), signal.SIGKILL)
    check_nothing_remains(remains)
    assert stuck.wait(_SECONDS) == -signal.SIGKILL


def test_after_the_program_is_killed(running: Running) -> None:
    remains = Remains(running)
    os.kill(running.program(), signal.SIGKILL)
    assert running.finish()[0] == 128 + signal.SIGKILL
    assert remains() == []  # at once: `run` ends last


def test_a_dead_worker_is_told_with_its_cause(start: Start) -> None:
    running = start("run", "--slices", "2", "--", sys.executable, "-c", "print('up', flush=True); input()")
    assert running.line() == "up"
    os.kill(running.workers()[0], signal.SIGKILL)
    assert running.process.stderr is not None
    message = running.process.stderr.readline()
    assert "worker s0w0 (slice 0, incarnation 1" in message
    assert "signal 9 (SIGKILL)" in message


def test_a_worker_that_cannot_start_ends_the_run_with_its_last_words(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")  # XLA ends the process for it
    running = start("run", "--", sys.executable, "-c", "print('never')")
    code, output, errors = running.finish()
    assert (code, output) == (1, "")
    assert "worker s0w0 has ended before everything was up" in errors
    assert "xla_no_such_flag" in errors
