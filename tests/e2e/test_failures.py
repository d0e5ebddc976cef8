"""Workers die at every point there is: the program hears of it as DATA_LOSS, the dead one alone is replaced, and the program goes on."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

import pytest
from e2e.conftest import Options, Run
from e2e.faults import PROGRAMS
from processes import Running, everstep

from everstep.worker.faults import Fault

Start = Callable[..., Running]

_TWO = ("--slices", "2", "--devices-per-worker", "2")


def _told(lines: list[str], errors: str) -> None:
    """The program was told of a loss of devices and of nothing else, got through in the end, and the recovery was told in one block."""
    *failures, last = lines
    assert last == "done"
    assert failures
    for failure in failures:
        assert re.match(r"(?:\w+: )?DATA_LOSS: worker s\dw\d \(slice \d, incarnation \d+, pid \d+\) is lost: ", failure), failure
    assert re.search(r"elastic event 1: worker .*\n +detected +[\d:.]+\n +survivors free +\+", errors), errors


def _name(fault: Fault) -> str:
    return f"{fault.worker} {'after' if fault.after else 'before'} {fault.at} {fault.nth}"


@pytest.mark.parametrize(
    "fault",
    [
        Fault("s0w0", "execute", 2),
        Fault("s1w0", "execute", 2),
        Fault("s1w0", "execute", 3, after=True),
        Fault("s0w0", "compile"),
        Fault("s1w0", "load"),
        Fault("s0w0", "put", 2),
        Fault("s1w0", "put", after=True),
        Fault("s1w0", "get"),
        Fault("s0w0", "build", after=True),
        Fault("s1w0", "build"),
        Fault("s0w0", "serve"),
        Fault("s1w0", "serve"),
        Fault("s0w0", "assemble"),
        Fault("s1w0", "delete"),
        Fault("s1w0", "callback"),
    ],
    ids=_name,
)
def test_killed(run: Run, fault: Fault) -> None:
    _told(*run([fault], _TWO, "everything.py"))


def test_killed_in_a_slice_of_several_workers(run: Run) -> None:
    _told(*run([Fault("s1w1", "execute", 2)], ("--slices", "2", "--workers-per-slice", "2"), "everything.py"))


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([Fault("s0w0", "execute", 3), Fault("s1w0", "execute", 3)], id="both"),
        pytest.param([Fault("s1w0", "execute", 3), Fault("s0w0", "build_world", 2)], id="the survivor while it leaves"),
        pytest.param([Fault("s1w0", "execute", 3), Fault("s1w0", "welcome", incarnation=2)], id="the successor when it joins"),
        pytest.param([Fault("s1w0", "execute", 3), Fault("s1w0", "connect_world", incarnation=2)], id="the successor as it connects"),
        pytest.param([Fault("s1w0", "execute", 3), Fault("s0w0", "connect_world", 2)], id="the survivor as the successor connects"),
        pytest.param([Fault("s1w0", "execute", 3), Fault("s1w0", "load", incarnation=2)], id="the successor in its first load"),
        pytest.param([Fault("s1w0", "execute", 3), Fault("s0w0", "execute", 8)], id="another one soon after"),
    ],
)
def test_killed_one_after_another(run: Run, faults: list[Fault]) -> None:
    _told(*run(faults, _TWO, "everything.py"))


@pytest.mark.parametrize("at", ["welcome", "connect_world", "build_world"])
def test_killed_while_everything_starts(run: Run, at: str) -> None:
    """The program does not even notice."""
    lines, errors = run([Fault("s1w0", at), Fault("s0w0", "execute", 3)], _TWO, "everything.py")
    _told(lines, errors[errors.index("worker s0w0") :].replace("elastic event 2", "elastic event 1"))


def test_stopped(run: Run) -> None:
    """It says nothing and does not die: it is taken for dead, killed, and replaced."""
    lines, errors = run([Fault("s1w0", "execute", 3, how="STOP")], (*_TWO, "--heartbeat-timeout", "1"), "everything.py")
    _told(lines, errors)
    assert re.search(r"is lost: no heartbeat for 1\.\d s", lines[0])


def test_a_successor_that_hangs_before_it_joins(run: Run) -> None:
    faults = [Fault("s1w0", "execute", 3), Fault("s1w0", "start", how="STOP", incarnation=2)]
    lines, errors = run(faults, (*_TWO, "--start-timeout", "8"), "everything.py")
    _told(lines, errors)
    assert "worker s1w0 has not joined within 8 s of its start (--start-timeout): it is killed" in errors
    assert re.search(r"replaced .* incarnation 3", errors)


def test_hanging(run: Run) -> None:
    """Its heart beats, but it does not start what the others wait for."""
    lines, errors = run([Fault("s1w0", "execute", 3, how="HANG")], (*_TWO, "--progress-timeout", "3"), "everything.py")
    _told(lines, errors)
    assert re.search(r"worker s1w0 .* is lost: no progress for \d\.\d s: it has not started ", lines[0])


def test_a_spare_takes_the_place(run: Run) -> None:
    lines, errors = run([Fault("s1w0", "execute", 3)], (*_TWO, "--spares", "1"), "everything.py")
    _told(lines, errors)


@pytest.mark.parametrize("spares", [0, 1])
def test_going_on_without_a_pause_while_the_successor_comes(start: Start, launcher: Options, spares: int) -> None:
    """What runs on the survivors when the world grows ends in the old one; no step fails or is lost."""
    program = os.fspath(PROGRAMS / "grow.py")
    running = start("run", *launcher, "--slices", "3", "--spares", str(spares), "--", sys.executable, program)
    assert running.line() == "ready"
    assert everstep("kill", "2", "--head", running.name).returncode == 0
    code, output, errors = running.finish("go\n", seconds=120)
    assert code == 0, errors
    assert re.fullmatch(r"grown after \d+ steps\n", output)
    assert errors.count("is lost") == 2  # the message and the block
