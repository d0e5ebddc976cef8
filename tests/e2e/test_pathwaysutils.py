"""pathwaysutils as it comes from PyPI: programs that use it go on, in the same process, when workers die."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import os
import pathlib
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from processes import Running, wait_for

from everstep.control import client
from everstep.wire.errors import Code, Failure

_PROGRAMS = pathlib.Path(__file__).parent / "elastic"
_STEPS = 12
_PERIOD = 3
_RETRIES = 8  # what fails for ever should not last for ever
_RANDOM_FAULTS = 3

Record = dict[str, Any]


@dataclasses.dataclass
class Fault:
    """A worker dies when the program tells, after the fault before, that it is at a point (step None: of any step); or `seconds` later."""

    point: str
    step: int | None
    worker: str
    seconds: float = 0.0

    def fits(self, record: Record) -> bool:
        return record["point"] == self.point and self.step in (None, record.get("step"))


class Program:
    """A program of elastic/ on two slices of one worker with two devices. All that it tells is kept in `records`."""

    def __init__(self, name: str, *arguments: str, options: Iterable[str] = ()) -> None:
        command = (sys.executable, str(_PROGRAMS / f"{name}.py"), *arguments)
        self.records: list[Record] = []
        self._running = Running("run", "--slices", "2", "--devices-per-worker", "2", *options, "--", *command)

    def read(self) -> Record | None:
        """What it tells next; it waits. None when it has ended."""
        line = self._running.line()
        if not line:
            return None
        self.records.append(json.loads(line))
        return self.records[-1]

    def go_on(self) -> None:
        assert self._running.process.stdin is not None
        self._running.process.stdin.write("\n")
        self._running.process.stdin.flush()

    def send(self, worker: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a worker, as soon as there is a process."""

        def sent() -> bool:
            try:
                client.kill(f"unix:{self._running.directory / 'head.sock'}", worker, number)
            except Failure as failure:
                if failure.code is Code.FAILED_PRECONDITION:  # it is being replaced
                    return False
                raise
            return True

        assert wait_for(sent)

    def finish(self) -> str:
        """It must have ended well. What was written to standard error."""
        code, output, errors = self._running.finish()
        assert (code, output) == (0, ""), errors
        return errors

    def close(self) -> None:
        self._running.close()


@pytest.fixture(scope="module")
def start(nothing_left_behind: None) -> Iterator[Callable[..., Program]]:
    """Start a program: `start("trainer", ARGUMENTS..., options=OPTIONS OF EVERSTEP RUN)`."""
    started: list[Program] = []

    def start(name: str, *arguments: str, options: Iterable[str] = ()) -> Program:
        started.append(Program(name, *arguments, options=options))
        return started[-1]

    yield start
    for program in started:
        program.close()


@pytest.fixture(scope="module")
def train(start: Callable[..., Program], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Record]]:
    """Let the trainer train to the end, with workers dying on the way: `train(FAULTS, spares=N, retry=..., options=...)`; what it told."""

    def train(faults: Sequence[Fault] = (), spares: int = 1, **plan: Any) -> list[Record]:
        directory = tmp_path_factory.mktemp("training")
        plan["options"] = {"poll_interval": 0.2} | plan["options"]
        plan |= {"steps": _STEPS, "period": _PERIOD}
        program = start("trainer", str(directory), json.dumps(plan), options=("--spares", str(spares), "--max-restarts", "20"))
        pending = collections.deque(faults)
        timers: list[threading.Timer] = []
        try:
            while record := program.read():
                if pending and pending[0].fits(record):
                    fault = pending.popleft()
                    if fault.seconds:
                        timers.append(threading.Timer(fault.seconds, program.send, [fault.worker]))
                        timers[-1].start()
                    else:
                        program.send(fault.worker)
                program.go_on()
            errors = program.finish().splitlines()
        except BaseException:
            print((directory / "log").read_text()[-8000:])
            raise
        finally:
            for timer in timers:
                timer.join()
        assert not pending
        losses = len([line for line in errors if line.startswith("everstep: worker ") and " is lost: " in line])
        assert losses == len(faults) if not timers else 1 <= losses <= len(faults)  # a successor may be killed before it is one
        return program.records

    return train


@pytest.fixture(scope="module")
def undisturbed(train: Callable[..., list[Record]]) -> list[Record]:
    records = train(retry="elastic_retry", options={})
    assert [record["step"] for record in records if record["point"] == "done"] == list(range(_STEPS))
    return records


def _losses(records: list[Record]) -> dict[int, str]:
    """By step. A step that was done twice must have come to the same."""
    losses: dict[int, str] = {}
    for record in records:
        if record["point"] == "done":
            assert losses.setdefault(record["step"], record["loss"]) == record["loss"]
    return losses


