"""How fast data travels between the program and devices.

    python benchmarks/transfers.py [--largest MB] [--rounds N]

put: a NumPy array becomes a ready array on the devices, whole on one or split over all. get: back into a NumPy array. move: from the
first device to the last. Plain JAX shares memory between both where it can, so it is no measure for a get, only a reminder.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time

import results
import sides

_SIZES = [1, 8, 64, 256, 1024]  # MB
_WHAT = ["put", "get", "split put", "split get", "move"]


def program() -> None:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
    from jax.sharding import PartitionSpec as P

    one, last = SingleDeviceSharding(jax.devices()[0]), SingleDeviceSharding(jax.devices()[-1])
    split = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
    another = jax.jit(lambda x: x + 1)  # whose value is not known to the program yet
    host: dict[int, np.ndarray] = {}

    def put(size: int, sharding) -> list[float]:
        if size not in host:
            host.clear()
            host[size] = np.arange(size << 18, dtype=np.float32)
        start = time.perf_counter()
        jax.device_put(host[size], sharding).block_until_ready()
        return [time.perf_counter() - start]

    def get(size: int, sharding) -> list[float]:
        host.clear()  # jaxlib's client needs four times the size for a get
        x = another(jax.jit(lambda: jax.numpy.zeros(size << 18), out_shardings=sharding)()).block_until_ready()
        start = time.perf_counter()
        np.asarray(x)
        return [time.perf_counter() - start]

    def move(size: int) -> list[float]:
        x = jax.jit(lambda: jax.numpy.ones(size << 18), out_shardings=one)().block_until_ready()
        start = time.perf_counter()
        jax.device_put(x, last).block_until_ready()
        return [time.perf_counter() - start]

    measurements: dict[str, sides.Measurement] = {}
    for size in _SIZES:
        measurements[f"put {size}"] = lambda size=size: put(size, one)  # type: ignore[misc]
        measurements[f"get {size}"] = lambda size=size: get(size, one)  # type: ignore[misc]
        measurements[f"split put {size}"] = lambda size=size: put(size, split)  # type: ignore[misc]
        measurements[f"split get {size}"] = lambda size=size: get(size, split)  # type: ignore[misc]
        measurements[f"move {size}"] = lambda size=size: move(size)  # type: ignore[misc]
    sides.serve(measurements)


def main(largest: int, rounds: int) -> None:
    sizes = [size for size in _SIZES if size <= largest]
    with contextlib.ExitStack() as stack:
        compared = [
            stack.enter_context(side)
            for side in (
                sides.plain(__file__, devices=4),
                sides.everstep(__file__, workers=1, devices=4),
                sides.everstep(__file__, workers=2, devices=2),
            )
        ]
        samples: dict[str, dict[str, list[float]]] = {side.name: {} for side in compared}
        for size in sizes:
            for what in _WHAT:
                for turn in range(rounds + 1):
                    for side in compared:
                        seconds = side.measure(f"{what} {size}")
                        if turn:  # the first compiles
                            samples[side.name].setdefault(f"{what} {size}", []).extend(seconds)
    rows: list[list[str | float]] = []
    for size in sizes:
        for side in compared:
            own = samples[side.name]
            rows.append(
                [f"{size} MB", side.name, *(f"{(size << 20) / 1e9 / statistics.median(own[f'{what} {size}']):.2f}" for what in _WHAT)]
            )
    results.report("transfers", ["GB/s, median", "workers x devices", *_WHAT], rows, samples=samples)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=1024, help="MB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    program() if options.side else main(options.largest, options.rounds)
    sys.exit(0)
