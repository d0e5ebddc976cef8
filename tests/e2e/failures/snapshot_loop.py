"""A loop whose state is cut over all slices and lives in snapshots only: nothing of it goes through the program. argv: policy, steps."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from everstep import elastic

policy = {"pause": elastic.pause_and_resume(wait_timeout=60), "resize": elastic.replica_resize(wait_timeout=60)}[sys.argv[1]]
goal = int(sys.argv[2])
host = np.arange(3 * 1024, dtype=np.int32)
reached = 0


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return x + jnp.sum(x) % 5


def train(attempt: elastic.Attempt) -> int:
    global reached
    rows = NamedSharding(Mesh(np.array(attempt.devices), ("i",)), P("i"))
    if attempt.number == 1:
        number, state = 0, jax.device_put(host, rows)
    else:
        number, state = snapshots.restore(rows)
        print(f"slices {len(attempt.slices)}: {reached - number} steps lost", flush=True)
    while number < goal or len(attempt.slices) < len(slices.all):
        state = step(state)
        number += 1
        snapshots.save(number, state)
        jax.block_until_ready(state)  # else steps count that were begun when devices were lost already
        reached = max(reached, number)
        attempt.boundary()
    np.testing.assert_array_equal(state, expected(number))
    return number


def expected(steps: int) -> np.ndarray:
    state = host
    for _ in range(steps):
        state = state + state.sum(dtype=np.int32) % 5
    return state


with elastic.Slices() as slices:
    snapshots = elastic.Snapshots(slices)
    elastic.run(train, policy, slices=slices)
    snapshots.wait()
print("done")
