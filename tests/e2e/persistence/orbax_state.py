"""Save and restore one known state with Orbax's CheckpointManager: `orbax_state.py [save=DIRECTORY] [restore=DIRECTORY]...`, in that order.

Arrays in DIRECTORY/ocdbt are in one database, Orbax's default; else each is in a directory of its own.

With ENABLE_PATHWAYS_PERSISTENCE=1 on Everstep the workers do it, on plain JAX this process does.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pathwaysutils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

pathwaysutils.initialize()

SPECS = {
    "both": P("slice", "device"),
    "rows": P(("slice", "device")),
    "half": P(None, "device"),
    "bf16": P("device", "slice"),
    "int": P("slice"),
    "bytes": P(),
    "scalar": P(),
}


def contents():
    random = np.random.default_rng(0)
    return {
        "both": random.normal(size=(8, 12)).astype(np.float32),
        "rows": random.normal(size=(12, 3)).astype(np.float32),
        "half": random.normal(size=(2, 6)).astype(np.float64).astype(np.float32),
        "bf16": random.normal(size=(4, 6)).astype(jnp.bfloat16),
        "int": np.arange(10, dtype=np.int32),
        "bytes": random.integers(0, 256, size=(5,)).astype(np.uint8),
        "scalar": np.float32(0.5),
    }


def meshes():
    """Two slices as they are, their devices in another order, one slice."""
    devices = np.array(jax.devices()).reshape(2, 2)
    return [Mesh(devices, ("slice", "device")), Mesh(devices.T, ("slice", "device")), Mesh(devices[1:], ("slice", "device"))]


def manager(directory):
    return ocp.CheckpointManager(directory, item_handlers=ocp.StandardCheckpointHandler(use_ocdbt=directory.endswith("ocdbt")))


def save(directory):
    state = {name: jax.device_put(value, NamedSharding(meshes()[0], SPECS[name])) for name, value in contents().items()}
    step = jax.jit(lambda state: jax.tree.map(lambda value: value + value, state), donate_argnums=0)
    with manager(directory) as checkpoints:
        checkpoints.save(1, args=ocp.args.StandardSave(state))
        for _ in range(5):
            state = step(state)  # takes over the memory that is being written, unless somebody takes care
        checkpoints.wait_until_finished()
        assert checkpoints.latest_step() == 1
    np.testing.assert_array_equal(state["int"], contents()["int"] << 5)


def restore(directory):
    for mesh in meshes():
        wanted = {
            name: jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=NamedSharding(mesh, SPECS[name]))
            for name, value in contents().items()
        }
        with manager(directory) as checkpoints:
            restored = checkpoints.restore(1, args=ocp.args.StandardRestore(wanted))
        for name, expected in contents().items():
            assert restored[name].sharding == wanted[name].sharding
            assert restored[name].dtype == expected.dtype
            np.testing.assert_array_equal(np.asarray(restored[name]), expected, err_msg=name)
            for shard in restored[name].addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), expected[shard.index], err_msg=name)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        action, _, directory = argument.partition("=")
        {"save": save, "restore": restore}[action](directory)
    print(type(ocp.type_handlers.get_type_handler(jax.Array)).__name__)
