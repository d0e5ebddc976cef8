"""Checkpoints by the workers. One dies while it writes the second, its successor while it reads the first: `checkpoint.py DIRECTORY`."""

import sys
import time

import jax
import numpy as np
import orbax.checkpoint as ocp
import pathwaysutils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

pathwaysutils.initialize()
mesh = Mesh(np.array(jax.devices()), ("x",))
sharding = NamedSharding(mesh, P("x"))


def state(step):
    return {name: jax.device_put(np.full((4, 8), step + number, np.float32), sharding) for number, name in enumerate("abcd")}


def manager():
    return ocp.CheckpointManager(sys.argv[1], item_handlers=ocp.StandardCheckpointHandler(use_ocdbt=False))


def tell(error):
    print(f"{type(error).__name__}: {error}".splitlines()[0])


checkpoints = manager()
checkpoints.save(1, args=ocp.args.StandardSave(state(1)))
checkpoints.wait_until_finished()
checkpoints.save(2, args=ocp.args.StandardSave(state(2)))
try:
    checkpoints.wait_until_finished()
except Exception as error:
    tell(error)
wanted = {name: jax.ShapeDtypeStruct((4, 8), np.float32, sharding=sharding) for name in "abcd"}
while True:
    checkpoints = manager()  # discards what was not committed
    assert checkpoints.all_steps() == [1]
    try:
        restored = checkpoints.restore(1, args=ocp.args.StandardRestore(wanted))
        break
    except jax.errors.JaxRuntimeError as error:
        if "is not up yet" not in str(error):
            tell(error)
        time.sleep(0.05)
for number, name in enumerate("abcd"):
    np.testing.assert_array_equal(np.asarray(restored[name]), np.full((4, 8), 1 + number, np.float32))
checkpoints.save(2, args=ocp.args.StandardSave(state(2)))  # the same step again, on the worker's successor
checkpoints.wait_until_finished()
assert checkpoints.all_steps() == [1, 2]
restored = checkpoints.restore(2, args=ocp.args.StandardRestore(wanted))
np.testing.assert_array_equal(np.asarray(restored["d"]), np.full((4, 8), 5, np.float32))
checkpoints.close()
print("done")