def _check_course(records: list[Record]) -> list[list[Record]]:
    """One process; each attempt goes on after the last checkpoint that was kept, and leaves out no step. The attempts."""
    assert len({record["pid"] for record in records}) == 1
    assert records[-1]["point"] == "end"
    attempts = [list(group) for _, group in itertools.groupby(records, key=lambda record: record["attempt"])]
    saves: set[int] = set()  # that were begun
    newest = -1  # the last step that was done in attempts before
    for attempt in attempts:
        begin = attempt[0]
        assert begin["point"] == "start"
        first = 0 if begin["latest"] is None else begin["latest"] + 1
        assert begin["latest"] is None or begin["latest"] in saves
        assert first <= newest + 1
        done = [record["step"] for record in attempt if record["point"] == "done"]
        assert done == list(range(first, first + len(done)))
        newest = done[-1] if done else newest
        saves |= {record["step"] for record in attempt if record["point"] == "save"}
    assert newest == _STEPS - 1
    return attempts


def test_pause_and_resume(train: Callable[..., list[Record]], undisturbed: list[Record]) -> None:
    faults = [Fault("step", 2, "s1w0"), Fault("save", 3, "s0w0"), Fault("saved", 6, "s1w0"), Fault("restore", None, "s0w0")]
    # No spare: each successor comes so late that what the program does next is done to the dead.
    records = train(faults, spares=0, retry="elastic_retry", options={"minimum_slice_count": None, "max_retries": _RETRIES})
    assert len(_check_course(records)) == 1 + len(faults)
    assert _losses(records) == _losses(undisturbed)
    assert records[-1]["state"] == undisturbed[-1]["state"]


def test_pause_and_resume_at_random(train: Callable[..., list[Record]], undisturbed: list[Record]) -> None:
    seed = int(os.environ.get("EVERSTEP_TEST_SEED") or random.randrange(1_000_000))
    print(f"repeat it with EVERSTEP_TEST_SEED={seed}")
    dice = random.Random(seed)
    steps = sorted(dice.sample(range(1, _STEPS - 2), _RANDOM_FAULTS))
    faults = [Fault("step", step, dice.choice(["s0w0", "s1w0"]), dice.uniform(0.001, 0.5)) for step in steps]
    records = train(faults, retry="pause_resume", options={"max_retries": _RETRIES, "timeout": 60})
    _check_course(records)
    assert _losses(records) == _losses(undisturbed)
    assert records[-1]["state"] == undisturbed[-1]["state"]


@pytest.mark.parametrize("victim", [0, 1])
def test_replica_resize(victim: int, train: Callable[..., list[Record]], undisturbed: list[Record]) -> None:
    """It goes on with the slice that is left, at once, and takes the other one in again when that is back."""
    options = {"minimum_slice_count": 1, "max_retries": _RETRIES} if victim else {"max_resizes": _RETRIES}
    retry = "elastic_retry" if victim else "replica_resize"
    records = train([Fault("step", 5, f"s{victim}w0")], spares=0, retry=retry, options=options, grow_at=9)
    attempts = _check_course(records)
    assert [attempt[0]["slices"] for attempt in attempts] == [[0, 1], [1 - victim], [0, 1]]
    assert [attempt[0]["latest"] for attempt in attempts[:2]] == [None, 3]
    assert all(any(record["point"] == "done" for record in attempt) for attempt in attempts)
    expected = _losses(undisturbed)
    for record in records:
        if record["point"] == "done":  # on one slice sums are made in another order
            assert float.fromhex(record["loss"]) == pytest.approx(float.fromhex(expected[record["step"]]), rel=1e-5)


def test_health(start: Callable[..., Program]) -> None:
    """Checks on a slice that has stopped end when that is certain, and others see it come back. Everything on it can be deleted."""
    program = start("health", options=("--heartbeat-timeout", "2"))
    told = {}
    while record := program.read():
        told[record["point"]] = record
        if record["point"] == "up":
            program.send("s1w0", signal.SIGSTOP)
        elif record["point"] == "holding":
            program.send("s1w0")
        program.go_on()
    program.finish()
    assert told["up"]["active"] == [0, 1]
    assert told["up"]["ids"] == [[0, 1], [2, 3]]
    assert told["stopped"]["active"] == [0]
    assert told["stopped"]["half"] == 4
    assert 0.5 < told["stopped"]["seconds"] < 30
    assert told["noticed"]["available"] == [1]
    assert (told["back"]["active"], told["back"]["available"]) == ([0, 1], [])
    assert "DATA_LOSS: worker s1w0 (slice 1, incarnation 2" in told["end"]["error"]
    assert told["end"]["is_known"]
    assert told["end"]["total"] == 28.0
