"""What plain CPU JAX does not survive everywhere: 0.10.2 hangs with 32 unfinished programs that hold collectives, and dies of an array that
is donated and used in one call. Workers hold the arrays of all programs, so they must stand it.
"""

from __future__ import annotations

import pytest
from e2e.clusters import Cluster
from e2e.conftest import GetCluster

_PREAMBLE = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()), ("i",))
rows = NamedSharding(mesh, P("i"))
host = np.arange(64, dtype=np.float32).reshape(8, 8) / 64
x = jax.device_put(host, rows)
"""

_LONG_CHAIN = """
f = jax.jit(lambda x: jnp.roll(x, 1, 0) + 1)
y = x
for _ in range(500):
    y = f(y)
np.testing.assert_array_equal(y, np.roll(host, 500, 0) + 500)
"""

_MANY_IN_FLIGHT = """
f = jax.jit(lambda x, k: x @ x.T * k)
ys = [f(x, np.float32(k)) for k in range(300)]
np.testing.assert_allclose(jnp.stack(ys), np.arange(300)[:, None, None] * (host @ host.T), rtol=1e-5)
"""

_DONATED_AND_USED = """
f = jax.jit(lambda a, b: (a + b, b), donate_argnums=0)
for _ in range(5):
    try:
        jax.block_until_ready(f(x, x))
        raise SystemExit("accepted")
    except (ValueError, RuntimeError) as error:
        assert "donate" in str(error) or "deleted" in str(error), error
    x = jax.device_put(host, rows)
np.testing.assert_array_equal(x + 1, host + 1)
"""

_OUT_OF_MEMORY = """
try:
    jax.block_until_ready(jnp.zeros((1 << 20, 1 << 20, 1 << 10), jnp.int8))
    raise SystemExit("accepted")
except (ValueError, RuntimeError) as error:
    assert not any(word in str(error) for word in ("DATA_LOSS", "INTERNAL", "NOT_FOUND", "DEADLINE_EXCEEDED")), error
np.testing.assert_array_equal(x + 1, host + 1)
"""


@pytest.fixture(params=[(1, 1, 4), (1, 2, 2)], ids=["1x1x4", "1x2x2"])
def standing(request: pytest.FixtureRequest, cluster: GetCluster) -> Cluster:
    return cluster(*request.param)


@pytest.mark.parametrize(
    "program",
    [_LONG_CHAIN, _MANY_IN_FLIGHT, _DONATED_AND_USED, _OUT_OF_MEMORY],
    ids=["long chain", "many in flight", "donated and used", "out of memory"],
)
def test_survives(standing: Cluster, program: str) -> None:
    workers = standing.workers()
    standing.run("-c", _PREAMBLE + program, timeout=60)
    assert standing.workers() == workers
