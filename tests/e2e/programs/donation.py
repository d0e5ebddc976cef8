"""Donated and not donated arguments."""

import contextlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_MESH = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
_X = np.arange(64, dtype=np.float32).reshape(8, 8)


def _tiles(x=_X):
    return jax.device_put(x, NamedSharding(_MESH, P("x", "y")))


def _use(a):
    try:
        return np.asarray(a + 0)
    except (RuntimeError, ValueError) as error:
        return "deleted or donated" if "delete" in str(error) or "donated" in str(error) else str(error)


def one_argument():
    f = jax.jit(lambda a, b: a + b, donate_argnums=0)
    a, b = _tiles(), _tiles(_X * 2)
    c = f(a, b)
    return [np.asarray(c), a.is_deleted(), b.is_deleted(), _use(a), _use(b)]


def by_name_and_in_trees():
    f = jax.jit(lambda s, *, g: jax.tree.map(lambda a, b: a - 0.1 * b, s, g), donate_argnames="s")
    b = jax.device_put(np.ones(3, np.float32), NamedSharding(_MESH, P()))
    state = {"w": _tiles(), "b": b}
    new = f(state, g={"w": _tiles(), "b": np.ones(3, np.float32)})
    return [jax.device_get(new), [v.is_deleted() for v in jax.tree.leaves(state)]]


def not_usable():
    """Nothing to reuse it for: the argument is gone nevertheless, or kept, as on plain JAX."""
    f = jax.jit(lambda a: a.sum(), donate_argnums=0)
    a = _tiles()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s = f(a)
    return [np.asarray(s), a.is_deleted(), any("not usable" in str(w.message) for w in caught)]


def long_chain():
    """Each step takes what the one before returned, long before it is done."""
    step = jax.jit(lambda s: jax.tree.map(lambda a: jnp.sin(a) * 1.01 + 0.1, s), donate_argnums=0)
    state = {"a": _tiles(), "b": jnp.arange(5.0)}
    for _ in range(200):
        state = step(state)
    return jax.device_get(state)


def result_kept_beside_the_chain():
    step = jax.jit(lambda a: (a + 1, a.sum()), donate_argnums=0)
    a, sums = _tiles(), []
    for _ in range(12):
        a, s = step(a)
        sums.append(s)
    return jax.device_get([a, sums])


def after_a_copy_to_the_host():
    a = _tiles()
    host = np.asarray(a)
    b = jax.jit(lambda a: a * 0 - 1, donate_argnums=0)(a)
    return [host, np.asarray(b)]


def same_array_twice():
    """On one device: on several, plain CPU JAX 0.10.2 dies of it (see test_survival.py)."""
    a = jax.device_put(_X)
    try:
        return [np.asarray(v) for v in jax.jit(lambda a, b: (a + b, b), donate_argnums=0)(a, a)]
    except Exception as error:
        return "donate" in str(error) or "deleted" in str(error)


def donated_while_a_part_is_held():
    a = _tiles()
    part = a.addressable_shards[1].data
    b = jax.jit(lambda a: a * 2, donate_argnums=0)(a)
    return [np.asarray(b), _use(part)]


def other_sharding():
    """The result lies otherwise than the argument: the memory can't be reused."""
    f = jax.jit(lambda a: a * 2, donate_argnums=0, out_shardings=NamedSharding(_MESH, P("y", "x")))
    a = _tiles()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.asarray(f(a)), a.is_deleted()]


def argument_from_the_host():
    f = jax.jit(lambda a: a * 2, donate_argnums=0)
    x = _X.copy()
    y = f(x)
    return [np.asarray(y), x, np.asarray(f(x))]


def while_others_still_read():
    """Programs queued before the donation see the old value."""
    slow = jax.jit(lambda a: jax.lax.fori_loop(0, 2000, lambda _, v: jnp.tanh(v @ v.T / 64), a))
    a = _tiles()
    before = [slow(a) for _ in range(3)]
    after = jax.jit(lambda a: a + 1, donate_argnums=0)(a)
    return jax.device_get([before, after])


def errors_keep_nothing_back():
    """A program that can't run for a wrong argument has not taken its other ones."""
    f = jax.jit(lambda a, b: a @ b, donate_argnums=0)
    a = _tiles()
    with contextlib.suppress(TypeError):
        f(a, np.ones((3, 3), np.float32))
    return np.asarray(a)
