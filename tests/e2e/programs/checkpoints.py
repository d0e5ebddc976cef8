"""Orbax: save and restore of sharded trees."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_GRID = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))


def _tree(scale=1.0):
    specs = {"w": P("x", "y"), "rows": P("x"), "whole": P(), "flat": P(("x", "y"))}
    tree = {k: jax.device_put((np.arange(64).reshape(8, 8) * scale).astype(np.float32), NamedSharding(_GRID, s)) for k, s in specs.items()}
    return tree | {"half": jax.device_put(jnp.arange(8, dtype=jnp.bfloat16), NamedSharding(_GRID, P("y"))), "step": jnp.int32(7 * scale)}


def _like(tree, turn=False):
    """What to restore into: the same shapes, here or lying otherwise."""

    def one(x):
        spec = P(*reversed(x.sharding.spec)) if turn and isinstance(x.sharding, NamedSharding) and x.ndim == len(x.sharding.spec) else P()
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(_GRID, spec) if turn else x.sharding)

    return jax.tree.map(one, tree)


def _described(tree):
    return [jax.device_get(tree), jax.tree.map(lambda x: [np.asarray(s.data) for s in x.addressable_shards], tree)]


def save_and_restore():
    with tempfile.TemporaryDirectory() as root, ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(f"{root}/a", _tree())
        checkpointer.wait_until_finished()
        return [_described(checkpointer.restore(f"{root}/a", _like(_tree(), turn))) for turn in (False, True)]


def manager():
    """Several steps, asynchronous, only the last two kept."""
    with tempfile.TemporaryDirectory() as root:
        options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=1, enable_async_checkpointing=True)
        with ocp.CheckpointManager(root, options=options) as manager:
            for step in range(4):
                manager.save(
                    step, args=ocp.args.Composite(state=ocp.args.StandardSave(_tree(step)), extra=ocp.args.JsonSave({"step": step}))
                )
            manager.wait_until_finished()
            steps = list(manager.all_steps())
            last = manager.latest_step()
            restored = manager.restore(
                last, args=ocp.args.Composite(state=ocp.args.StandardRestore(_like(_tree())), extra=ocp.args.JsonRestore())
            )
        return [steps, last, _described(restored["state"]), restored["extra"]]


def state_changes_while_saving():
    """Donated by the next step while the save of the one before is still running."""
    step = jax.jit(lambda t: jax.tree.map(lambda x: x + 1, t), donate_argnums=0)
    with tempfile.TemporaryDirectory() as root, ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler()) as checkpointer:
        tree = _tree()
        for k in range(3):
            checkpointer.save(f"{root}/{k}", args=ocp.args.StandardSave(tree))
            tree = step(tree)
        checkpointer.wait_until_finished()
        return [_described(checkpointer.restore(f"{root}/{k}", args=ocp.args.StandardRestore(_like(_tree())))) for k in range(3)]
