"""FFT and dense linear algebra: what XLA hands to LAPACK and to its FFT library."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

jax.config.update("jax_enable_x64", True)

_TYPES = ["float32", "float64", "complex64", "complex128"]


def _matrix(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def _positive(dtype: str, n: int) -> np.ndarray:
    x = _matrix(dtype, n, n)
    return (x @ x.conj().T + n * np.eye(n)).astype(dtype)


def _each(f, *arguments):
    return {t: jax.device_get(jax.jit(f)(*(a(t) for a in arguments))) for t in _TYPES}


def cholesky():
    return _each(jnp.linalg.cholesky, lambda t: _positive(t, 6))


def qr():
    return _each(lambda a: [jnp.linalg.qr(a), jnp.linalg.qr(a, mode="complete")], lambda t: _matrix(t, 5, 3))


def svd():
    return _each(lambda a: [jnp.linalg.svd(a, full_matrices=False), jnp.linalg.svd(a, compute_uv=False)], lambda t: _matrix(t, 4, 6))


def eigh():
    return _each(jnp.linalg.eigh, lambda t: _positive(t, 5))


def eig():
    return _each(jnp.linalg.eig, lambda t: _matrix(t, 5, 5))


def lu():
    return _each(lambda a: [jsl.lu(a), jax.lax.linalg.lu(a)], lambda t: _matrix(t, 5, 5))


def triangular_solve():
    return _each(
        lambda a, b: [jsl.solve_triangular(a, b, lower=low, trans=tr) for low in (True, False) for tr in (0, 1, 2)],
        lambda t: _positive(t, 5),
        lambda t: _matrix(t, 5, 2),
    )


def schur():
    return _each(jsl.schur, lambda t: _matrix(t, 4, 4))


def hessenberg_and_tridiagonal():
    return _each(
        lambda a, p: [jax.lax.linalg.hessenberg(a), jax.lax.linalg.tridiagonal(p)], lambda t: _matrix(t, 4, 4), lambda t: _positive(t, 4)
    )


def solves():
    return _each(
        lambda a, b: [
            jnp.linalg.solve(a, b),
            jnp.linalg.inv(a),
            jnp.linalg.det(a),
            jnp.linalg.slogdet(a),
            jsl.cho_solve((jnp.linalg.cholesky(a), True), b),
        ],
        lambda t: _positive(t, 5),
        lambda t: _matrix(t, 5, 2),
    )


def least_squares():
    return _each(
        lambda a, b: [jnp.linalg.lstsq(a, b)[0], jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a)],
        lambda t: _matrix(t, 6, 3),
        lambda t: _matrix(t, 6, 2),
    )


def functions_of_matrices():
    return _each(lambda a: [jsl.expm(a / 4), jnp.linalg.matrix_power(a, 3), jnp.linalg.norm(a, 2)], lambda t: _matrix(t, 4, 4))


def sylvester():
    return _each(
        lambda a, b, c: jsl.solve_sylvester(a, b, c), lambda t: _positive(t, 3), lambda t: _positive(t, 3), lambda t: _matrix(t, 3, 3)
    )


def batches():
    x = _matrix("float32", 3, 4, 4)
    spd = x @ x.transpose(0, 2, 1) + 4 * np.eye(4, dtype=np.float32)
    return jax.device_get(
        [jnp.linalg.cholesky(spd), jnp.linalg.eigh(spd), jnp.linalg.svd(x), jnp.linalg.solve(spd, x), jnp.linalg.inv(spd)]
    )


def gradients():
    a = _positive("float64", 4)
    return jax.device_get(
        [
            jax.grad(lambda a: jnp.linalg.slogdet(a)[1])(a),
            jax.grad(lambda a: jnp.linalg.cholesky(a).sum())(a),
            jax.grad(lambda a: jnp.linalg.eigh(a)[0][0])(a),
            jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False).sum())(a),
        ]
    )


def not_positive_definite():
    """LAPACK's failure comes as NaN, not as an error."""
    return jax.device_get(jnp.linalg.cholesky(-np.eye(3, dtype=np.float32)))


def fft():
    return _each(
        lambda x: [jnp.fft.fft(x), jnp.fft.ifft(x, axis=0), jnp.fft.fft2(x), jnp.fft.fftshift(x), jnp.fft.fft(x, 16)],
        lambda t: _matrix(t, 6, 10),
    )


def real_fft():
    x = {t: _matrix(t, 4, 12) for t in ("float32", "float64")}
    return jax.device_get(
        {t: jax.jit(lambda x: [r := jnp.fft.rfft(x), jnp.fft.irfft(r), jnp.fft.rfftn(x), jnp.fft.irfft(r, 11)])(v) for t, v in x.items()}
    )


def fft_gradient():
    return jax.device_get(jax.grad(lambda x: jnp.abs(jnp.fft.rfft(x)).sum())(_matrix("float64", 9)))


def sharded_batch():
    """Custom calls partitioned along the batch."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("b",))
    x = jax.device_put(_matrix("float32", 8, 4, 4), jax.sharding.NamedSharding(mesh, jax.P("b")))
    f = jax.jit(lambda x: [jnp.fft.fft(x), jnp.linalg.qr(x), jnp.linalg.cholesky(x @ x.mT + 4 * jnp.eye(4))])
    return jax.device_get(f(x))


def sharded_product():
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    put = lambda a, *p: jax.device_put(a, jax.sharding.NamedSharding(mesh, jax.P(*p)))  # noqa: E731
    a, b = _matrix("float32", 64, 32), _matrix("float32", 32, 16)
    return jax.device_get(
        [jax.jit(jnp.matmul)(put(a, *p), put(b, *q)) for p in (("x", "y"), (None, "x"), (("x", "y"),)) for q in (("x", "y"), ("y",), ())]
    )
