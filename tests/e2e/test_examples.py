"""The examples run on Everstep as they stand, and learn."""

from __future__ import annotations

import pathlib
import re

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
