"""everstep.elastic on a head: slices are told by events, and a loop goes on when a worker dies."""

from __future__ import annotations

import pytest
from e2e.faults import run

from everstep.worker.faults import Fault

_THREE = ("--slices", "3")


def test_pause_and_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, _ = run(monkeypatch, [Fault("s1w0", "execute", 5)], _THREE, "elastic_loop.py", "pause", "10")
    assert lines == ["slices 0 1 2", "slices 0 1 2", "SliceLostError s1w0", "done"]


def test_replica_resize(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, _ = run(monkeypatch, [Fault("s1w0", "execute", 5)], _THREE, "elastic_loop.py", "resize", "10")
    assert lines == ["slices 0 1 2", "slices 0 2", "SliceLostError s1w0", "slices 0 1 2", "SlicesChanged", "done"]


def test_a_spare_comes_before_anybody_has_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, _ = run(monkeypatch, [Fault("s0w0", "execute", 5)], (*_THREE, "--spares", "1"), "elastic_loop.py", "pause", "10")
    assert lines == ["slices 0 1 2", "slices 0 1 2", "SliceLostError s0w0", "done"]


def test_two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = [Fault("s0w0", "execute", 5), Fault("s2w0", "execute", 5)]
    lines, _ = run(monkeypatch, faults, _THREE, "elastic_loop.py", "pause", "10")
    assert lines[0] == "slices 0 1 2"
    assert lines[-1] == "done"
