"""What snapshots cost while nothing fails, and how long the trainer needs when a worker dies.

    python benchmarks/snapshots.py [--rounds N]

without, every step: the trainer's model on two slices, a step of about 100 ms, the loss read one step behind as the trainer does; rounds
with a snapshot of parameters and optimizer after every step in turn with rounds without any, in one program. In one layout the state is
replicated over the slices, in the other it is cut over them, so that half of it goes to the other slice's memory with every step.

pause, resize: `everstep train` on two slices; one worker gets a SIGKILL. From the signal to the end of the next step, and how that splits
up. rest: what lies between the signal and the moment the head saw the end, and what was under way in that step.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import results
import sides

_STEPS = 10  # in a round
_MODEL = ["train.batch=8"]  # else the trainer's default: 119 arrays of 10 MB in all
_CALM = 30  # steps before the signal
_SPLIT = ["detecting", "waiting for slices", "checkpoint stalls", "compiling", "restoring"]


def program(fsdp: int) -> None:
    import numpy as np

    from everstep import elastic
    from everstep.train.config import Config
    from everstep.train.step import Programs

    config = Config.load(None, [*_MODEL, f"mesh.fsdp={fsdp}"])
    slices = elastic.Slices()
    snapshots = elastic.Snapshots(slices)
    programs = Programs(config, 256, [device for each in slices.all for device in each.devices])
    state = programs.start()
    samples = np.random.default_rng(0).integers(0, 256, (config.train.batch, config.model.context + 1)).astype(np.int32)

    def steps(every: bool) -> list[float]:
        nonlocal state
        times, before = [], None
        for number in range(_STEPS):
            begin = time.perf_counter()
            state, loss = programs.step(state, samples)
            if before is not None:
                snapshots.wait()
                float(np.asarray(before))
            before = loss
            if every:
                snapshots.save(number, {"state": state, "loss": loss})
            times.append(time.perf_counter() - begin)
        snapshots.wait()
        float(np.asarray(before))
        return times[1:]

    steps(True)
    sides.serve({"without": functools.partial(steps, False), "every step": functools.partial(steps, True)})


def _side(fsdp: int) -> sides.Side:
    command = [sys.executable, "-m", "everstep", "run", "--slices", "2", "--", sys.executable, __file__, "--side", str(fsdp)]
    return sides.Side("cut over slices" if fsdp == 2 else "replicated", [command], [{}])


def _recovery(policy: str) -> dict[str, float]:
    """Seconds: of the split, and "total" from the signal to the end of the next step."""
    with tempfile.TemporaryDirectory() as directory:
        metrics, name = pathlib.Path(directory) / "metrics.jsonl", f"snapshots-{os.getpid()}"
        options = ["--slices", "2", "--name", name, "--directory", directory, "--elastic", policy]
        fields = ["train.steps=100000", "train.evaluate=0", "train.checkpoint=0"]
        command = [sys.executable, "-m", "everstep", "train", *options, *_MODEL, *fields]
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def lines() -> list[dict[str, Any]]:
            return [json.loads(line) for line in metrics.read_text().split("\n")[:-1]] if metrics.exists() else []

        def until(condition: Any) -> None:
            while not condition():
                if run.poll() is not None:
                    raise RuntimeError("the trainer has ended")
                time.sleep(0.05)

        until(lambda: sum("loss" in line for line in lines()) >= _CALM)
        time.sleep(10)  # resize: what may be needed is compiled beside the training by then
        status = subprocess.run([sys.executable, "-m", "everstep", "status", "--json", "--head", name], capture_output=True, check=True)
        began = time.time()
        os.kill(json.loads(status.stdout)["slices"][1]["workers"][0]["pid"], signal.SIGKILL)
        until(lambda: any("recovery" in line for line in lines()))
        run.terminate()
        run.wait()
        after = lines()[next(number for number, line in enumerate(lines()) if "recovery" in line) - 1 :]
        return {**after[1]["recovery"], "first step": after[0]["seconds"], "total": after[0]["time"] - began}


def main(rounds: int) -> None:
    rows: list[list[str | float]] = []
    samples: dict[str, Any] = {}
    for fsdp in (1, 2):
        with _side(fsdp) as side:
            own: dict[str, list[list[float]]] = {"without": [], "every step": []}
            for number in range(rounds):
                for what in sorted(own, reverse=bool(number % 2)):
                    own[what].append(side.measure(what))
        samples[side.name] = own
        ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(own["every step"], own["without"], strict=True)]
        plain, kept = (1e3 * statistics.median(time for times in own[what] for time in times) for what in ("without", "every step"))
        rows.append([side.name, plain, kept, f"{statistics.median(ratios) - 1:+.1%}", f"{results.spread(ratios):.0%}"])
    notes = [f"ms per step, and the median of the ratios of neighbouring rounds of {_STEPS} steps ({rounds} each) with its spread."]
    for policy in ("pause", "resize"):
        runs = samples[policy] = [_recovery(policy) for _ in range(max(3, rounds // 10))]
        median = {what: 1e3 * statistics.median(run.get(what, 0.0) for run in runs) for what in [*_SPLIT, "first step", "total"]}
        rest = median["total"] - sum(value for what, value in median.items() if what != "total")
        told = ", ".join(f"{what} {median[what]:.0f}" for what in [*_SPLIT, "first step"])
        notes.append(
            f"{policy}: {median['total']:.0f} ms from SIGKILL to the end of the next step: {told}, rest {rest:.0f} (of {len(runs)})"
        )
    results.report("snapshots", ["state on 2 slices", "without", "every step", "cost", "spread"], rows, notes, samples)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--side", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    program(options.side) if options.side else main(options.rounds)
    sys.exit(0)
