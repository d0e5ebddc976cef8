"""Indexing, gather and scatter, sorting, shapes."""

import jax
import jax.numpy as jnp
import numpy as np

_X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)


def slices():
    x = jnp.asarray(_X)
    return jax.device_get([x[1], x[:, -1], x[..., ::2], x[::-1, 1:3], x[None, 2, ..., 0], x[1:1], x[-1, -1, -1]])


def integer_arrays():
    x = jnp.asarray(_X)
    i, j = jnp.array([0, 2, 2]), jnp.array([1, 3, 0])
    return jax.device_get([x[i], x[i, j], x[:, j], x[i[:, None], j], jnp.take(x, i, axis=2), jnp.take_along_axis(x, x.astype(int) % 3, 0)])


def masks():
    x = jnp.asarray(_X)
    return jax.device_get(
        [
            x[x > 30],
            jnp.where(x % 2 == 0, x, -1),
            jnp.argwhere(x > 55),
            jnp.extract(x < 3, x),
            jnp.compress(jnp.array([True, False, True]), x, axis=0),
        ]
    )


def out_of_bounds():
    x = jnp.arange(5)
    return jax.device_get(
        [x[jnp.array([7, -9])], x.at[jnp.array([7])].get(mode="fill", fill_value=-1), x.at[9].set(3), x.at[9].set(3, mode="clip")]
    )


def updates():
    x, i = jnp.asarray(_X), jnp.array([0, 2, 2])
    return jax.device_get(
        [
            x.at[1].set(0),
            x.at[i].add(1),
            x.at[:, i].multiply(2),
            x.at[i, i].max(50),
            x.at[..., 0].min(3),
            x.at[1:2, ::2].divide(2),
            x.at[i].apply(jnp.sin),
        ]
    )


def scatter_with_repeats():
    """Integer sums: the order of repeats makes no difference."""
    i = np.random.default_rng(0).integers(0, 7, 100)
    return jax.device_get(
        [
            jnp.zeros(7, int).at[i].add(1),
            jnp.bincount(i, length=7),
            jax.ops.segment_sum(jnp.arange(100), i, 7),
            jax.ops.segment_max(jnp.arange(100), i, 7),
        ]
    )


def dynamic_slices():
    def body(x, k):
        return (
            jax.lax.dynamic_slice(x, (k, 0, k), (1, 4, 2)),
            jax.lax.dynamic_update_slice(x, jnp.ones((1, 2, 2)), (k, k, 0)),
            jax.lax.dynamic_index_in_dim(x, k, 1),
        )

    return [jax.device_get(jax.jit(body)(_X, k)) for k in range(4)]


def sorting():
    x = np.random.default_rng(1).integers(0, 20, (6, 11)).astype(np.float32)
    return jax.device_get(
        [
            jnp.sort(x),
            jnp.sort(x, axis=0),
            jnp.argsort(x, stable=True),
            jnp.lexsort((x[0], x[1])),
            jax.lax.top_k(x, 3),
            jnp.unique(x),
            jnp.median(x, axis=1),
            jnp.quantile(x, 0.3),
            jnp.searchsorted(jnp.sort(x[0]), x[1]),
        ]
    )


def sorting_of_types():
    rng = np.random.default_rng(2)
    arrays = [rng.integers(0, 100, 33).astype(t) for t in ("int8", "uint16", "int32", "float16", "float32")] + [
        np.array([3, np.nan, -0.0, 0.0, -np.inf], "float32")
    ]
    return jax.device_get([(jnp.sort(a), jnp.sort(a, descending=True), jax.lax.sort((a, jnp.arange(len(a))), num_keys=1)) for a in arrays])


def shapes():
    x = jnp.asarray(_X)
    return jax.device_get(
        [
            x.T,
            x.reshape(4, -1),
            x.ravel(),
            jnp.moveaxis(x, 0, 2),
            jnp.concatenate([x, x], 1),
            jnp.stack([x, x], -1),
            jnp.split(x, [1, 3], 2),
            jnp.pad(x, ((1, 2), (0, 0), (3, 0)), mode="constant"),
            jnp.roll(x, 2, 1),
            jnp.tile(x, (1, 2, 1)),
            jnp.repeat(x, 2, 0),
            jnp.flip(x),
        ]
    )


def reductions():
    x = jnp.asarray(_X)
    return jax.device_get(
        [
            x.sum((0, 2)),
            x.mean(1),
            x.std(),
            x.max(2, keepdims=True),
            jnp.cumprod(x / 30, 1),
            jnp.linalg.norm(x),
            jnp.histogram(x, 5),
            jnp.percentile(x, 70),
            jax.nn.softmax(x),
            jax.nn.logsumexp(x, 1),
            jnp.prod(x / 20),
        ]
    )


def einsums():
    x, y = jnp.asarray(_X), jnp.asarray(_X[0]) / 7
    return jax.device_get(
        [
            jnp.einsum("ijk,jk->i", x, y),
            jnp.einsum("ijk,lk->ijl", x, y),
            jnp.einsum("iii->i", jnp.ones((3, 3, 3))),
            jnp.tensordot(x, y, ([1, 2], [0, 1])),
            jnp.kron(y, y),
        ]
    )


def convolutions():
    x = jnp.sin(jnp.arange(2 * 8 * 8 * 3, dtype=jnp.float32)).reshape(2, 8, 8, 3)
    k = jnp.cos(jnp.arange(3 * 3 * 3 * 4, dtype=jnp.float32)).reshape(3, 3, 3, 4)
    dims = ("NHWC", "HWIO", "NHWC")
    return jax.device_get(
        [
            jax.lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=dims),
            jax.lax.conv_general_dilated(x, k, (2, 1), "VALID", rhs_dilation=(2, 1), dimension_numbers=dims),
            jnp.convolve(x[0, 0, :, 0], k[0, 0, :, 0]),
            jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        ]
    )


def indexing_a_sharded_array():
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    x = jax.device_put(np.arange(64.0, dtype=np.float32).reshape(8, 8), jax.sharding.NamedSharding(mesh, jax.P("x", "y")))
    i = np.array([5, 0, 7])
    return jax.device_get(
        [
            x[3],
            x[:, 5],
            x[i],
            x[i, i],
            x[2:7, ::3],
            x.at[i].add(1),
            jnp.sort(x, 0),
            jnp.argsort(-x, 1),
            x[x % 7 == 0],
            jnp.flip(x),
            jnp.roll(x, 3),
            list(x)[2],
        ]
    )
