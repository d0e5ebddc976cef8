#!/usr/bin/env python3
"""Kill workers at random, again and again, while a program trains, and see that nothing is lost, left behind or wrong (`make torture`).

    python tools/torture.py [--faults N] [--slices N] [--seed S]

The program pauses and resumes: on a loss of devices it waits until all are back, takes the state that it kept on the host, and goes on in
the same process. In the end its parameters must be those of an undisturbed run, to the bit, and head, workers and program must hold no more
than before: processes, file descriptors, memory, arrays, programs, files in shared memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from typing import Any

import psutil

KEEP_EVERY = 5  # steps
HEARTBEAT_TIMEOUT = 2.0  # seconds
QUIET_SECONDS = 90.0  # so long a recovery may take before it counts as a hang
SHARED_MEMORY = pathlib.Path("/dev/shm")

# What may grow a little in so many recoveries: allocators, caches, the event log; pools of threads up to their limits.
MEGABYTES, DESCRIPTORS = 200, 10


def program() -> None:
    """Trains until its input ends, and on to the next multiple of KEEP_EVERY; prints steps and a digest of the parameters."""
    import threading

    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    devices = jax.devices()
    slices = [[d for d in devices if getattr(d, "slice_index", 0) == s] for s in sorted({getattr(d, "slice_index", 0) for d in devices})]
    mesh = Mesh(np.array(devices), ("data",))
    everywhere, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    random = np.random.default_rng(0)
    data = random.normal(0, 1, (8, 8 * len(devices), 64)).astype(np.float32)
    kept: tuple[int, Any] = 0, [random.normal(0, 0.1, (64, 64)).astype(np.float32) for _ in range(3)]

    def loss(params: Any, batch: Any) -> Any:
        x = batch
        for weights in params:
            x = jnp.tanh(x @ weights)
        return ((x - batch) ** 2).mean()

    step = jax.jit(lambda params, batch: jax.tree.map(lambda p, g: p - 0.05 * g, params, jax.grad(loss)(params, batch)), donate_argnums=0)

    probes = [(jax.pmap(lambda x: x + 1, devices=each), np.zeros(len(each))) for each in slices]

    def up() -> bool:
        try:
            jax.block_until_ready([probe(x) for probe, x in probes])
        except jax.errors.JaxRuntimeError as error:
            if "DATA_LOSS" not in str(error):
                raise
            return False
        return True

    goal = [int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60]
    if len(sys.argv) <= 2:

        def listen() -> None:
            sys.stdin.read()
            goal[0] = 0

        threading.Thread(target=listen, daemon=True).start()
    failures = 0
    print("started", flush=True)
    while True:
        try:
            number, params = kept
            params = jax.device_put(params, everywhere)
            while number < goal[0] or number % KEEP_EVERY:
                params = step(params, jax.device_put(data[number % len(data)], split))
                number += 1
                if number % KEEP_EVERY == 0:
                    kept = number, jax.device_get(params)
            break
        except jax.errors.JaxRuntimeError as error:
            if "DATA_LOSS" not in str(error):
                raise
            failures += 1
            while not up():
                time.sleep(0.05)
    digest = hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in kept[1])).hexdigest()
    print(json.dumps({"steps": kept[0], "digest": digest, "failures": failures}), flush=True)


class Run:
    """A run under torture."""

    def __init__(self, slices: int, spares: int) -> None:
        self.name = f"torture-{uuid.uuid4().hex[:6]}"
        self.slices = slices
        self.logs = tempfile.mkdtemp(prefix="torture-")
        failure = ("--heartbeat-timeout", HEARTBEAT_TIMEOUT, "--max-restarts", 100_000, "--steady", 0.1, "--grace-period", 0.5)
        options = ("--slices", slices, "--spares", spares, *failure, "--log-directory", self.logs)
        command = [sys.executable, "-m", "everstep", "run", "--name", self.name, *map(str, options), "--"]
        with open(os.path.join(self.logs, "run.log"), "w") as errors:
            self.process = subprocess.Popen(
                [*command, sys.executable, __file__, "--program"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "started\n"

    def close(self) -> None:
        """End it, if it has not ended."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(QUIET_SECONDS)

    def ask(self, *arguments: str) -> str:
        """The output of an everstep command about this run."""
        command = [sys.executable, "-m", "everstep", *arguments, "--head", self.name]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise SystemExit(f"{' '.join(arguments)}: {done.stderr}(logs: {self.logs})")
        return done.stdout

    def kill(self, worker: str, signal: str, *more: str) -> None:
        """Nothing if it is away at the moment."""
        command = [sys.executable, "-m", "everstep", "kill", worker, "--signal", signal, *more, "--head", self.name]
        subprocess.run(command, capture_output=True, check=False, timeout=60)

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.ask("status", "--json"))
        return status

    def wait_until_up(self) -> None:
        """Until all workers are up and the program computes on all of them."""
        deadline = time.monotonic() + QUIET_SECONDS
        while True:
            status = self.status()
            if all(worker["state"] == "up" for each in status["slices"] for worker in each["workers"]):
                return
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"no recovery within {QUIET_SECONDS:.0f} s\n{self.ask('status')}\n{self.ask('events')}\n(logs: {self.logs})"
                )
            time.sleep(0.1)

    def holds(self) -> dict[str, dict[str, int]]:
        """What head, workers and program hold at the moment."""
        status = self.status()
        workers = [worker["pid"] for each in status["slices"] for worker in each["workers"]]
        pids = {"head": status["pid"], "program": self._program()} | {f"worker {i}": pid for i, pid in enumerate(workers)}
        held = {}
        for name, pid in pids.items():
            process = psutil.Process(pid)
            held[name] = {"MB": process.memory_info().rss >> 20, "descriptors": process.num_fds(), "threads": process.num_threads()}
        session = status["sessions"][0] if status["sessions"] else {"arrays": 0, "programs": 0}
        held["session"] = {"arrays": session["arrays"], "programs": session["programs"]}
        held["run"] = {"processes": len(psutil.Process(self.process.pid).children(recursive=True)), "files": len(self._files())}
        return held

    def _program(self) -> int:
        (program,) = (c.pid for c in psutil.Process(self.process.pid).children() if "--lifeline" not in c.cmdline())
        return program

    def _files(self) -> list[str]:
        return [str(path) for root in SHARED_MEMORY.glob(f"everstep-{self.name}-*") for path in root.iterdir()]


