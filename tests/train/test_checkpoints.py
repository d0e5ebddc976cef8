"""Whatever happens while a checkpoint is saved or restored, the newest that was committed is usable, and the end comes."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

_PROGRAM = pathlib.Path(__file__).with_name("saving.py")
_MOMENTS = 5


def saving(directory: pathlib.Path, count: int, *how: str) -> subprocess.CompletedProcess[str]:
    directory.mkdir(exist_ok=True)
    command = [sys.executable, os.fspath(_PROGRAM), os.fspath(directory), str(count), *how]
    return subprocess.run(command, env=os.environ | {"JAX_PLATFORMS": "cpu"}, capture_output=True, text=True, timeout=200, check=False)


def numbers(output: str, word: str) -> list[int]:
    return [int(line.split()[1]) for line in output.splitlines() if line.startswith(word + " ")]


def test_a_kill_at_any_moment_leaves_the_newest_usable(tmp_path: pathlib.Path) -> None:
    """Each process restores what the one before has left, whose content must be right, saves more, and is killed a little later in that."""
    whole = saving(tmp_path / "whole", 4)
    assert whole.returncode == 0, whole.stderr
    (things,) = numbers(whole.stdout, "done")
    newest = 0
    for moment in range(1, _MOMENTS + 1):
        killed = saving(tmp_path / "killed", 4, f"kill={moment * things // _MOMENTS - 1}")
        assert killed.returncode == -9, killed.stderr
        (found,) = numbers(killed.stdout, "found")
        assert found >= newest
        newest = max([found, *numbers(killed.stdout, "committed")])
    again = saving(tmp_path / "killed", 1)
    assert again.returncode == 0, again.stderr
    assert numbers(again.stdout, "found")[0] >= newest > 0
    assert all(path.name.isdecimal() for path in (tmp_path / "killed" / "checkpoints").iterdir())  # what was cut off is cleaned up


def test_a_save_that_hangs_is_given_up_and_told(tmp_path: pathlib.Path) -> None:
    """Training goes on without it; but a run does not end well without its last checkpoint."""
    result = saving(tmp_path, 3, "hang=1,3")
    assert "told: the checkpoint of step 1 is not written after 5 s; the newest in" in result.stdout
    assert numbers(result.stdout, "committed") == [0, 2, 2]
    assert result.returncode == 1
    assert "CheckpointError: the checkpoint of step 3 is not written after 5 s; the newest in" in result.stdout
