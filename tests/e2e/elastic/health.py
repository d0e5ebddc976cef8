"""Asks pathwaysutils which slices there are, while one of them dies and comes back. Tells and waits as trainer.py does."""

import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pathwaysutils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from pathwaysutils.elastic import elastic
from pathwaysutils.elastic import manager as elastic_manager

PATIENCE = 60  # seconds to wait for a slice


def tell(point, **facts):
    print(json.dumps({"point": point, **facts}), flush=True)
    sys.stdin.readline()


pathwaysutils.initialize()
manager = elastic_manager.Manager()
assert elastic.wait_for_slices(poll_interval=0.1, timeout=PATIENCE) == {0, 1}
tell("up", active=sorted(manager.active_slice_indices), ids=[[device.id for device in part] for part in manager.slice_to_devices.values()])

# A slice has stopped. The check starts programs on it, which succeeds, and hears the truth when it waits for them.
started = time.monotonic()
manager.active_slice_indices = elastic.get_active_slice_indices(manager.slice_to_devices)
seconds = time.monotonic() - started
tell("stopped", active=sorted(manager.active_slice_indices), seconds=seconds, half=manager.scale_by_active_slices(8))

# Somebody notices when it comes back.
manager.start_monitoring(poll_interval=0.1)
deadline = time.monotonic() + PATIENCE
while not manager.available_inactive_slices:
    assert time.monotonic() < deadline, "the slice does not come back"
    time.sleep(0.02)
tell("noticed", available=sorted(manager.available_inactive_slices))
manager.active_slice_indices = elastic.wait_for_slices(poll_interval=0.1, timeout=PATIENCE, slice_to_devices=manager.slice_to_devices)
manager.close()
tell("back", active=sorted(manager.active_slice_indices), available=sorted(manager.available_inactive_slices))

# It is taken away again, with arrays on it: they can be deleted, all of them, and be made anew in another world.
rows = NamedSharding(Mesh(np.array(jax.devices()), ("i",)), P("i"))
arrays = [jax.device_put(np.arange(8.0, dtype=np.float32), rows), jnp.ones(3), jax.device_put(np.ones(2), jax.devices()[-1])]
jax.block_until_ready(arrays)
tell("holding")
try:
    while True:
        jax.block_until_ready(arrays[0] + 1)
except jax.errors.JaxRuntimeError as error:
    message, is_known = str(error), elastic.is_error_due_to_slice_down(error)
for array in jax.live_arrays():
    array.delete()
assert all(array.is_deleted() for array in arrays)
jax.clear_caches()
elastic.wait_for_slices(poll_interval=0.1, timeout=PATIENCE)
total = jnp.sum(jax.device_put(np.arange(8.0, dtype=np.float32), rows))
tell("end", error=message, is_known=is_known, total=float(total))