def torture(run: Run, chance: random.Random) -> str:
    """One fault. Returns what it was."""
    victims = [f"s{index}w0" for index in chance.sample(range(run.slices), k=chance.choice([1, 1, 1, 2]))]
    how = chance.choice(["KILL", "KILL", "KILL", "STOP", "pause", "TERM"])
    for victim in victims:
        if how == "pause":
            run.kill(victim, "STOP")
            run.kill(victim, "CONT", "--after", "0.3")
        else:
            run.kill(victim, how)
    if how in ("KILL", "TERM") and chance.random() < 0.2:  # the successor too, if there is one already
        run.kill(victims[0], "KILL")
        how += ", again"
    return f"{how} {' '.join(victims)}"


def main(faults: int, slices: int, spares: int, seed: int) -> int:
    print(f"{faults} faults, {slices} slices, {spares} spares, seed {seed}", flush=True)
    run = Run(slices, spares)
    try:
        return soak(run, faults, random.Random(seed))
    finally:
        run.close()


def soak(run: Run, faults: int, chance: random.Random) -> int:
    """So many faults, and the comparison. The exit code."""
    run.wait_until_up()
    before: dict[str, dict[str, int]] = {}
    began = time.monotonic()
    for number in range(1, faults + 1):
        what = torture(run, chance)
        if chance.random() < 0.8:
            run.wait_until_up()
        time.sleep(chance.uniform(0.0, 1.5))  # torture comes when it comes
        if number == max(1, faults // 10):
            run.wait_until_up()
            before = run.holds()  # after a while: caches are filled
        if number % 10 == 0 or number == faults:
            print(f"{number:4d}  {time.monotonic() - began:6.0f} s  last: {what}", flush=True)
    run.wait_until_up()
    time.sleep(10)  # old worlds are dropped some seconds later
    run.wait_until_up()
    after = run.holds()
    output, _ = run.process.communicate(timeout=QUIET_SECONDS)
    if run.process.returncode:
        print(f"the program ended with exit code {run.process.returncode}")
        return 1
    result = json.loads(output.splitlines()[-1])
    print(f"{result['steps']} steps, {result['failures']} losses seen by the program; now once more undisturbed", flush=True)
    options = ("--slices", str(run.slices), "--", sys.executable, __file__, "--program", str(result["steps"]))
    undisturbed = subprocess.run([sys.executable, "-m", "everstep", "run", *options], check=True, capture_output=True, text=True)
    expected = json.loads(undisturbed.stdout.splitlines()[-1])
    problems = _compare(before, after)
    if expected["digest"] != result["digest"]:
        problems.append("the parameters differ from those of an undisturbed run")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    if not problems:
        shutil.rmtree(run.logs)
    print("parameters equal to the bit, nothing left behind" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


def _compare(before: dict[str, dict[str, int]], after: dict[str, dict[str, int]]) -> list[str]:
    limits = {"MB": MEGABYTES, "descriptors": DESCRIPTORS, "threads": 600, "arrays": 20, "programs": 5, "processes": 0, "files": 20}
    problems = []
    for name, values in after.items():
        print(f"  {name:10s}" + "".join(f"  {what} {before[name][what]} -> {value}" for what, value in values.items()))
        problems += [
            f"{name}: {what} grew from {before[name][what]} to {value}"
            for what, value in values.items()
            if value > before[name][what] + limits[what]
        ]
    return problems


if __name__ == "__main__":
    if sys.argv[1:2] == ["--program"]:
        program()
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--slices", type=int, default=3)
    parser.add_argument("--spares", type=int, default=1)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    options = parser.parse_args()
    sys.exit(main(options.faults, options.slices, options.spares, options.seed))
