"""Steps over all devices until its input ends; tells of losses, of going on with what is left, and of being complete again."""

import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = jax.devices()
ended = threading.Event()


def step(devices):
    sharding = NamedSharding(Mesh(np.array(devices), ("x",)), P("x"))
    array = jax.device_put(np.ones((len(devices), 100_000), np.float32), sharding)
    assert float(jax.jit(jnp.sum)(array)) == len(devices) * 100_000


def attempt(devices):
    """What it fails with, if it does."""
    try:
        step(devices)
    except jax.errors.JaxRuntimeError as error:
        if "DATA_LOSS" not in str(error):
            raise
        return str(error)


def listen():
    sys.stdin.read()
    ended.set()


threading.Thread(target=listen, daemon=True).start()
step(DEVICES)
print("started", flush=True)
whole, count = True, 0
while not ended.is_set():
    failure = attempt(DEVICES)
    count += failure is None
    if whole and failure is not None:
        print(failure, flush=True)
        while attempt([d for d in DEVICES if f"slice {d.slice_index}," not in failure]):
            pass
        print("going on", flush=True)
    if not whole and failure is None:
        print("complete", flush=True)
    whole = failure is None
print(f"{count} steps", flush=True)
