"""Training that loses slices and no step: runs `everstep train` on three slices, kills workers in it, and tells what that has cost.

    python examples/elastic_demo.py [--directory DIR] [GROUP.FIELD=VALUE ...]

It trains a small model on the sources of Python's standard library. The first SIGKILL comes in the middle of a step, the second while a
checkpoint is being written; each time training goes on with the two slices that are left and grows back when the third has been replaced.
At the end there is a picture of the loss and the slices, DIR/demo.png.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import time

SLICES, STEPS, CHECKPOINT = 3, 300, 25
FIRST, BETWEEN = 80, 40  # steps until the first kill, and at full size until the next
CONFIG = ["model.layers=2", "model.width=96", "model.context=96", "train.batch=12", "train.evaluate=0"]


class Trainer:
    """`everstep train` in its directory, its output on the console."""

    def __init__(self, directory, overrides):
        self.directory = directory
        self.began = time.time()
        self.name = f"demo-{os.getpid()}"
        machines = ["--slices", str(SLICES), "--name", self.name, "--steady", "1"]
        run = ["--directory", str(directory), "--elastic", "resize", f"train.steps={STEPS}", f"train.checkpoint={CHECKPOINT}"]
        self.process = subprocess.Popen([sys.executable, "-m", "everstep", "train", *machines, *run, *CONFIG, *overrides])

    def lines(self):
        """What it has written so far: steps, notes."""
        path = self.directory / "metrics.jsonl"
        return [json.loads(line) for line in path.read_text().split("\n")[:-1]] if path.exists() else []

    def steps(self):
        return [line for line in self.lines() if "loss" in line]

    def checkpoints(self):
        """The names in its directory of checkpoints: a number is one that is committed, anything else one that is being written."""
        return {path.name for path in (self.directory / "checkpoints").glob("*")}

    def wait(self, condition, pause=0.1):
        while not condition():
            if self.process.poll() is not None:
                sys.exit(f"the trainer has ended with exit code {self.process.returncode}")
            time.sleep(pause)

    def victim(self, index):
        """The pid of a slice's worker."""
        status = subprocess.run(
            [sys.executable, "-m", "everstep", "status", "--json", "--head", self.name], check=True, capture_output=True, text=True
        )
        return json.loads(status.stdout)["slices"][index]["workers"][0]["pid"]

    def kill(self, pid, when):
        """SIGKILL, now. Returns what a restart would have had to do again: the steps since the last committed checkpoint."""
        os.kill(pid, signal.SIGKILL)
        reached = self.steps()[-1]["step"]
        committed = max([int(name) for name in self.checkpoints() if name.isdecimal()], default=0)
        print(f">>> kill -9 {pid}, {when} at step {reached}; the last checkpoint is of step {committed}", flush=True)
        return reached - committed


def torment(trainer):
    """The two kills. Returns how many steps each would have cost if it had ended the run."""
    trainer.wait(lambda: len(trainer.steps()) >= FIRST)
    lost = [trainer.kill(trainer.victim(1), "in the middle of a step")]
    trainer.wait(lambda: trainer.steps()[-1]["slices"] < SLICES)
    trainer.wait(lambda: trainer.steps()[-1]["slices"] == SLICES)
    calm = len(trainer.steps()) + BETWEEN
    trainer.wait(lambda: len(trainer.steps()) >= calm)
    pid = trainer.victim(2)
    trainer.wait(lambda: not all(name.isdecimal() for name in trainer.checkpoints()), pause=0.001)
    return [*lost, trainer.kill(pid, "while a checkpoint is being written")]


def tell(trainer, lost):
    """The summary, against a restart from the newest checkpoint after each kill, as it would be in this run: started as this one was."""
    steps = trainer.steps()
    start = steps[0]["time"] - trainer.began
    step = statistics.median(line["seconds"] for line in steps)
    restarts = len(lost) * start + sum(lost) * step
    summary = trainer.lines()[-1]
    print(
        f"\n{len(lost)} workers killed, {summary['losses']} losses survived, {summary['steps_lost']} steps lost, "
        f"{summary['downtime']:.1f} s of downtime, goodput {summary['goodput']:.0%}\n"
        f"Restarting instead: {restarts:.1f} s, {len(lost)} times {start:.1f} s from the command to the first step (measured in this run), "
        f"and {sum(lost)} steps since the last checkpoints again, {step:.2f} s each (the median)"
    )


def draw(trainer, path):
    """Loss and slices over time."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    steps = trainer.steps()
    seconds = [line["time"] - trainer.began for line in steps]
    figure, (top, bottom) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 5), height_ratios=(3, 1), layout="constrained")
    top.plot(seconds, [line["loss"] for line in steps])
    top.set_ylabel("loss")
    top.set_title(f"{len(steps)} steps on {SLICES} slices that die")
    for line in trainer.lines():
        if "lost" in line:
            for axes in (top, bottom):
                axes.axvline(line["since"] - trainer.began, color="tab:red", linestyle=":")
            top.annotate("lost", (line["since"] - trainer.began, top.get_ylim()[1]), color="tab:red", va="top", rotation=90, ha="right")
    bottom.step(seconds, [line["slices"] for line in steps], where="post", color="tab:green")
    bottom.set(ylabel="slices", xlabel="seconds", ylim=(0, SLICES + 0.5), yticks=range(SLICES + 1))
    figure.savefig(path, dpi=120)
    print(f"Loss and slices over time: {path}")


def main(directory, overrides):
    if directory.exists() and not (directory / "metrics.jsonl").exists():
        sys.exit(f"{directory} holds something else than a run; choose another --directory")
    shutil.rmtree(directory, ignore_errors=True)
    trainer = Trainer(directory, overrides)
    try:
        lost = torment(trainer)
        trainer.wait(lambda: trainer.steps()[-1]["slices"] == SLICES or trainer.steps()[-1]["step"] == STEPS)
        if trainer.process.wait():
            sys.exit(trainer.process.returncode)
    finally:
        if trainer.process.poll() is None:
            trainer.process.terminate()
            trainer.process.wait()
    tell(trainer, lost)
    draw(trainer, directory / "demo.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directory", type=pathlib.Path, default=pathlib.Path("runs/demo"))
    parser.add_argument("overrides", nargs="*", metavar="GROUP.FIELD=VALUE")
    options = parser.parse_args()
    main(options.directory, options.overrides)
