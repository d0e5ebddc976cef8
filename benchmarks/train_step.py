"""What a training step costs: the GPT of examples/ with Adam, the batch split over 4 devices.

    python benchmarks/train_step.py [--rounds N]

On one worker against in-process JAX; over two workers against plain multi-process JAX (jax.distributed, gloo, same layout), with the XLA
passes that Everstep uses and with the default ones (which combine small all-reduces).
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
import statistics
import sys
import time

import results
import sides

_STEPS = 8  # in a round, dispatched without waiting


def program() -> None:
    sides.join_others()
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "examples"))
    import gpt
    import jax
    import numpy as np
    import optax
    from jax.sharding import Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    config = gpt.Config(width=128, batch=16)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    everywhere, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    optimizer = optax.adam(1e-3)

    @functools.partial(jax.jit, out_shardings=everywhere)
    def start(key):
        params = gpt.init(key, config)
        return params, optimizer.init(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1), out_shardings=everywhere)
    def train(params, state, samples):
        value, gradients = jax.value_and_grad(gpt.loss)(params, samples, config)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    tokens = np.random.default_rng(0).integers(0, 256, (config.batch, config.context + 1)).astype(np.int32)
    samples = jax.make_array_from_callback(tokens.shape, split, lambda index: tokens[index])
    params, state = start(jax.random.key(0))
    params, state, value = train(params, state, samples)
    value.block_until_ready()

    def steps() -> list[float]:
        nonlocal params, state
        begin = time.perf_counter()
        for _ in range(_STEPS):
            params, state, value = train(params, state, samples)
        value.block_until_ready()
        return [(time.perf_counter() - begin) / _STEPS]

    def step_by_step() -> list[float]:
        nonlocal params, state
        times = []
        for _ in range(_STEPS):
            begin = time.perf_counter()
            params, state, value = train(params, state, samples)
            float(np.asarray(value.addressable_data(0)))
            times.append(time.perf_counter() - begin)
        return times

    sides.serve({"steps": steps, "step by step": step_by_step})


def main(rounds: int) -> None:
    default = functools.partial(dict, name="default passes")
    groups = [
        [
            sides.plain(__file__, devices=4, flags=sides.SAME_PASSES),
            sides.everstep(__file__, workers=1, devices=4),
            sides.plain(__file__, devices=4, **default()),
        ],
        [
            sides.multi_process(__file__, processes=2, devices=2, flags=sides.SAME_PASSES),
            sides.everstep(__file__, workers=2, devices=2),
            sides.multi_process(__file__, processes=2, devices=2, **default()),
        ],
    ]
    rows: list[list[str | float]] = []
    samples: dict[str, dict[str, list[float]]] = {}
    with contextlib.ExitStack() as stack:
        for side in (side for group in groups for side in group):
            stack.enter_context(side)
        for k in range(rounds):
            for side in (side for group in groups for side in (group if k % 2 else group[::-1])):
                for what in ("steps", "step by step"):
                    samples.setdefault(side.name, {}).setdefault(what, []).extend(side.measure(what))
        for group in groups:
            reference = samples[group[0].name]
            for side in group:
                own = samples[side.name]
                row: list[str | float] = [side.name]
                for what in ("steps", "step by step"):
                    row += [1e3 * statistics.median(own[what]), f"{_ratio(own[what], reference[what]):+.1%}"]
                rows.append([*row, f"{results.spread(own['steps']):.0%}"])
    notes = [
        f"steps: {_STEPS} dispatched without waiting; step by step: the loss is read after each. Median of {rounds} rounds, all in turn.",
        "against: the first side of the group, median of the ratios of neighbours in time. spread: of the middle 80 %, relative.",
    ]
    results.report(
        "train_step", ["workers x devices", "ms, steps", "against", "ms, step by step", "against", "spread"], rows, notes, samples
    )


def _ratio(own: list[float], reference: list[float]) -> float:
    """How much slower, by pairs: noise of the machine that lasts longer than a round cancels."""
    return statistics.median(a / b for a, b in zip(own, reference, strict=True)) - 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    program() if options.side else main(options.rounds)
    sys.exit(0)
