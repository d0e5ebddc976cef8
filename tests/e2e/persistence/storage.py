"""Save and restore as pathwaysutils lets one, without Orbax: to S3, and to storage that hangs: `storage.py URL DIRECTORY`."""

import datetime
import fcntl
import pathlib
import sys
import time

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from pathwaysutils.persistence import helper

url, directory = sys.argv[1], pathlib.Path(sys.argv[2])
mesh = Mesh(np.array(jax.devices()), ("x",))
value = np.arange(24, dtype=np.float32).reshape(4, 6)
array = jax.device_put(value, NamedSharding(mesh, P("x")))


def restore(location, spec, name="weights", shape=(4, 6), dtype=np.float32):
    shardings = [NamedSharding(mesh, spec)]
    arrays, future = helper.read_arrays(location, [name], [dtype], [shape], shardings, mesh.devices, datetime.timedelta(minutes=1))
    future.result()
    return arrays[0]


def error_of(action):
    try:
        action()
    except jax.errors.JaxRuntimeError as error:
        return str(error)
    raise AssertionError("it went well")


helper.write_arrays(url, ["weights"], [array], datetime.timedelta(minutes=1)).result()
np.testing.assert_array_equal(np.asarray(restore(url, P(None, "x"))), value)
print(error_of(lambda: restore(url, P(), name="biases")))
print(error_of(lambda: restore(url, P(), shape=(4, 4))))
print(error_of(lambda: restore(url, P(), dtype=np.int32)))
print(error_of(helper.write_arrays("s3://elsewhere/1", ["weights"], [array], datetime.timedelta(minutes=1)).result))

lock = directory / "weights" / ".zarray.__lock"
lock.parent.mkdir()
with lock.open("w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)  # whoever wants to write there waits
    start = time.monotonic()
    future = helper.write_arrays(str(directory), ["weights"], [array], datetime.timedelta(seconds=1.5))
    np.testing.assert_array_equal(np.asarray(array + 1), value + 1)  # the devices go on
    print(error_of(future.result))
    assert 1 < time.monotonic() - start < 20
    # And so does other storage.
    helper.write_arrays(f"{url}/again", ["weights"], [array], datetime.timedelta(minutes=1)).result()
np.testing.assert_array_equal(np.asarray(restore(f"{url}/again", P())), value)
