"""How long a checkpoint takes, and whose memory it takes, written and read by the workers and by way of the program.

    python benchmarks/checkpoints.py [--gigabytes N]

A state of random float32, sharded over two slices of one device, is saved with Orbax's CheckpointManager to a directory on this machine,
and restored by a new program: once with ENABLE_PATHWAYS_PERSISTENCE=1 and once without. The memory of all processes is looked at fifty
times a second.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any

import results

_ARRAYS = 16
_INTERVAL = 0.02  # seconds between looks at the memory
_SWITCH = "ENABLE_PATHWAYS_PERSISTENCE"


class Memory:
    """Resident megabytes of head, program and workers: how far they rise above where they were before."""

    def __init__(self) -> None:
        import psutil

        program = psutil.Process()
        (head,) = (child for child in program.parent().children() if child.pid != program.pid)
        self._processes = {"head": [head], "program": [program], "workers": head.children()}

    @contextlib.contextmanager
    def growth(self) -> Iterator[dict[str, float]]:
        """Filled in at the end."""
        before = self._now()
        peak = dict(before)
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(_INTERVAL):
                for name, now in self._now().items():
                    peak[name] = max(peak[name], now)

        watching = threading.Thread(target=watch)
        watching.start()
        growth: dict[str, float] = {}
        try:
            yield growth
        finally:
            stop.set()
            watching.join()
            growth |= {name: peak[name] - before[name] for name in before}

    def _now(self) -> dict[str, float]:
        return {name: sum(each.memory_info().rss for each in group) / 1e6 for name, group in self._processes.items()}


def program(action: str, directory: str, size: int) -> None:
    """On Everstep: prints seconds and megabytes as JSON."""
    import jax
    import numpy as np
    import orbax.checkpoint as ocp
    import pathwaysutils
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    pathwaysutils.initialize()
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P("x"))
    shape = (1024, size // 4 // 1024 // _ARRAYS)
    wanted = jax.ShapeDtypeStruct(shape, np.float32, sharding=sharding)
    make = jax.jit(lambda seed: jax.random.normal(jax.random.key(seed), shape, np.float32), out_shardings=sharding)
    equal = jax.jit(lambda a, b: (a == b).all())
    names = [str(number) for number in range(_ARRAYS)]
    first = {"0": make(0)}
    state = {name: jax.block_until_ready(make(number)) for number, name in enumerate(names)} if action == "save" else {}
    told: dict[str, Any] = {}
    with ocp.CheckpointManager(directory, item_handlers=ocp.StandardCheckpointHandler(use_ocdbt=False)) as checkpoints:

        def save(step: int, state: Any) -> None:
            start = time.monotonic()
            checkpoints.save(step, args=ocp.args.StandardSave(state))
            told["blocking"] = time.monotonic() - start
            checkpoints.wait_until_finished()

        def restore(step: int, wanted: Any) -> Any:
            return jax.block_until_ready(checkpoints.restore(step, args=ocp.args.StandardRestore(wanted)))

        # What is loaded and compiled once is not measured.
        if action == "save":
            save(0, first)
        else:
            restore(0, {"0": wanted})
        with Memory().growth() as growth:
            start = time.monotonic()
            if action == "save":
                save(1, state)
            else:
                state = restore(1, dict.fromkeys(names, wanted))
            told["seconds"] = time.monotonic() - start
    assert action == "save" or all(equal(state[name], make(number)) for number, name in enumerate(names))
    print(json.dumps(told | growth), flush=True)


def _measure(switch: str, action: str, directory: str, size: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "everstep", "run", "--slices", "2", "--", sys.executable, __file__]
    side = ["--side", action, "--directory", directory, "--gigabytes", str(size / 1e9)]
    done = subprocess.run([*command, *side], env=os.environ | {_SWITCH: switch}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main(size: int) -> None:
    samples = {}
    for switch, way in (("1", "by the workers"), ("0", "by way of the program")):
        with tempfile.TemporaryDirectory() as directory:
            for action in ("save", "restore"):
                samples[f"{action} {way}"] = _measure(switch, action, os.path.join(directory, "checkpoints"), size)
    rows: list[list[str | float]] = [
        [name, told["seconds"], told.get("blocking", "-"), *(told[who] for who in ("head", "program", "workers"))]
        for name, told in samples.items()
    ]
    notes = [f"a state of {size / 1e9:g} GB in {_ARRAYS} arrays on 2 slices; megabytes are the peak above what was resident before."]
    results.report("checkpoints", ["", "s", "s blocking", "head +MB", "program +MB", "workers +MB"], rows, notes, samples)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--side", choices=("save", "restore"), help=argparse.SUPPRESS)
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        program(options.side, options.directory, int(options.gigabytes * 1e9))
    else:
        main(int(options.gigabytes * 1e9))
