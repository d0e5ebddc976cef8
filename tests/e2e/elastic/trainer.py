"""Trains a small model the way users of pathwaysutils do: elastic_retry, and Orbax with asynchronous saves.

    python trainer.py DIRECTORY '{"retry": "elastic_retry", "options": {"poll_interval": 0.2}, "steps": 12, "period": 3}'

Tells what it is about to do, and what it has done, as lines of JSON; after each it waits for a line before it goes on. So the test knows
what it kills a worker in. A missing slice that has come back is taken in again; "grow_at" names a step at which to wait for that.
"""

import json
import logging
import os
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pathwaysutils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from pathwaysutils.elastic import manager as elastic_manager

ROWS, WIDTH, HIDDEN = 16, 32, 64
PATIENCE = 60  # seconds to wait for a slice

directory, plan = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
optimizer = optax.adamw(1e-2)
attempt = 0


def tell(point, **facts):
    print(json.dumps({"point": point, "pid": os.getpid(), "attempt": attempt, **facts}), flush=True)
    sys.stdin.readline()


def batch(step):
    """From the step alone: the same rows come again when a step is done again."""
    x = np.random.default_rng(step).standard_normal((ROWS, WIDTH), np.float32)
    return x, np.tanh(x[:, ::-1])


def initial():
    one, two, dropout = jax.random.split(jax.random.key(0), 3)
    params = {
        "in": jax.random.normal(one, (WIDTH, HIDDEN)) / 6,
        "out": jax.random.normal(two, (HIDDEN, WIDTH)) / 8,
        "bias": jnp.full(WIDTH, 0.1),
    }
    return {"params": params, "optimizer": optimizer.init(params), "dropout": jax.random.key_data(dropout), "steps": jnp.int32(0)}


def update(state, x, y):
    key = jax.random.fold_in(jax.random.wrap_key_data(state["dropout"]), state["steps"])

    def loss(params):
        hidden = jnp.tanh(x @ params["in"]) * jax.random.bernoulli(key, 0.9, (ROWS, HIDDEN))
        return jnp.mean((hidden @ params["out"] + params["bias"] - y) ** 2)

    value, gradients = jax.value_and_grad(loss)(state["params"])
    updates, optimizer_state = optimizer.update(gradients, state["optimizer"], state["params"])
    new = {"params": optax.apply_updates(state["params"], updates), "optimizer": optimizer_state, "steps": state["steps"] + 1}
    return state | new, value


def restore(checkpoints, step, shapes, shardings):
    like = jax.tree.map(lambda x, sharding: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), shapes, shardings)
    state = checkpoints.restore(step, args=ocp.args.StandardRestore(like))
    assert int(state["steps"]) == step + 1, state["steps"]
    return state


def train():
    global attempt
    attempt += 1
    slices = sorted(manager.active_slice_indices)
    mesh = Mesh(np.array([manager.slice_to_devices[index] for index in slices]), ("data", "fsdp"))
    shapes = jax.eval_shape(initial)
    shardings = jax.tree.map(lambda x: NamedSharding(mesh, P("fsdp") if x.ndim == 2 else P()), shapes)
    rows = NamedSharding(mesh, P(("data", "fsdp")))
    step_function = jax.jit(update, out_shardings=(shardings, NamedSharding(mesh, P())), donate_argnums=0)
    options = ocp.CheckpointManagerOptions(save_interval_steps=plan["period"], max_to_keep=2, enable_async_checkpointing=True)
    with ocp.CheckpointManager(directory / "checkpoints", options=options) as checkpoints:
        latest = checkpoints.latest_step()
        tell("start", slices=slices, latest=latest)
        if latest is None:
            state = jax.jit(initial, out_shardings=shardings)()
        else:
            tell("restore", step=latest)
            state = restore(checkpoints, latest, shapes, shardings)
            tell("restored", step=latest)
        for step in range(0 if latest is None else latest + 1, plan["steps"]):
            tell("step", step=step)
            state, loss = step_function(state, *(jax.device_put(part, rows) for part in batch(step)))
            tell("done", step=step, slices=slices, loss=float(loss).hex())
            if checkpoints.should_save(step):
                tell("save", step=step)
                checkpoints.save(step, args=ocp.args.StandardSave(state))
                tell("saved", step=step)
            grow_if_possible(step, checkpoints)
        final = [np.asarray(leaf) for leaf in jax.tree.leaves(state)]
    tell("end", state=[leaf.tobytes().hex() for leaf in final])


def grow_if_possible(step, checkpoints):
    deadline = time.monotonic() + PATIENCE
    while step == plan.get("grow_at") and manager.inactive_slice_indices and not manager.available_inactive_slices:
        assert time.monotonic() < deadline, "the slice does not come back"
        time.sleep(0.05)
    if manager.available_inactive_slices:
        checkpoints.wait_until_finished()
        raise elastic_manager.ScaleUpSignalError


logging.basicConfig(filename=directory / "log", level=logging.INFO, force=True)
pathwaysutils.initialize()
manager = elastic_manager.Manager()
getattr(manager, plan["retry"])(**plan["options"])(train)()
