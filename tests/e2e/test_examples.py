"""The examples run on Everstep as they stand, and learn."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from e2e.clusters import plain, run
from e2e.conftest import GetCluster

_EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
_SMALL = ("--layers", "2", "--width", "32", "--heads", "2", "--context", "32", "--batch", "8", "--steps", "40")


def _losses(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^step +\d+  loss ([\d.]+) +\d+ tokens/s$", output, re.MULTILINE)]


def test_gpt(cluster: GetCluster) -> None:
    """On two slices: a line for each step, a loss that falls as on plain JAX, and a sample at the end."""
    program = str(_EXAMPLES / "gpt.py")
    output = cluster(2, 1, 1).run(program, *_SMALL).stdout
    losses = _losses(output)
    assert len(losses) == 40
    assert losses[-1] < losses[0] - 1.0
    assert "2 devices on cpu" in output
    assert "A sample:\ndef " in output
    assert losses == pytest.approx(_losses(run(plain(2), program, *_SMALL).stdout), rel=0.01)


def test_elastic_demo(tmp_path: pathlib.Path) -> None:
    """It kills two workers, one of them while a checkpoint is written, and no step is lost."""
    model = ("model.width=32", "model.layers=1", "model.heads=2", "model.kv_heads=1", "model.context=16")
    command = [sys.executable, os.fspath(_EXAMPLES / "elastic_demo.py"), "--directory", os.fspath(tmp_path / "demo"), *model]
    result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert result.returncode == 0, result.stderr
    assert "while a checkpoint is being written at step" in result.stdout
    assert "2 workers killed, 2 losses survived, 0 steps lost" in result.stdout
    assert "Restarting instead: " in result.stdout
    assert (tmp_path / "demo" / "demo.png").read_bytes().startswith(b"\x89PNG")
    lines = [json.loads(line) for line in (tmp_path / "demo" / "metrics.jsonl").read_text().splitlines()]
    slices = [line["slices"] for line in lines if "loss" in line]
    assert [now for before, now in zip([0, *slices], slices, strict=False) if now != before] == [3, 2, 3, 2, 3]
