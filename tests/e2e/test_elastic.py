"""everstep.elastic on a head: slices are told by events, and a loop goes on when a worker dies."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re

import pytest
from e2e.conftest import Run
from processes import everstep

from everstep.worker.faults import VARIABLE, Fault

_THREE = ("--slices", "3")
_SMALL = ("model.width=32", "model.layers=1", "model.heads=2", "model.kv_heads=1", "model.context=16")


def test_pause_and_resume(run: Run) -> None:
    lines, _ = run([Fault("s1w0", "execute", 5)], _THREE, "elastic_loop.py", "pause", "10")
    assert lines == ["slices 0 1 2", "slices 0 1 2", "SliceLostError s1w0", "done"]


def test_replica_resize(run: Run) -> None:
    lines, _ = run([Fault("s1w0", "execute", 5)], _THREE, "elastic_loop.py", "resize", "10")
    assert lines == ["slices 0 1 2", "slices 0 2", "SliceLostError s1w0", "slices 0 1 2", "SlicesChanged", "done"]


def test_a_spare_comes_before_anybody_has_to_wait(run: Run) -> None:
    lines, _ = run([Fault("s0w0", "execute", 5)], (*_THREE, "--spares", "1"), "elastic_loop.py", "pause", "10")
    assert lines == ["slices 0 1 2", "slices 0 1 2", "SliceLostError s0w0", "done"]


def test_a_loss_that_is_announced(run: Run) -> None:
    faults = [Fault("s1w0", "execute", 5, how="TERM")]
    lines, errors = run(faults, (*_THREE, "--grace-period", "1"), "elastic_loop.py", "resize", "10")
    assert lines == ["slices 0 1 2", "leaving 1", "slices 0 2", "SliceLostError s1w0", "slices 0 1 2", "SlicesChanged", "done"]
    assert "goes within 1 s: SIGTERM" in errors
    assert re.search(r"is lost: signal 15 \(SIGTERM\) \(SIGTERM announced it 1\.\d s before\)", errors)


def test_two_at_once(run: Run) -> None:
    faults = [Fault("s0w0", "execute", 5), Fault("s2w0", "execute", 5)]
    lines, _ = run(faults, _THREE, "elastic_loop.py", "pause", "10")
    assert lines[0] == "slices 0 1 2"
    assert lines[-1] == "done"


@pytest.mark.parametrize("policy", ["pause", "resize"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault("s0w0", "execute", 9),
        Fault("s2w0", "execute", 9, after=True),
        Fault("s1w0", "execute", 10),
        Fault("s2w0", "execute", 10, after=True),
    ],
    ids=lambda fault: f"{fault.worker} {fault.nth}",
)
def test_snapshots_whichever_slice_dies_and_when(run: Run, fault: Fault, policy: str) -> None:
    lines, _ = run([fault], _THREE, "snapshot_loop.py", policy, "20")
    *restored, last = lines
    assert last == "done"
    sizes = [int(line.split()[1].rstrip(":")) for line in restored]
    assert sizes == ([3] if policy == "pause" else [2, 3])
    assert all(int(line.split()[2]) <= 3 for line in restored)  # those whose snapshots were under way


@pytest.mark.timeout(800)
def test_the_trainer_loses_workers_and_no_step(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """After a pause every loss is that of an undisturbed run, to the bit; after a resize nearly. No step is done twice or left out."""
    losses = {}
    dying = [Fault("s0w0", "execute", 24), Fault("s0w0", "get", 5, incarnation=2)]  # in a step; its successor when it is to be read
    for policy, faults in (("off", []), ("pause", dying), ("resize", dying)):
        monkeypatch.setenv(VARIABLE, json.dumps([dataclasses.asdict(fault) for fault in faults]))
        arguments = ("--slices", "2", "--steady", "0.1", "--directory", str(tmp_path / policy), "--elastic", policy)
        result = everstep("train", *arguments, *_SMALL, "train.steps=30", "train.checkpoint=5", "train.evaluate=0", seconds=250)
        assert result.returncode == 0, result.stderr
        lines = [json.loads(line) for line in (tmp_path / policy / "metrics.jsonl").read_text().splitlines()]
        losses[policy] = {line["step"]: line["loss"] for line in lines if "loss" in line}
        assert sorted(line["step"] for line in lines if "loss" in line) == list(range(1, 31))  # each once
        assert all(line["source"] == "snapshot" for line in lines if line.get("source") not in (None, "seed"))
        assert lines[-1]["steps_lost"] == 0
        if policy == "resize":  # the others may be done before the successor comes to its fault
            assert lines[-1]["losses"] in (1, 2)
        else:
            assert lines[-1]["losses"] == len(faults)
        split = lines[-1]["seconds_by_part"]
        assert (min(split["detecting"], split["restoring"], lines[-1]["downtime"]) > 0) is bool(faults)
        assert {line["slices"] for line in lines if "loss" in line} == ({1, 2} if policy == "resize" else {2})
    assert losses["pause"] == losses["off"]
    assert losses["resize"] == pytest.approx(losses["off"], rel=1e-3)


def test_the_trainer_is_told_that_a_slice_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """It saves a checkpoint at once, here by the workers, and the same command goes on there after the run has ended with the slice."""
    monkeypatch.setenv("ENABLE_PATHWAYS_PERSISTENCE", "1")
    arguments = ("--slices", "2", "--grace-period", "3", "--directory", str(tmp_path), "--elastic", "off", *_SMALL)
    arguments = (*arguments, "train.steps=400", "train.checkpoint=1000", "train.evaluate=0")
    monkeypatch.setenv(VARIABLE, json.dumps([dataclasses.asdict(Fault("s1w0", "execute", 9, how="TERM"))]))
    ended = everstep("train", *arguments, seconds=120)
    assert ended.returncode == 1
    assert "DATA_LOSS: worker s1w0" in ended.stderr
    (checkpoint,) = (tmp_path / "checkpoints").iterdir()
    assert list(checkpoint.rglob(".zarray"))
    assert not list(checkpoint.rglob("manifest.ocdbt"))
    monkeypatch.delenv(VARIABLE)
    assert everstep("train", *arguments, seconds=120).returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["slice"] for line in lines if "a checkpoint first" in line.get("note", "")] == [1]
    (again,) = [line for line in lines if line.get("source") == "checkpoint"]
    assert again["step"] == int(checkpoint.name) < 20
    assert [line["step"] for line in lines if "loss" in line][-1] == 400
