"""Run as a program: lowers what the tests need as the proxy client of JAX would send it, and writes it to the file named.

In a process of its own, because the number of CPU devices of JAX is settled when it is first used.
"""

from __future__ import annotations

import pathlib
import pickle
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

COUNT = 4


def serialize(lowered: Any, callbacks: tuple[str, ...] = ()) -> bytes:
    module = lowered.compiler_ir("stablehlo")
    if callbacks:
        with module.context:
            module.operation.attributes["everstep.host_callbacks"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in callbacks])
    return bytes(stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version(), True))


def options(partitions: int) -> bytes:
    made = _jax.CompileOptions()
    made.num_replicas, made.num_partitions = 1, partitions
    build = made.executable_build_options
    build.num_replicas, build.num_partitions = 1, partitions
    build.use_spmd_partitioning = build.use_shardy_partitioner = True
    made.device_assignment = _jax.DeviceAssignment.create(np.arange(partitions, dtype=np.int32).reshape(1, partitions))
    return bytes(made.SerializeAsString())


def sharded(partitions: int) -> tuple[NamedSharding, NamedSharding]:
    mesh = Mesh(np.array(jax.devices()[:partitions]), ("x",))
    return NamedSharding(mesh, P("x")), NamedSharding(mesh, P())


def make() -> dict[str, tuple[bytes, bytes, int]]:
    """Name to artifact, options, partitions."""
    made: dict[str, tuple[bytes, bytes, int]] = {}

    def add(name: str, lowered: Any, partitions: int = 1, callbacks: tuple[str, ...] = ()) -> None:
        made[name] = serialize(lowered, callbacks), options(partitions), partitions

    floats = jnp.zeros((2, 2), jnp.float32)
    add("double", jax.jit(lambda x: x * 2).lower(floats))
    add("add", jax.jit(lambda x, y: x + y).lower(floats, floats))
    add("donate", jax.jit(lambda x: x + 1, donate_argnums=0).lower(floats))
    add("int4", jax.jit(lambda x: x + x).lower(jnp.zeros((3,), jnp.int4)))
    add("empty", jax.jit(lambda x: jnp.concatenate([x, x])).lower(jnp.zeros((0, 3), jnp.float32)))
    add("nothing", jax.jit(lambda x: (), keep_unused=True).lower(floats))
    host = SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    add("to_host", jax.jit(lambda x: x, out_shardings=host).lower(floats))
    add("many", jax.jit(lambda *xs: [x + 1 for x in xs], donate_argnums=tuple(range(600))).lower(*[jnp.zeros((8,), jnp.float32)] * 600))
    add("slow", jax.jit(lambda x: jax.lax.fori_loop(0, 1500, lambda _, y: jnp.tanh(y @ y), x)).lower(jnp.zeros((256, 256), jnp.float32)))
    add("huge", jax.jit(lambda x: jnp.broadcast_to(x[:, :, None], (2, 2, 1 << 44))).lower(floats))

    shape = jax.ShapeDtypeStruct((2, 2), np.float32)
    callback = jax.jit(lambda x: jax.pure_callback(lambda y: y, shape, x) + 1)
    add("callback", callback.lower(floats), 1, ("process/7",))

    mesh = sharded(4)[0].mesh
    called = jax.shard_map(
        lambda x: jax.lax.psum(jax.pure_callback(lambda y: y, shape, x), "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
    )
    add("callback4", jax.jit(called).lower(jnp.zeros((8, 2), jnp.float32)), 4, ("process/9",))

    def ordered(x: jax.Array) -> jax.Array:
        first = io_callback(lambda y: y, shape, x, ordered=True)
        return io_callback(lambda y: y, shape, first, ordered=True)

    add("ordered", jax.jit(ordered).lower(floats), 1, ("process/1", "process/2"))
    inspect = jax.jit(lambda x: (jax.debug.inspect_array_sharding(x, callback=print), x)[1])
    add("inspect", inspect.lower(jax.device_put(np.zeros((4, 2), np.float32), sharded(2)[0])), 2)

    large = jnp.zeros((1024, 512), jnp.float32)
    add("large", jax.jit(lambda x: x + 1, donate_argnums=0).lower(large))
    for partitions in (2, 4):
        split, replicated = sharded(partitions)
        wide = jnp.zeros((2 * partitions, 2), jnp.float32)
        total = jax.jit(lambda x: (x * 2, x.sum()), in_shardings=split, out_shardings=(split, replicated))
        add(f"sum{partitions}", total.lower(wide), partitions)
        add(f"twice{partitions}", jax.jit(lambda x: x * 2, in_shardings=split, out_shardings=split).lower(wide), partitions)
        mesh = split.mesh
        sums = jax.shard_map(lambda x, y: (jax.lax.psum(x, "x"), jax.lax.psum(y, "x")), mesh=mesh, in_specs=P("x"), out_specs=P())
        add(f"twosums{partitions}", jax.jit(sums).lower(wide, wide), partitions)
        step = jax.jit(lambda x: x + x.sum(), in_shardings=split, out_shardings=split, donate_argnums=0)
        add(f"step{partitions}", step.lower(wide), partitions)
    return made


if __name__ == "__main__":
    jax.config.update("jax_num_cpu_devices", COUNT)
    pathlib.Path(sys.argv[1]).write_bytes(pickle.dumps(make()))
