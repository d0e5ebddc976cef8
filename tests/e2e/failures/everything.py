"""Does a bit of everything on all devices, again and again, until it has failed and then succeeded twice. Prints failures, then "done".

That the successor is not there yet is printed only if it is the first failure.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

SECONDS = 60.0

devices = jax.devices()
mesh = Mesh(np.array(devices), ("i",))
rows, everywhere = (NamedSharding(mesh, spec) for spec in (P("i"), P()))
here, there = (NamedSharding(Mesh(np.array(half), ("i",)), P("i")) for half in np.split(np.array(devices), 2))
host = (np.arange(64, dtype=np.float32) % 3).reshape(8, 8)  # exact in every order of summing


@jax.jit
def product(x: jax.Array) -> jax.Array:
    return jax.lax.with_sharding_constraint(x @ x.T, rows)


@jax.jit
def called(x: jax.Array) -> jax.Array:
    return jax.pure_callback(lambda x: x + 1, jax.ShapeDtypeStruct((), np.float32), x.sum())


def everything() -> None:
    x = jax.device_put(host, rows)
    y = product(x)
    to_and_fro = jax.device_put(jax.device_put(jax.device_put(host, here), there), here)  # from worker to worker
    last = jax.device_put(jnp.float32(3), devices[-1])
    np.testing.assert_array_equal(y, host @ host.T)
    np.testing.assert_array_equal(to_and_fro, host)
    np.testing.assert_array_equal(called(last), 4)
    np.testing.assert_array_equal(jax.device_put(product(y), everywhere), (host @ host.T) @ (host @ host.T).T)


successes = failures = 0
deadline = time.monotonic() + SECONDS
while not (failures and successes >= 2):
    assert time.monotonic() < deadline, f"{failures} failures, {successes} successes since"
    try:
        everything()
        successes += 1
    except jax.errors.JaxRuntimeError as error:
        if not failures or "successor" not in str(error):  # not again and again while it is away
            print(str(error).splitlines()[0], flush=True)
        failures += 1
        successes = 0
        time.sleep(0.02)
print("done", flush=True)
