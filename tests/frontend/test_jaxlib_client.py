"""The client inside the installed jaxlib, against the frontend on a runtime in memory. No program is compiled here: see tests/e2e."""

from __future__ import annotations

import asyncio
import os
import sys

from frontend.doubles import FakeRuntime
from frontend.harness import serving

PROGRAM = """
import os
import jax, ml_dtypes
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

if "proxy" not in jax._src.xla_bridge._backend_factories:  # jax < 0.12
    from jax.extend import backend
    from jax.extend.backend import ifrt_proxy
    def connect():
        return ifrt_proxy.get_client(os.environ["JAX_BACKEND_TARGET"], ifrt_proxy.ClientConnectionOptions())
    backend.register_backend_factory("proxy", connect, priority=-1)

devices = jax.devices()
assert [d.slice_index for d in devices] == [0, 0, 1, 1], devices
assert [repr(d) for d in devices] == [f"CpuDevice(id={n})" for n in range(4)], devices
assert [str(d) for d in devices] == [f"cpu:{n}" for n in range(4)]
assert all(d.platform == "cpu" and d.process_index == 0 for d in devices)
assert [m.kind for m in devices[3].addressable_memories()] == ["device", "pinned_host", "unpinned_host"]
assert devices[3].default_memory().kind == "device"
assert devices[0].client.runtime_type == "proxy/pathways"
assert jax.local_device_count() == 4

def same(array, numpy):
    np.testing.assert_array_equal(np.asarray(array), numpy)

ref = np.arange(64, dtype=np.int32).reshape(8, 8)
mesh = Mesh(np.array(devices).reshape(2, 2), ("a", "b"))
for spec in (P(), P("a"), P(None, "b"), P("b", "a"), P(("a", "b")), P(None, ("b", "a"))):
    array = jax.device_put(ref, NamedSharding(mesh, spec))
    same(array, ref)
    for shard in array.addressable_shards:
        same(shard.data, ref[shard.index])
same(jax.device_put(ref, devices[1]), ref)
part, rest = Mesh(np.array(devices[:2]), ("a",)), Mesh(np.array(devices[2:]), ("a",))
same(jax.device_put(jax.device_put(ref, NamedSharding(part, P("a"))), NamedSharding(rest, P("a"))), ref)
host = jax.device_put(ref, NamedSharding(mesh, P("a"), memory_kind="pinned_host"))
same(host, ref)
assert host.sharding.memory_kind == "pinned_host"
for numpy in (np.zeros((0, 3), np.float32), np.float32(3), ref[:, ::2], ref.T, ref[:, :1]):
    same(jax.device_put(numpy), numpy)
for dtype in (np.bool_, np.int8, np.uint16, np.float16, np.complex64, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.uint2,
              ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn):
    numpy = np.ones(5, np.float32).astype(dtype)
    same(jax.device_put(numpy), numpy)
    jax.device_put(numpy).format
words = np.array([["a", "bcd"], ["", "e"]], dtype=np.dtypes.StringDType())
same(jax.device_put(words, SingleDeviceSharding(devices[0])), words)
array = jax.device_put(ref)
array.delete()
assert array.is_deleted()
loop = [jax.device_put(np.int32(n)) for n in range(2000)]  # each opens a call of its own
assert [int(x) for x in loop[::100]] == list(range(0, 2000, 100))
print("done")
"""


def test_jaxlibs_own_client_gets_on_with_the_frontend() -> None:
    async def main() -> tuple[int | None, str]:
        runtime = FakeRuntime()
        async with serving(runtime) as address:
            environment = os.environ | {
                "JAX_PLATFORMS": "proxy,cpu",
                "JAX_BACKEND_TARGET": f"grpc://{address}",
                "IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS": "true",
            }
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", PROGRAM, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
            )
            output, _ = await process.communicate()
            (session,) = runtime.sessions
            await session.closed.wait()
            return process.returncode, output.decode()

    code, output = asyncio.run(main())
    assert code == 0, output
    assert "\ndone\n" in "\n" + output
