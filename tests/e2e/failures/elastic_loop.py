"""A loop run by everstep.elastic that keeps its state on the host. argv: policy, steps. Prints what each attempt used and the outcome."""

import sys

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from everstep import elastic

policy = {"pause": elastic.pause_and_resume(wait_timeout=60), "resize": elastic.replica_resize(wait_timeout=60)}[sys.argv[1]]
goal = int(sys.argv[2])
kept = 0, np.arange(24, dtype=np.int32)
step = jax.jit(lambda x: x + x.sum() % 5)


def train(attempt: elastic.Attempt) -> str:
    global kept
    print("slices", *(each.index for each in attempt.slices), flush=True)
    for event in attempt.history[-1:]:
        print(type(event.error).__name__, *([event.error.worker] if isinstance(event.error, elastic.SliceLostError) else []), flush=True)
    number, state = kept
    state = jax.device_put(state, NamedSharding(Mesh(np.array(attempt.devices), ("i",)), P("i")))
    announced = False
    while number < goal or len(attempt.slices) < len(slices.all) or attempt.leaving:  # until it has grown back
        if attempt.leaving and not announced:
            announced = True
            print("leaving", *(each.index for each in attempt.leaving), flush=True)
        state = step(state)
        number += 1
        kept = number, np.asarray(state)
        attempt.boundary()
    return "done"


with elastic.Slices() as slices:
    print(elastic.run(train, policy, slices=slices))
number, state = kept
expected = np.arange(24, dtype=np.int32)
for _ in range(number):
    expected = expected + expected.sum() % 5
np.testing.assert_array_equal(state, expected)
