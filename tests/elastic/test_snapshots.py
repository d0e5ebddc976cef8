"""Snapshots on plain JAX devices, which a test deals out to slices; what is lost there is only said to be."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PREAMBLE = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from everstep import elastic

SLICES = 4

class Source:
    pause = None
    def start(self, tell): self.tell = tell
    def refresh(self): ...
    def close(self): ...

source = Source()
slices = elastic.Slices(source=source)
slices.all = tuple(elastic.Slice(i, tuple(jax.devices()[2 * i : 2 * i + 2])) for i in range(SLICES))
slices._up = frozenset(range(SLICES))
slices._losses = dict.fromkeys(range(SLICES), 0)
snapshots = elastic.Snapshots(slices)

def mesh(*indices):
    return Mesh(np.array([d for each in slices.all for d in each.devices if each.index in indices]), ("data",))

def sharding(spec, *indices):
    return NamedSharding(mesh(*indices), spec)

host = np.arange(48, dtype=np.float32).reshape(24, 2)
everywhere = sharding(P(), 0, 1, 2, 3)
split = sharding(P("data"), 0, 1, 2, 3)
"""

_CASES = {
    "replicated": """
snapshots.save(7, {"x": jax.device_put(host, everywhere)})
source.tell(1, False)
step, state = snapshots.restore(sharding(P(), 0, 2, 3))
assert step == 7
np.testing.assert_array_equal(state["x"], host)
assert state["x"].sharding == sharding(P(), 0, 2, 3)
assert snapshots._complete[0].copies.each()[0].beside is None  # replicas serve
""",
    "sharded over slices, onto the others": """
snapshots.save(7, [jax.device_put(host, split)])
source.tell(1, False)
_, (x,) = snapshots.restore(sharding(P("data"), 0, 2, 3))
np.testing.assert_array_equal(x, host)
assert x.sharding == sharding(P("data"), 0, 2, 3)
assert x.sharding.memory_kind == "device"
""",
    "sharded over slices, back on all": """
snapshots.save(7, [jax.device_put(host, split)])
source.tell(2, False)
source.tell(2, True)
_, (x,) = snapshots.restore(split)
np.testing.assert_array_equal(x, host)
""",
    "two slices that are no neighbours": """
snapshots.save(7, [jax.device_put(host, split)])
source.tell(0, False), source.tell(2, False)
_, (x,) = snapshots.restore(sharding(P("data"), 1, 3))
np.testing.assert_array_equal(x, host)
""",
    "two neighbours": """
snapshots.save(7, [jax.device_put(host, split)])
source.tell(1, False), source.tell(2, False)
try:
    snapshots.restore(sharding(P("data"), 0, 3))
    raise SystemExit("restored")
except elastic.SnapshotLostError as error:
    assert "of that of step 7 an array of shape (24, 2) lacks a part of" in str(error), error
""",
    "what can't be redundant is told": """
import logging
told = []
handler = logging.Handler()
handler.emit = lambda record: told.append(record.getMessage())
logging.getLogger("everstep.elastic.copying").addHandler(handler)
snapshots.save(1, [jax.device_put(host, split), jax.device_put(host, sharding(P(), 0)), jax.device_put(host, everywhere)])
snapshots.save(2, [jax.device_put(host, split), jax.device_put(host, sharding(P(), 0)), jax.device_put(host, everywhere)])
assert told == ["1 of 1 arrays lie on one slice only and can't be copied to another: its loss loses them"], told
snapshots.wait()  # not at work when Python ends
""",
    "not redundant": """
snapshots = elastic.Snapshots(slices, redundant=False)
snapshots.save(7, [jax.device_put(host, split)])
source.tell(1, False)
try:
    snapshots.restore(sharding(P("data"), 0, 2, 3))
    raise SystemExit("restored")
except elastic.SnapshotLostError:
    pass
""",
    "none yet": """
try:
    snapshots.restore(everywhere)
    raise SystemExit("restored")
except elastic.SnapshotLostError as error:
    assert "none has been completed; use the checkpoint" in str(error)
""",
    "the newest ones are kept": """
x = jax.device_put(host, everywhere)
for step in range(5):
    snapshots.save(step, [x + step])
snapshots.wait()
assert snapshots.steps == [3, 4]
step, (y,) = snapshots.restore(everywhere)
assert step == 4
np.testing.assert_array_equal(y, host + 4)
""",
    "an older one where the newest does not survive": """
x = jax.device_put(host, split)
snapshots.save(1, [x])
snapshots.wait()
source.tell(0, False)
source.tell(0, True)
snapshots.save(2, [x + 1])
snapshots.wait()
source.tell(1, False), source.tell(2, False)
try:
    snapshots.restore(sharding(P("data"), 0, 3))
    raise SystemExit("restored")
except elastic.SnapshotLostError:
    pass
""",
    "going back further than the snapshots that were lost": """
for step in (99, 100):
    snapshots.save(step, [jax.device_put(host, split)])
snapshots.wait()
for index in range(SLICES):
    source.tell(index, False), source.tell(index, True)
try:
    snapshots.restore(split)
    raise SystemExit("restored")
except elastic.SnapshotLostError:
    assert snapshots.steps == []
for step in (51, 52, 53):
    snapshots.save(step, [jax.device_put(host + step, split)])
step, (x,) = snapshots.restore(split)
assert (step, snapshots.steps) == (53, [52, 53])
np.testing.assert_array_equal(x, host + 53)
""",
    "donation right after": """
step = jax.jit(lambda x: x * 2, donate_argnums=0)
x = jax.device_put(host, split)
for number in range(20):
    snapshots.save(number, [x])
    x = step(x)
step_, (y,) = snapshots.restore(split)
assert step_ == 19
np.testing.assert_array_equal(y, host * 2.0**19)
""",
    "all kinds of leaves": """
state = {
    "bf16": jax.device_put(host.astype(jnp.bfloat16), split),
    "key": jax.device_put(jax.random.key(3), everywhere),
    "keys": jax.device_put(jax.random.split(jax.random.key(3), 24), split),
    "scalar": jax.device_put(np.int32(3), everywhere),
    "number": 5,
    "host": host.copy(),
    "none": None,
}
snapshots.save(1, state)
state["host"][:] = 0
source.tell(3, False)
target = {k: sharding(P("data") if k in ("bf16", "keys") else P(), 0, 1, 2) for k in state if k != "none"} | {"none": None}
_, back = snapshots.restore(target)
np.testing.assert_array_equal(np.asarray(back["bf16"], np.float32), host)
np.testing.assert_array_equal(jax.random.key_data(back["key"]), jax.random.key_data(state["key"]))
np.testing.assert_array_equal(jax.random.key_data(back["keys"]), jax.random.key_data(state["keys"]))
assert (int(back["scalar"]), back["number"], back["none"]) == (3, 5, None)
np.testing.assert_array_equal(back["host"], host)
""",
    "shardings that are not like the state": """
snapshots.save(1, [jax.device_put(host, split)])
try:
    snapshots.restore({"x": split})
    raise SystemExit("restored")
except ValueError as error:
    assert "the shardings are not like the state" in str(error)
""",
    "to the bit, whatever NaNs carry": """
bits = {dtype: np.arange(65536, dtype=np.uint16) for dtype in ("bfloat16", "float16")} | {"float8_e5m2": np.arange(256, dtype=np.uint8)}
state = {dtype: jax.device_put(np.tile(each, 3).view(jnp.dtype(dtype)), split) for dtype, each in bits.items()}
snapshots.save(1, state)
source.tell(1, False)
_, back = snapshots.restore(sharding(P("data"), 0, 2, 3))
for dtype, each in bits.items():
    np.testing.assert_array_equal(np.asarray(back[dtype]).view(each.dtype), np.tile(each, 3))
""",
    "numbers smaller than a byte": """
values = np.arange(768) % 2
state = {dtype: jax.device_put(values.astype(jnp.dtype(dtype)), split) for dtype in ("int2", "uint2", "int4", "uint4", "float4_e2m1fn")}
snapshots.save(1, state)
source.tell(1, False)
_, back = snapshots.restore(sharding(P("data"), 0, 2, 3))
for dtype in state:
    assert back[dtype].dtype == dtype
    np.testing.assert_array_equal(np.asarray(back[dtype]).astype(int), values)
""",
    "no elements": """
state = [jax.device_put(np.zeros((24, 0), np.float32), split), jax.device_put(np.zeros(0, np.float32), jax.devices()[2])]
snapshots.save(1, state)
source.tell(1, False)
_, back = snapshots.restore([sharding(P("data"), 0, 2, 3), sharding(P(), 0, 2, 3)])
assert [each.shape for each in back] == [(24, 0), (0,)]
""",
    "partly in host memory": """
offloaded = split.with_memory_kind("pinned_host")
snapshots.save(1, [jax.device_put(host, split), jax.device_put(host, offloaded)])
source.tell(1, False)
there = sharding(P("data"), 0, 2, 3)
_, back = snapshots.restore([there, there.with_memory_kind("pinned_host")])
for each in back:
    np.testing.assert_array_equal(each, host)
assert [each.sharding.memory_kind for each in back] == ["device", "pinned_host"]
""",
    "what is restored may be changed": """
places = [split.with_memory_kind("pinned_host"), split]
snapshots.save(1, [jax.device_put(host, places[0]), host.copy()])
for _ in range(2):
    _, (x, y) = snapshots.restore(places)
    np.testing.assert_array_equal(x, host)
    np.testing.assert_array_equal(y, host)
    x.delete()
    y[:] = 0
""",
    "within a mesh": """
kinds = (jax.sharding.AxisType.Explicit,)
explicit = Mesh(np.array(jax.devices()), ("data",), axis_types=kinds)
for each in explicit, Mesh(np.array(jax.devices()[:4]), ("other",)):
    with jax.set_mesh(each):
        snapshots.save(1, [jax.device_put(host, split), jax.device_put(host, jax.devices()[0])])
        _, back = snapshots.restore(sharding(P("data"), 0, 2, 3))
    for x in back:
        np.testing.assert_array_equal(x, host)
""",
    "slices of which not all is used": """
devices = jax.devices()
for some in ([0, 3, 4, 7], [0, 1, 2, 3, 4, 6]):
    used = NamedSharding(Mesh(np.array([devices[number] for number in some]), ("data",)), P("data"))
    snapshots.save(1, [jax.device_put(host, used)])
    source.tell(0, False)
    _, (x,) = snapshots.restore(sharding(P("data"), 1, 3))
    np.testing.assert_array_equal(x, host)
    source.tell(0, True)
""",
    "what is prepared for others does not hold up a save": """
import threading, time
state = [jax.device_put(host, split)]
snapshots.prepare(state)
other = [jax.ShapeDtypeStruct((24, number), np.float32, sharding=split) for number in range(1, 200)]
preparing = threading.Thread(target=snapshots.prepare, args=(other,))
preparing.start()
time.sleep(0.1)
snapshots.save(1, state)
snapshots.wait()
assert preparing.is_alive()
preparing.join()
""",
    "in two dimensions, onto another grid": """
grid = Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))
x = jax.device_put(np.arange(192, dtype=np.int32).reshape(16, 12), NamedSharding(grid, P("a", "b")))
snapshots.save(1, [x])
source.tell(0, False)
left = Mesh(np.array(jax.devices()[2:]).reshape(2, 3), ("a", "b"))
_, (y,) = snapshots.restore(NamedSharding(left, P("a", "b")))
np.testing.assert_array_equal(y, x)
""",
}


@pytest.mark.parametrize("case", _CASES)
def test_snapshots(case: str) -> None:
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    result = subprocess.run(
        [sys.executable, "-c", _PREAMBLE + _CASES[case]], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr


def test_nothing_to_keep() -> None:
    from everstep.elastic import Snapshots

    with pytest.raises(ValueError, match="keep is 0"):
        Snapshots(None, keep=0)  # type: ignore[arg-type]
