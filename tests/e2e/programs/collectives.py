"""shard_map with every collective, over one and two mesh axes; pmap."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_LINE = Mesh(np.array(jax.devices()[:4]), ("i",))
_GRID = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
_SPLIT = P("i")
_A = np.arange(64, dtype=np.float32).reshape(8, 8) / 7


def _on_line(f, *arrays, out=_SPLIT, **options):
    specs = tuple(P("i") if np.ndim(a) else P() for a in arrays)
    return jax.device_get(jax.jit(jax.shard_map(f, mesh=_LINE, in_specs=specs, out_specs=out, **options))(*arrays))


def psum():
    return [
        _on_line(lambda x: jax.lax.psum(x, "i"), _A, out=P()),
        _on_line(lambda x: jax.lax.psum(x * 2, "i") + x, _A),
        _on_line(lambda x: jax.lax.psum((x[0], 1), "i"), _A, out=P()),
    ]


def psum_of_types():
    types = ["int8", "int32", "uint16", "bfloat16", "float16", "float32", "complex64", "bool"]
    arrays = [(_A.astype(int) % 3).astype(jnp.dtype(t)) for t in types]
    return [_on_line(lambda x: jax.lax.psum(x.astype(jnp.int32) if x.dtype == bool else x, "i"), a, out=P()) for a in arrays]


def pmean_pmax_pmin():
    return [_on_line(functools.partial(f, axis_name="i"), _A, out=P()) for f in (jax.lax.pmean, jax.lax.pmax, jax.lax.pmin)]


def all_gather():
    f = jax.lax.all_gather
    return [
        _on_line(lambda x: f(x, "i"), _A, out=P(None, "i")),
        _on_line(lambda x: f(x, "i", tiled=True), _A),
        _on_line(lambda x: f(x, "i", axis=1, tiled=True)[:2], _A),
    ]


def psum_scatter():
    f = jax.lax.psum_scatter
    return [_on_line(lambda x: f(x.T, "i", tiled=True), _A), _on_line(lambda x: f(jnp.outer(jnp.arange(4.0), x[0]), "i"), _A)]


def all_to_all():
    f = jax.lax.all_to_all
    return [_on_line(lambda x: f(x, "i", 1, 0, tiled=True), _A), _on_line(lambda x: f(x.reshape(2, 4, 2), "i", 1, 0), _A)]


def ppermute():
    ring = [(i, (i + 1) % 4) for i in range(4)]
    return [_on_line(lambda x, p=p: jax.lax.ppermute(x, "i", p), _A) for p in (ring, [(0, 3), (3, 0)], [(1, 2)], [])]


def pshuffle_and_swap():
    return [
        _on_line(lambda x: jax.lax.pshuffle(x, "i", [3, 2, 0, 1]), _A),
        _on_line(lambda x: jax.lax.pswapaxes(x.reshape(4, 4), "i", 0), _A),
    ]


def axis_index():
    return [_on_line(lambda x: x * 0 + jax.lax.axis_index("i"), _A), _on_line(lambda x: x + jax.lax.axis_size("i"), _A)]


def broadcast_from_one():
    """One device's block to all (jax.lax.pbroadcast has no rule on CPU: select and sum instead)."""
    return _on_line(lambda x: jax.lax.psum(jnp.where(jax.lax.axis_index("i") == 2, x, 0), "i"), _A, out=P())


def integer_collectives_in_groups():
    return [
        _on_line(lambda x: jax.lax.psum(x, "i", axis_index_groups=[[0, 2], [1, 3]]), _A, check_vma=False),
        _on_line(lambda x: jax.lax.all_gather(x, "i", axis_index_groups=[[0, 1], [2, 3]], tiled=True), _A, check_vma=False),
    ]


