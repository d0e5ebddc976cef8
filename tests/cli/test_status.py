"""`everstep status` and `everstep up`."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

import pytest
from processes import Running, everstep

from everstep.cli.status import describe

Start = Callable[..., Running]

WORKER = {
    "state": "up",
    "incarnation": 1,
    "pid": 11,
    "host": "here",
    "devices": [0, 1],
    "arrays": 3,
    "bytes": 96,
    "programs": 2,
}


def test_text() -> None:
    status = {
        "name": "x",
        "pid": 10,
        "target": "grpc://unix:/x",
        "slices": [
            {"slice": 0, "workers": [{"name": "s0w0"} | WORKER]},
            {"slice": 1, "workers": [{"name": "s1w0"} | WORKER | {"state": "lost", "pid": None, "devices": [2, 3]}]},
        ],
        "sessions": [{"session": 1, "label": "train.py", "arrays": 3, "bytes": 192, "programs": 2}],
    }
    assert describe(status).splitlines() == [
        "head x (pid 10) at grpc://unix:/x",
        "",
        "slice  name  state  incarnation  pid  host  devices  arrays  bytes  programs",
        "0      s0w0  up     1            11   here  0,1      3       96     2",
        "1      s1w0  lost   1            -    here  2,3      3       96     2",
        "",
        "session  label     arrays  bytes  programs",
        "1        train.py  3       192    2",
    ]


def test_the_only_head_is_found_and_of_several_one_is_chosen(start: Start) -> None:
    def program() -> tuple[str, ...]:
        return ("--", sys.executable, "-c", "print('up', flush=True); input()")

    first = start("run", "--slices", "2", "--workers-per-slice", "2", "--devices-per-worker", "3", *program())
    assert first.line() == "up"
    status = json.loads(everstep("status", "--json").stdout)
    assert status["name"] == first.name
    assert status["pid"] == first.head()
    workers = [worker for entry in status["slices"] for worker in entry["workers"]]
    assert [worker["name"] for worker in workers] == ["s0w0", "s0w1", "s1w0", "s1w1"]
    assert sorted(worker["pid"] for worker in workers) == first.workers()
    assert [worker["devices"] for worker in workers] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]

    second = start("run", *program())
    assert second.line() == "up"
    result = everstep("status")
    assert result.returncode == 2
    assert "several heads are running" in result.stderr
    assert json.loads(everstep("status", "--json", "--head", second.name).stdout)["name"] == second.name


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_prints_what_to_paste_and_ends_quietly(start: Start, number: signal.Signals) -> None:
    running = start("up", "--devices-per-worker", "2")
    assert running.line() == f"everstep: head {running.name} is up: 1 workers, 2 devices. Ctrl-C ends it."
    lines = [running.line() for _ in range(5)]
    assert f"export JAX_BACKEND_TARGET=grpc://unix:{running.directory}/head.sock" in lines
    assert "export JAX_PLATFORMS=proxy,cpu" in lines
    running.process.send_signal(number)
    assert running.finish() == (0, "", "")
    assert not running.directory.exists()


def test_up_tells_when_its_head_dies(start: Start) -> None:
    running = start("up")
    running.line()
    os.kill(running.head(), signal.SIGKILL)
    code, _, errors = running.finish()
    assert code == 1
    assert "the head has died (signal 9 (SIGKILL))" in errors
