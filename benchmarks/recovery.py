"""How long until training goes on when a worker dies.

    python benchmarks/recovery.py [--rounds N]

A small data-parallel model on 2 or 4 slices of one device. One worker gets a signal while steps are in flight (busy) or while none are
(idle; the next step is dispatched right after). Times are from the signal, in the program's own process. A stopped worker is known by its
missing heartbeats: there the timeout (1 s) is included.

Beside it what people do today: plain multi-process JAX under a launcher that notices the death of a process at once, kills the others, and
starts all of them again from the last checkpoint.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import results
import sides

_WIDTH, _BATCH = 512, 64
_STEPS_BEFORE = 5
_IN_FLIGHT = 20
_HEARTBEAT_TIMEOUT = 1.0

_EXCEPTION, _SEEN, _UNSEEN, _FULL = "exception", "step, seen before", "step, not seen", "step, full size"


def _model() -> tuple[Any, Any, Any]:
    """A step, its first state and its batch, as NumPy arrays."""
    import jax
    import numpy as np

    random = np.random.default_rng(0)
    params = [random.normal(0, 0.05, (_WIDTH, _WIDTH)).astype(np.float32) for _ in range(4)]
    batch = random.normal(0, 1, (_BATCH, _WIDTH)).astype(np.float32)

    def loss(params: Any, batch: Any) -> Any:
        x = batch
        for weights in params:
            x = jax.numpy.tanh(x @ weights)
        return ((x - batch) ** 2).mean()

    @jax.jit
    def step(params: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value

    return step, params, batch


def program(victim_signal: int, busy: bool) -> None:
    """On Everstep: prints the times as JSON."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    step, host, batch = _model()
    another = jax.jit(lambda params, batch: jax.tree.map(lambda p: p + batch.sum(), params))  # not seen before
    devices = jax.devices()
    left, lost = devices[:-1], devices[-1]

    def placed(devices: list[Any]) -> tuple[Any, Any]:
        mesh = Mesh(np.array(devices), ("data",))
        usable = len(batch) // len(devices) * len(devices)
        return jax.device_put(host, NamedSharding(mesh, P())), jax.device_put(batch[:usable], NamedSharding(mesh, P("data")))

    def first_step(devices: list[Any], step: Any = step) -> None:
        jax.block_until_ready(step(*placed(devices)))

    first_step(left)
    params, data = placed(devices)
    for _ in range(_STEPS_BEFORE):
        params, value = step(params, data)
    value.block_until_ready()
    status = subprocess.run([sys.executable, "-m", "everstep", "status", "--json"], capture_output=True, text=True, check=True)
    victim = json.loads(status.stdout)["slices"][-1]["workers"][0]["pid"]
    if busy:
        for _ in range(_IN_FLIGHT):
            params, value = step(params, data)
    times: dict[str, float] = {}
    start = time.monotonic()
    os.kill(victim, victim_signal)
    try:
        while True:
            params, value = step(params, data)
            value.block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        if "DATA_LOSS" not in str(error):
            raise
    times[_EXCEPTION] = time.monotonic() - start
    first_step(left)
    times[_SEEN] = time.monotonic() - start
    before = time.monotonic()
    first_step(left, another)
    times[_UNSEEN] = times[_SEEN] + time.monotonic() - before
    while True:
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.block_until_ready(jax.device_put(np.float32(1), lost))
            break
        time.sleep(0.01)
    first_step(devices)
    times[_FULL] = time.monotonic() - start
    print(json.dumps(times), flush=True)


def plain_program(checkpoint: str) -> None:
    """One process of plain JAX: goes on from the checkpoint if there is one, and prints a line after its first steps."""
    sides.join_others()
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    step, host, batch = _model()
    if os.path.exists(checkpoint):
        with np.load(checkpoint) as saved:
            host = [saved[name] for name in saved.files]
    mesh = Mesh(np.array(jax.devices()), ("data",))
    params = jax.device_put(host, NamedSharding(mesh, P()))
    data = jax.make_array_from_callback(batch.shape, NamedSharding(mesh, P("data")), lambda index: batch[index])
    for number in range(1 << 30):
        params, value = step(params, data)
        value.block_until_ready()
        if number == 0:
            if jax.process_index() == 0 and not os.path.exists(checkpoint):
                np.savez(checkpoint + ".new.npz", *(np.asarray(each.addressable_data(0)) for each in params))
                os.rename(checkpoint + ".new.npz", checkpoint)
            print("stepped", flush=True)


def _measure(slices: int, number: int, busy: bool, spares: int) -> dict[str, float]:
    options = ("--slices", str(slices), "--spares", str(spares), "--heartbeat-timeout", str(_HEARTBEAT_TIMEOUT), "--max-restarts", "99")
    command = [sys.executable, "-m", "everstep", "run", *options, "--", sys.executable, __file__]
    side = ["--side", "--signal", str(number), *(["--busy"] if busy else [])]
    done = subprocess.run([*command, *side], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return times


def _measure_plain(processes: int) -> float:
    """Seconds from the death of one process to the first step after the restart of all."""
    with tempfile.TemporaryDirectory() as directory:
        checkpoint = os.path.join(directory, "checkpoint.npz")

        def start() -> list[subprocess.Popen[str]]:
            command = [sys.executable, __file__, "--plain-side", checkpoint]
            return [
                subprocess.Popen(command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                for environment in sides.environments(processes=processes, devices=1)
            ]

        def stepped(running: list[subprocess.Popen[str]]) -> None:
            for process in running:
                assert process.stdout is not None
                while process.stdout.readline() != "stepped\n":
                    if process.poll() is not None:
                        raise RuntimeError("plain JAX could not train")

        def end(running: list[subprocess.Popen[str]]) -> None:
            for process in running:
                process.kill()
            for process in running:
                process.communicate()

        running = start()
        stepped(running)
        began = time.monotonic()
        running[-1].send_signal(signal.SIGKILL)
        end(running)
        running = start()
        stepped(running)
        seconds = time.monotonic() - began
        end(running)
        return seconds


def main(rounds: int) -> None:
    cases = [
        (2, signal.SIGKILL, True, 0),
        (2, signal.SIGKILL, False, 0),
        (2, signal.SIGKILL, True, 1),
        (2, signal.SIGSTOP, True, 0),
        (4, signal.SIGKILL, True, 0),
        (4, signal.SIGKILL, False, 1),
    ]
    stages = [_EXCEPTION, _SEEN, _UNSEEN, _FULL]
    samples: dict[str, list[dict[str, float]]] = {}
    for _ in range(rounds):
        for slices, number, busy, spares in cases:
            name = f"{slices} slices, {number.name}, {'busy' if busy else 'idle'}{', a spare' if spares else ''}"
            samples.setdefault(name, []).append(_measure(slices, number, busy, spares))
        for processes in (2, 4):
            name = f"plain JAX, {processes} processes, all restarted"
            samples.setdefault(name, []).append({_FULL: _measure_plain(processes)})
    rows: list[list[str | float]] = []
    for name, runs in sorted(samples.items()):
        medians = [1e3 * statistics.median(run[stage] for run in runs) if stage in runs[0] else None for stage in stages]
        rows.append([name, *("-" if each is None else each for each in medians)])
    notes = [f"ms after the signal, median of {rounds}. seen before: on the slices that are left, by a program that they have run before."]
    results.report("recovery", ["", *stages], rows, notes, samples)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    for name in ("--side", "--busy"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--signal", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--plain-side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain_side:
        plain_program(options.plain_side)
    elif options.side:
        program(options.signal, options.busy)
    else:
        main(options.rounds)