def two_axes():
    def f(x):
        row, both = jax.lax.psum(x, "x"), jax.lax.psum(x, ("x", "y"))
        return (
            row + jax.lax.axis_index("y"),
            both,
            jax.lax.all_gather(x, ("x", "y"), tiled=True),
            jax.lax.ppermute(x, "y", [(0, 1), (1, 0)]),
        )

    specs = (P(None, "y"), P(), P(("x", "y")), P("x", "y"))
    return jax.device_get(jax.jit(jax.shard_map(f, mesh=_GRID, in_specs=P("x", "y"), out_specs=specs))(_A))


def partly_manual():
    """One axis by hand, the other left to the compiler."""
    f = jax.shard_map(
        lambda x: jax.lax.psum(jnp.sin(x) @ jnp.ones((8, 3)), "x"), mesh=_GRID, in_specs=P("x"), out_specs=P(), axis_names={"x"}
    )
    return np.asarray(jax.jit(f)(jax.device_put(_A, NamedSharding(_GRID, P("x", "y")))))


def gradients_through_collectives():
    def loss(w, x):
        y = jax.lax.psum(jnp.tanh(x @ w).sum(), "i")
        return y / 4 + jax.lax.pmean((jax.lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]) * x).sum(), "i")

    f = jax.shard_map(loss, mesh=_LINE, in_specs=(P(), P("i")), out_specs=P())
    return jax.device_get(jax.jit(jax.value_and_grad(f, (0, 1)))(np.eye(8, 3, dtype=np.float32), _A))


def collectives_in_a_loop():
    def f(x):
        return jax.lax.fori_loop(
            0, 20, lambda i, v: jax.lax.ppermute(v, "i", [(0, 1), (1, 2), (2, 3), (3, 0)]) * 0.9 + jax.lax.pmean(v, "i"), x
        )

    return _on_line(f, _A)


def matrix_product_by_rotation():
    def f(a, b):
        def step(k, carry):
            total, b = carry
            block = (jax.lax.axis_index("i") - k) % 4
            total += jax.lax.dynamic_slice_in_dim(a, block * 2, 2, 1) @ b
            return total, jax.lax.ppermute(b, "i", [(j, (j + 1) % 4) for j in range(4)])

        return jax.lax.fori_loop(0, 4, step, (jnp.zeros_like(a), b))[0]

    return _on_line(f, _A, _A.T)


def several_meshes_in_turn():
    """The same devices in another order, and subsets."""
    result = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 1], [3]):
        mesh = Mesh(np.array(jax.devices())[order], ("i",))
        f = jax.jit(
            jax.shard_map(
                lambda x: (x + jax.lax.axis_index("i"), jax.lax.psum(x, "i")), mesh=mesh, in_specs=P("i"), out_specs=(P("i"), P())
            )
        )
        result.append(jax.device_get(f(_A)))
    return result


def without_jit():
    """Eagerly: each primitive is a program of its own."""
    f = jax.shard_map(lambda x: jax.lax.psum(jnp.sin(x) * 2, "i"), mesh=_LINE, in_specs=P("i"), out_specs=P())
    return np.asarray(f(_A))


def pmap():
    x = _A[:4]
    return jax.device_get(
        [
            jax.pmap(lambda x: x * 2)(x),
            jax.pmap(lambda x: x / jax.lax.psum(x, "d"), axis_name="d")(x),
            jax.pmap(lambda a, b: a @ b, in_axes=(0, None))(_A.reshape(4, 2, 8), _A),
            jax.pmap(lambda x: jax.lax.all_gather(x, "d"), axis_name="d", devices=jax.devices()[:2])(x[:2]),
        ]
    )


def explicit_mesh():
    """Shardings in types."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(mesh):
        a = jax.device_put(_A, P("x", "y"))
        b = jax.reshard(_A, P("y", None))
        f = jax.jit(lambda a, b: (jnp.dot(a, b, out_sharding=P("x")), jax.reshard(a, P("y", "x")) * 2, a.sum(0)))
        out = f(a, b)
        return [jax.device_get(out), [str(jax.typeof(o)) for o in out]]
