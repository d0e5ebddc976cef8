"""Control flow, differentiation, vectorization, rematerialization."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

_X = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


def conditionals():
    f = jax.jit(lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x))
    g = jax.jit(lambda i, x: jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh, lambda x: -x], x))
    return jax.device_get([f(_X), f(-_X), [g(i, _X) for i in range(-1, 5)], jax.grad(lambda x: f(x).sum())(_X)])


def loops():
    collatz = jax.jit(
        lambda n: jax.lax.while_loop(lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0))[
            1
        ]
    )
    fib = jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda i, s: (s[1], s[0] + s[1]), (0, 1))[0])
    return [int(collatz(27)), [int(fib(n)) for n in (0, 1, 10, 40)]]


def scans():
    def cell(h, x):
        h = jnp.tanh(h @ w + x)
        return h, h.sum()

    w = np.eye(4, dtype=np.float32) * 0.7 + 0.1
    f = lambda x, **k: jax.lax.scan(cell, jnp.zeros(4), x, **k)  # noqa: E731
    return jax.device_get(
        [
            f(_X),
            f(_X, reverse=True),
            f(_X, unroll=2),
            jax.lax.map(jnp.sum, _X),
            jax.lax.associative_scan(jnp.add, _X),
            jax.grad(lambda x: f(x)[0].sum())(_X),
        ]
    )


def derivatives():
    def f(x):
        return jnp.sum(jnp.tanh(x @ x.T) * jnp.exp(-x.sum()))

    return jax.device_get(
        [
            jax.grad(f)(_X),
            jax.value_and_grad(f)(_X),
            jax.hessian(f)(_X),
            jax.jacfwd(jnp.sin)(_X[0]),
            jax.jacrev(lambda x: x**3)(_X[0]),
            jax.jvp(f, (_X,), (_X * 2,)),
            jax.vjp(f, _X)[1](2.0),
            jax.linearize(f, _X)[1](_X),
            jax.jit(jax.grad(f))(_X),
        ]
    )


def mapping():
    f = lambda a, b: jnp.dot(a, b) / jnp.linalg.norm(a)  # noqa: E731
    return jax.device_get(
        [
            jax.vmap(f, (0, None))(_X, _X[0]),
            jax.vmap(jax.vmap(f, (None, 0)), (0, None))(_X, _X),
            jax.vmap(jax.grad(lambda x: f(x, x)))(_X),
            jax.vmap(lambda x: jax.lax.cumsum(x), 1, 1)(_X),
            jax.vmap(lambda x: x - jax.lax.pmean(x, "i"), axis_name="i")(_X),
        ]
    )


def custom_derivatives():
    @jax.custom_vjp
    def clip(x):
        return jnp.clip(x, -0.5, 0.5)

    clip.defvjp(lambda x: (clip(x), x), lambda x, g: (g * jnp.where(abs(x) < 1, 1.0, 0.25),))

    @jax.custom_jvp
    def square(x):
        return x * x

    square.defjvp(lambda primals, tangents: (square(*primals), 7 * tangents[0]))
    return jax.device_get(
        [jax.grad(lambda x: clip(x).sum())(_X), jax.jit(jax.grad(lambda x: square(x).sum()))(_X), jax.vmap(jax.grad(square))(_X[0])]
    )


def rematerialization():
    def layer(w, x):
        return jnp.sin(jnp.sin(x @ w))

    def loss(w, policy):
        f = jax.checkpoint(layer, policy=policy)
        return f(w, f(w, _X)).sum()

    w = np.eye(4, dtype=np.float32) + 0.1
    policies = [None, jax.checkpoint_policies.dots_saveable, jax.checkpoint_policies.nothing_saveable]
    return jax.device_get([jax.jit(jax.grad(functools.partial(loss, policy=p)))(w) for p in policies])


def implicit_solves():
    a = np.diag(np.arange(1, 5, dtype=np.float32)) + 0.1
    x = jax.scipy.sparse.linalg.cg(lambda v: a @ v, np.ones(4, np.float32))[0]
    root = jax.lax.custom_root(
        lambda x: x**3 - 2, 1.0, lambda f, x: jax.lax.fori_loop(0, 40, lambda _, x: x - f(x) / (3 * x**2), x), lambda g, y: y / g(1.0)
    )
    return jax.device_get([x, root])


def ordinary_differential_equation():
    from jax.experimental.ode import odeint

    return np.asarray(odeint(lambda y, t: jnp.array([y[1], -y[0]]), jnp.array([1.0, 0.0]), jnp.linspace(0, 3, 5)))


def mutable_references():
    @jax.jit
    def f(x):
        ref = jax.new_ref(x)
        ref[0] = ref[1] * 2
        ref[...] += 1
        return ref[...]

    return np.asarray(f(_X))


def nested_functions():
    @jax.jit
    def inner(x):
        return x * 2 + 1

    outer = jax.jit(lambda x, n: functools.reduce(lambda a, _: inner(a), range(n), x), static_argnums=1)
    return [np.asarray(outer(_X, n)) for n in (1, 3)]


def special_functions():
    from jax.scipy import special, stats

    x = np.abs(_X) + 0.3
    return jax.device_get(
        [
            special.erf(_X),
            special.gammaln(x),
            special.digamma(x),
            special.i0(x),
            special.betainc(x, x, x / 3),
            special.logsumexp(_X),
            stats.norm.logpdf(_X),
            special.zeta(x + 1, 2.0),
            special.expit(_X),
        ]
    )


def many_small_programs():
    """Each static argument makes another program."""
    f = jax.jit(lambda x, n: x * n - n, static_argnums=1)
    return [np.asarray(f(_X[0], n)) for n in range(30)]


def a_big_program():
    """A deep chain in one module."""

    def f(x):
        for i in range(60):
            x = jnp.sin(x) * (1 + i / 100) + jnp.roll(x, i)
        return x

    return np.asarray(jax.jit(f)(_X))


def exported_program():
    from jax import export

    exported = export.export(jax.jit(lambda x: jnp.sin(x) @ x.T), platforms=["cpu"])(jax.ShapeDtypeStruct((3, 4), jnp.float32))
    return np.asarray(jax.jit(exported.call)(_X))
