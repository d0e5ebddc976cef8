#!/usr/bin/env python3
"""Kill workers, and the trainer itself, at random while `everstep train` runs, and see that its history is right (`make torture-train`).

    python tools/torture_train.py [--kills N] [--slices N] [--steps N] [--seed S]

Kills come at any time, and on purpose while a checkpoint is written, right after a loss (while the state is restored) and while it grows
back. A trainer that was killed is started again. Runs pause and resize in turn. After each: every step is in the kept history exactly once,
with the loss of an undisturbed run (to the bit; within 1e-3 where it was resized), and the newest checkpoint can be restored.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil

PATIENCE = 180.0  # seconds without a step, or an end, that count as a hang
TOLERANCE = 1e-3
MODEL = ["model.width=32", "model.layers=1", "model.heads=2", "model.kv_heads=1", "model.context=32"]
OFTEN = ["train.batch=12", "train.checkpoint=7", "train.evaluate=0", "train.log=100000", "optimizer.learning_rate=3e-4"]


class Problem(Exception):
    """What must not be."""


class Run:
    """A trainer in one directory, started as often as it takes."""

    def __init__(self, directory: pathlib.Path, slices: int, steps: int, policy: str) -> None:
        self.directory = directory
        directory.mkdir()
        options = ["--slices", str(slices), "--steady", "0.1", "--max-restarts", "100000", "--log-directory", str(directory)]
        self._command = [sys.executable, "-m", "everstep", "train", *options, "--directory", str(directory), "--elastic", policy]
        self._command += [*MODEL, *OFTEN, f"train.steps={steps}"]
        self.start()

    def start(self) -> None:
        with (self.directory / "console").open("a") as console:
            self.process = subprocess.Popen(self._command, stdout=console, stderr=console)

    def lines(self) -> Iterator[dict[str, Any]]:
        """What metrics.jsonl says so far."""
        path = self.directory / "metrics.jsonl"
        for line in path.read_text().splitlines() if path.exists() else ():
            with contextlib.suppress(ValueError):
                yield json.loads(line)

    def size(self) -> int:
        path = self.directory / "metrics.jsonl"
        return path.stat().st_size if path.exists() else 0

    def wait(self, what: str, condition: Callable[[], bool]) -> bool:
        """Until it is so; False: the run has ended."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None:
                return False
            if time.monotonic() > deadline:
                raise Problem(f"no {what} within {PATIENCE:.0f} s")
            time.sleep(0.005)
        return True

    def wait_for_line(self, *words: str) -> bool:
        """Until metrics.jsonl has a new line with one of these words."""
        path, before = self.directory / "metrics.jsonl", self.size()

        def told() -> bool:
            if self.size() == before:
                return False
            with path.open() as file:
                file.seek(before)
                return any(word in line for line in file for word in words)

        return self.wait(f"line with {words}", told)

    def is_saving(self) -> bool:
        return any("tmp" in path.name for path in (self.directory / "checkpoints").glob("*"))

    def processes(self) -> tuple[list[int], list[int]]:
        """Pids: of the program, and of the workers. Empty while they are being started."""
        program, workers = [], []
        with contextlib.suppress(psutil.Error):
            for child in psutil.Process(self.process.pid).children():
                if "--lifeline" in child.cmdline():
                    workers += [each.pid for each in child.children()]
                else:
                    program.append(child.pid)
        return program, workers


def torture(run: Run, chance: random.Random) -> int:
    """One blow, at a moment of its kind. Returns how many processes were killed."""
    moment = chance.choice(["any time", "any time", "saving", "restoring", "growing"])
    if moment == "any time":
        time.sleep(chance.uniform(0, 2))
    elif moment == "saving" and not run.wait("checkpoint", run.is_saving):
        return 0
    kills = _kill(run, chance, program=chance.random() < 0.06)
    if moment in ("restoring", "growing"):
        words = ("SliceLostError", "begins") if moment == "restoring" else ("more slices", "goes on")
        if kills and run.wait_for_line(*words):
            time.sleep(chance.choice([0, 0, 0.02, 0.1]))
            kills += _kill(run, chance, program=chance.random() < 0.06)
    return kills


def _kill(run: Run, chance: random.Random, program: bool) -> int:
    programs, workers = run.processes()
    victims = programs if program else chance.sample(workers, k=min(len(workers), chance.choice([1, 1, 1, 2])))
    for victim in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    return len(victims)


def disturbed(run: Run, chance: random.Random, most: int) -> int:
    """To its end, with up to so many kills. Returns how many there were."""
    kills = starts = 0
    while True:
        if run.wait_for_line('"loss"') and kills < most:
            kills += torture(run, chance)
        elif run.process.poll() is None:
            run.process.wait(PATIENCE * 4)
        if run.process.poll() is not None:
            if run.process.returncode == 0:
                return kills
            if run.process.returncode not in (-signal.SIGKILL, 128 + signal.SIGKILL):
                raise Problem(f"exit code {run.process.returncode}")
            starts += 1
            run.start()


def check(run: Run, steps: int, expected: dict[int, float] | None, exact: bool) -> dict[int, float]:
    """Raises Problem. Returns the losses that were kept."""
    console = (run.directory / "console").read_text()
    if faults := re.findall(r"worker \S+ \(.*\) is lost: (?:exit|signal (?!9 )).*", console):
        raise Problem(f"not killed, but {faults[0]}")
    kept: dict[int, float] = {}
    first: list[int] = []
    for line in run.lines():
        if "loss" in line:
            kept[line["step"]] = line["loss"]
            first += [] if line.get("redone") else [line["step"]]
    if sorted(kept) != list(range(1, steps + 1)):
        raise Problem(f"the history lacks steps {sorted(set(range(1, steps + 1)) - set(kept))}")
    if sorted(first) != list(range(1, steps + 1)):
        raise Problem("the history has a step twice that is not said to be done once more")
    for step, loss in (expected or {}).items():
        if abs(kept[step] - loss) > (0 if exact else TOLERANCE * abs(loss)):
            raise Problem(f"the loss of step {step} is {kept[step]}, that of an undisturbed run {loss}")
    run.start()
    if run.process.wait(PATIENCE) or f"goes on after step {steps} at" not in (run.directory / "console").read_text():
        raise Problem("the newest checkpoint can't be restored")
    return kept


def main(kills: int, slices: int, steps: int, seed: int) -> int:
    chance = random.Random(seed)
    print(f"{kills} kills, {slices} slices, {steps} steps a run, seed {seed}", flush=True)
    root, done, number, began = pathlib.Path(tempfile.mkdtemp(prefix="torture-train-")), 0, 0, time.monotonic()
    run = Run(root / "undisturbed", slices, steps, "pause")
    try:
        run.process.wait(PATIENCE * 4)
        expected = check(run, steps, None, exact=True)
        while done < kills:
            number += 1
            policy = "resize" if number % 2 else "pause"
            run = Run(root / f"{number}", slices, steps, policy)
            done += disturbed(run, chance, kills - done)
            check(run, steps, expected, exact=policy == "pause")
            redone = sum("redone" in line for line in run.lines())
            print(f"{done:4d} kills  {time.monotonic() - began:6.0f} s  {policy}: right; {redone} steps done once more", flush=True)
    except Problem as problem:
        print(f"PROBLEM: {problem} (see {run.directory})")
        return 1
    finally:
        if run.process.poll() is None:
            run.process.terminate()
            run.process.wait()
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--slices", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    sys.exit(main(options.kills, options.slices, options.steps, options.seed))
