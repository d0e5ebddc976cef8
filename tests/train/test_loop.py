"""The trainer on plain JAX devices: exact on whatever mesh, exact after a restart."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from processes import wait_for

from everstep.train.step import Rounds

SMALL = ["model.width=32", "model.layers=1", "model.heads=2", "model.kv_heads=1", "model.context=16", "train.log=1"]


def command(directory: pathlib.Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "everstep", "train", "--directory", str(directory), *SMALL, *arguments]


def environment(devices: int) -> dict[str, str]:
    return os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}"}


def train(directory: pathlib.Path, *arguments: str, devices: int = 4) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(directory, *arguments), env=environment(devices), capture_output=True, text=True, timeout=200, check=False
    )


def lines(directory: pathlib.Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def losses(directory: pathlib.Path) -> dict[int, float]:
    return {int(each["step"]): each["loss"] for each in lines(directory) if "loss" in each}


@pytest.mark.parametrize(
    ("batch", "shards", "most", "expected"),
    [(16, 4, 8, (1, 16)), (16, 3, 8, (1, 18)), (16, 4, 2, (2, 8)), (16, 3, 2, (3, 6)), (1, 8, 8, (1, 8)), (7, 1, 3, (3, 3))],
)
def test_rounds(batch: int, shards: int, most: int, expected: tuple[int, int]) -> None:
    rounds = Rounds.of(batch, shards, most)
    assert (rounds.rounds, rounds.samples) == expected
    tokens, weights = rounds.laid_out(np.ones((batch, 5), np.int32))
    assert tokens.shape == (*expected, 5)
    assert weights.sum() == tokens.sum() / 5 == batch


def test_the_same_on_every_mesh(tmp_path: pathlib.Path) -> None:
    """The batch is the same however many devices there are and however it is cut."""
    variants = {
        "one": (1, []),
        "fsdp and tensor": (4, ["mesh.fsdp=2", "mesh.tensor=2"]),
        "three, in rounds": (3, ["train.most=2"]),
    }
    found = {}
    for name, (devices, arguments) in variants.items():
        result = train(tmp_path / name, "train.steps=4", "train.checkpoint=0", *arguments, devices=devices)
        assert result.returncode == 0, result.stderr
        found[name] = [losses(tmp_path / name)[step] for step in range(1, 5)]
    for name in variants:
        np.testing.assert_allclose(found[name], found["one"], rtol=2e-5, err_msg=name)


def test_a_killed_run_goes_on_exactly_where_its_checkpoint_is(tmp_path: pathlib.Path) -> None:
    options = ("train.steps=40", "train.checkpoint=10", "train.evaluate=20")
    process = subprocess.Popen(
        command(tmp_path / "killed", *options), env=environment(2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: any(path.name.isdecimal() for path in (tmp_path / "killed" / "checkpoints").glob("*")), seconds=100)
    process.kill()
    process.communicate()
    reached = max(losses(tmp_path / "killed"))
    again = train(tmp_path / "killed", *options, devices=2)
    assert again.returncode == 0, again.stderr
    assert reached < 40
    assert "from a checkpoint" in again.stdout
    whole = train(tmp_path / "whole", *options, devices=2)
    assert whole.returncode == 0, whole.stderr
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")


def test_another_config_is_refused(tmp_path: pathlib.Path) -> None:
    assert train(tmp_path, "train.steps=2").returncode == 0
    refused = train(tmp_path, "train.steps=2", "data.seed=1")
    assert refused.returncode == 2
    assert "holds a run with another config" in refused.stderr
    assert "data.seed: 1, was 0" in refused.stderr
    mesh = train(tmp_path / "other", "mesh.fsdp=3")
    assert mesh.returncode == 2
    assert "mesh: fsdp 3 x tensor 1 does not divide 4 devices" in mesh.stderr


def test_print_config(tmp_path: pathlib.Path) -> None:
    result = train(tmp_path / "run", "--print-config", "--elastic", "resize")
    assert "elastic: resize" in result.stdout
    assert not (tmp_path / "run").exists()
