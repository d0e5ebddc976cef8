"""`everstep kill`, `everstep events`, and what becomes of a worker that is killed."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest
from processes import Running, everstep, wait_for

from everstep.cli.kill import victim

Start = Callable[..., Running]

_HOLD = (sys.executable, "-c", "print('up', flush=True); input()")


@pytest.fixture(scope="module")
def running(nothing_left_behind: None) -> Iterator[Running]:
    """Two slices of two workers."""
    running = Running("run", "--slices", "2", "--workers-per-slice", "2", "--grace-period", "0.5", "--", *_HOLD)
    assert running.line() == "up"
    yield running
    running.close()


def pids(running: Running) -> dict[str, int | None]:
    status = json.loads(everstep("status", "--json", "--head", running.name).stdout)
    return {worker["name"]: worker["pid"] for part in status["slices"] for worker in part["workers"] if worker["state"] == "up"}


def events(running: Running) -> list[dict[str, object]]:
    return [json.loads(line) for line in everstep("events", "--json", "--head", running.name).stdout.splitlines()]


@pytest.mark.parametrize(
    ("text", "expected"), [("1", (1, None)), ("s1", (1, None)), ("s1w0", (1, 0)), ("s12w34", (12, 34))], ids=lambda value: str(value)
)
def test_victims(text: str, expected: tuple[int, int | None]) -> None:
    assert victim(text) == expected


@pytest.mark.parametrize(
    ("name", "signal", "count"), [("s0w1", "KILL", 1), ("1", "KILL", 2), ("s0w0", "TERM", 1)], ids=["worker", "slice", "told to go"]
)
def test_killed_and_replaced(running: Running, name: str, signal: str, count: int) -> None:
    before = wait_for(lambda: pids(running), until=lambda pids: len(pids) == 4)
    assert everstep("kill", name, "--signal", signal, "--head", running.name).returncode == 0
    changed = wait_for(lambda: {n for n, pid in pids(running).items() if pid != before[n]}, until=lambda c: len(c) == count, seconds=60)
    assert all(each.startswith(name if "s" in name else f"s{name}") for each in changed)
    assert len(changed) == count
    told = [(event["kind"], event["worker"]) for event in events(running)]
    for worker in changed:
        order = [kind for kind, who in told if who == worker]
        expected = ["killed", *(["leaving"] if signal == "TERM" else []), "lost", "restarting", "joined"]
        assert order[len(order) - order[::-1].index("killed") - 1 :][: len(expected)] == expected
    if signal == "TERM":
        last = next(event for event in reversed(events(running)) if event["kind"] == "lost")
        assert re.search(r"signal 15 \(SIGTERM\) \(SIGTERM announced it 0\.[5-9] s before\)", str(last["message"]))
    assert [event["number"] for event in events(running)] == list(range(1, len(told) + 1))


def test_stopped_and_continued(running: Running) -> None:
    """A stop that is shorter than the heartbeat timeout does no harm."""
    pid = wait_for(lambda: pids(running), until=lambda pids: len(pids) == 4)["s0w0"]
    assert everstep("kill", "s0w0", "--signal", "STOP", "--head", running.name).returncode == 0
    assert wait_for(lambda: psutil.Process(pid).status(), until=lambda status: status == psutil.STATUS_STOPPED) == psutil.STATUS_STOPPED
    assert everstep("kill", "s0w0", "--signal", "CONT", "--after", "0.1", "--head", running.name).returncode == 0
    assert wait_for(lambda: psutil.Process(pid).status(), until=lambda status: status != psutil.STATUS_STOPPED) != psutil.STATUS_STOPPED
    assert pids(running)["s0w0"] == pid


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("5",), "there is no slice 5: this run has slices 0 to 1"),
        (("s0w7",), "there is no worker s0w7: slice 0 has s0w0, s0w1"),
        (("everything",), "'everything' is neither a slice (1 or s1) nor a worker (s1w0)"),
        (("1", "--signal", "HUP"), "invalid choice: 'HUP'"),
        (("1", "--after", "soon"), "'soon' is not a number of seconds"),
        ((), "the following arguments are required: SLICE|WORKER"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_asked_for_wrongly(running: Running, arguments: tuple[str, ...], message: str) -> None:
    result = everstep("kill", *arguments, "--head", running.name)
    assert result.returncode == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_events_for_people(running: Running) -> None:
    lines = everstep("events", "--head", running.name).stdout.splitlines()
    assert any(line.endswith("slice 0 is up") for line in lines)


def test_events_as_they_come_end_with_the_head(start: Start) -> None:
    running = start("run", "--", *_HOLD)
    assert running.line() == "up"
    follow = start("events", "--follow", "--json", head=running.name)
    assert [json.loads(follow.line())["kind"] for _ in range(3)] == ["joined", "world", "slice up"]
    running.process.terminate()
    assert follow.finish()[0] == 0


def test_not_replaced(start: Start) -> None:
    running = start("run", "--no-replace", "--", *_HOLD)
    assert running.line() == "up"
    assert everstep("kill", "0", "--head", running.name).returncode == 0
    last = wait_for(lambda: events(running)[-1], until=lambda event: event["kind"] == "given up")
    assert last["message"] == "worker s0w0 is not replaced: replacing is switched off (--no-replace)"
    result = everstep("kill", "0", "--head", running.name)
    assert result.returncode == 1
    assert "worker s0w0 has no process of this head at the moment" in result.stderr
    running.process.send_signal(signal.SIGTERM)
    assert "elastic event 1: worker s0w0" in running.finish()[2]
