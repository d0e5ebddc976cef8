"""Arrays of one backend that are wanted on another go by way of the host. (tests/e2e/programs/arrays.py does it for real.)"""

import os
import subprocess
import sys

PROGRAM = """
import jax, numpy as np
from everstep.jax_plugin import foreign_arrays
from jax._src.array import ArrayImpl
from jax._src.interpreters import pxla

foreign_arrays._client = lambda sharding: next(iter(sharding.device_set))  # each device is a backend of its own
original, seen = pxla.shard_arg_handlers[np.ndarray], []
pxla.shard_arg_handlers[np.ndarray] = lambda arrays, *rest: (seen.extend(arrays), original(arrays, *rest))[1]
here, there = jax.devices()
foreign_arrays.install(lambda client: client is there)
once = pxla.shard_arg_handlers[ArrayImpl]
foreign_arrays.install(lambda client: client is here)
assert once is pxla.shard_arg_handlers[ArrayImpl], "installing again changes nothing"

local = jax.device_put(np.arange(3), here)
del seen[:]
add = jax.jit(lambda a, b: a + b)
for _ in range(3):
    with jax.default_device(here):
        stays = jax.numpy.arange(3) + 1
    with jax.default_device(there):
        moves = jax.numpy.arange(3) * 2
    result = add(jax.device_put(local, there), stays)
    assert result.devices() == {there} and result.tolist() == [1, 3, 5], result
    result = add(local, moves)
    assert result.devices() == {here} and result.tolist() == [0, 3, 6], result
assert any(each.tolist() == [1, 2, 3] for each in seen), seen
assert any(each.tolist() == [0, 2, 4] for each in seen), seen
"""


def test_arrays_of_another_backend_go_by_way_of_the_host() -> None:
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    python_path = {name: value for name, value in os.environ.items() if name == "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment | python_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
