"""NumPy inputs are read when the call returns, whatever their strides."""

import subprocess
import sys

PROGRAM = """
import jax, jax.numpy as jnp, numpy as np
from everstep.jax_plugin import host_inputs
from jax._src.interpreters import pxla
from jax._src.lax import lax

host_inputs._is_remote = lambda sharding: True  # as for devices of the proxy backend
seen = []
original = pxla.shard_arg_handlers[np.ndarray]
for kind, handler in list(pxla.shard_arg_handlers.items()):
    if handler is original:
        pxla.shard_arg_handlers[kind] = lambda arrays, *rest: (seen.extend(arrays), original(arrays, *rest))[1]
recorder = pxla.shard_arg_handlers[np.ndarray]
for kind in list(pxla.shard_arg_handlers):
    if pxla.shard_arg_handlers[kind].__name__ == "<lambda>":
        pxla.shard_arg_handlers[kind] = recorder
host_inputs.install()
once = pxla.shard_arg_handlers[np.ndarray], lax.stage
host_inputs.install()
assert once == (pxla.shard_arg_handlers[np.ndarray], lax.stage), "installing again changes nothing"

x = np.arange(12, dtype=np.float32).reshape(3, 4)
for value in (x, x[::-1], x.T, np.broadcast_to(x[0], (5, 4))):
    del seen[:]
    np.testing.assert_array_equal(jax.device_put(value), value)
    [handed] = seen
    assert not np.shares_memory(handed, value)
    assert min(handed.strides) > 0
    np.testing.assert_array_equal(jnp.array(value), value)
"""


def test_arrays_are_copied_on_their_way() -> None:
    result = subprocess.run([sys.executable, "-c", PROGRAM], env={"JAX_PLATFORMS": "cpu"}, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
