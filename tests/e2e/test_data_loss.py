"""A worker dies: the program hears of it as DATA_LOSS, and goes on with what is left."""

from __future__ import annotations

import sys

import pytest
from processes import Running

_PROGRAM = """
import json, os, signal, subprocess, sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

status = subprocess.run([sys.executable, "-m", "everstep", "status", "--json"], capture_output=True, text=True, check=True)
workers = [worker["pid"] for part in json.loads(status.stdout)["slices"] for worker in part["workers"]]
devices = jax.devices()
victim = VICTIM
living = [device for device in devices if device.slice_index != victim]
rows = NamedSharding(Mesh(np.array(devices), ("i",)), P("i"))
x = jax.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), rows)
step = jax.jit(lambda x: x @ x.T / 64)
y = step(x)
if BUSY:
    for _ in range(200):
        y = step(y)
else:
    y.block_until_ready()
os.kill(workers[victim], signal.SIGKILL)
try:
    while True:
        y = step(y)
        y.block_until_ready()
except jax.errors.JaxRuntimeError as error:
    lost = str(error)
assert lost.startswith(f"DATA_LOSS: worker s{victim}w0 (slice {victim}, incarnation 1"), lost
assert "SIGKILL" in lost or "connection closed" in lost, lost  # the second if the process takes long to end

# What was computed from the lost fails too, at once; what is left is still there.
try:
    (step(y) + 1).block_until_ready()
    raise SystemExit("not lost")
except jax.errors.JaxRuntimeError as error:
    assert "DATA_LOSS" in str(error)
shards = {shard.device: np.asarray(shard.data) for shard in x.addressable_shards if shard.device in living}
assert set(shards) == set(living) and all(value.shape == (2, 8) for value in shards.values())

# And the others go on, in a world of their own.
rows = NamedSharding(Mesh(np.array(living), ("i",)), P("i"))
z = jax.device_put(np.ones((4, 4), np.float32), rows)
np.testing.assert_array_equal(jax.jit(lambda z: z @ z.T)(z), np.full((4, 4), 4))
y.delete()
print("went on", flush=True)
"""


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_death_of_a_worker(victim: int, busy: bool) -> None:
    program = _PROGRAM.replace("VICTIM", str(victim)).replace("BUSY", str(busy))
    running = Running("run", "--slices", "2", "--devices-per-worker", "2", "--", sys.executable, "-c", program)
    try:
        code, output, errors = running.finish()
    finally:
        running.close()
    assert (code, output) == (0, "went on\n"), errors
    assert f"worker s{victim}w0" in errors
