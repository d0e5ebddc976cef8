"""What a call costs: a program that adds one to eight numbers.

    python benchmarks/dispatch.py [--rounds N]

returned: until the call returns, in a row of 200. completed: until its result is there, one by one. chain: 1,000 calls, each with the
result of the one before, until the last result is there, per call.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time

import results
import sides

_WHAT = ["returned", "completed", "chain"]


def program() -> None:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    f = jax.jit(lambda x: x + 1)
    x = jax.device_put(np.zeros(8, np.float32), NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i")))
    f(x).block_until_ready()

    def returned() -> list[float]:
        start = time.perf_counter()
        out = [f(x) for _ in range(200)]
        seconds = time.perf_counter() - start
        jax.block_until_ready(out)
        return [seconds / 200]

    def completed() -> list[float]:
        samples = []
        for _ in range(100):
            start = time.perf_counter()
            f(x).block_until_ready()
            samples.append(time.perf_counter() - start)
        return [statistics.median(samples)]

    def chain() -> list[float]:
        y = x
        start = time.perf_counter()
        for _ in range(1000):
            y = f(y)
        y.block_until_ready()
        return [(time.perf_counter() - start) / 1000]

    sides.serve({"returned": returned, "completed": completed, "chain": chain})


def main(rounds: int) -> None:
    with contextlib.ExitStack() as stack:
        compared = [
            stack.enter_context(side)
            for side in (
                sides.plain(__file__, devices=1),
                sides.everstep(__file__, workers=1, devices=1),
                sides.plain(__file__, devices=4),
                sides.everstep(__file__, workers=1, devices=4),
                sides.everstep(__file__, workers=2, devices=2),
                sides.everstep(__file__, workers=4, devices=1),
            )
        ]
        samples: dict[str, dict[str, list[float]]] = {side.name: {what: [] for what in _WHAT} for side in compared}
        for _ in range(rounds):
            for side in compared:
                for what in _WHAT:
                    samples[side.name][what] += side.measure(what)
    rows: list[list[str | float]] = [
        [name, *(1e6 * statistics.median(values[what]) for what in _WHAT), f"{results.spread(values['completed']):.0%}"]
        for name, values in samples.items()
    ]
    results.report("dispatch", ["µs per call, workers x devices", *_WHAT, "spread"], rows, samples=samples)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    program() if options.side else main(options.rounds)
    sys.exit(0)
