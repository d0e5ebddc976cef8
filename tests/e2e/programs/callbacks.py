"""Programs that call the user's Python: pure_callback, io_callback, debug.print, debug.callback."""

import contextlib
from io import StringIO

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_MESH = Mesh(np.array(jax.devices()[:4]), ("i",))
_X = np.arange(8, dtype=np.float32)


def pure():
    f = jax.jit(lambda x: jax.pure_callback(lambda v: np.sin(v).astype(np.float32), jax.ShapeDtypeStruct((8,), jnp.float32), x) + 1)
    return [np.asarray(f(_X + i)) for i in range(5)]


def pure_of_types():
    def double(*xs):
        return tuple((np.asarray(x) + np.asarray(x)).astype(x.dtype) for x in xs)

    arrays = [
        np.arange(6).reshape(2, 3).astype(t) for t in ("int8", "int32", "uint16", "float16", "float32", "complex64", "bool", jnp.bfloat16)
    ]
    shapes = tuple(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in arrays)
    return jax.device_get(jax.jit(lambda *xs: jax.pure_callback(double, shapes, *xs))(*arrays))


def pure_scalars_and_nothing():
    f = jax.jit(lambda x: jax.pure_callback(lambda v: np.float32(v * 2), jax.ShapeDtypeStruct((), jnp.float32), x))
    g = jax.jit(lambda: jax.pure_callback(lambda: np.arange(3, dtype=np.int32), jax.ShapeDtypeStruct((3,), jnp.int32)))
    h = jax.jit(lambda x: jax.pure_callback(lambda v: np.zeros((0, 2), np.float32), jax.ShapeDtypeStruct((0, 2), jnp.float32), x))
    return jax.device_get([f(2.5), g(), h(np.zeros((0,), np.float32))])


def pure_mapped_and_differentiated():
    @jax.custom_jvp
    def sin(x):
        return jax.pure_callback(lambda v: np.sin(v), jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims")

    sin.defjvp(lambda p, t: (sin(*p), jnp.cos(p[0]) * t[0]))
    return jax.device_get([jax.vmap(sin)(_X), jax.grad(lambda x: sin(x).sum())(_X), jax.jit(jax.vmap(jax.grad(sin)))(_X)])


def pure_in_a_loop():
    def body(x, _):
        x = jax.pure_callback(lambda v: np.asarray(v) + np.float32(1), jax.ShapeDtypeStruct((), jnp.float32), x)
        return x, x

    return jax.device_get(jax.jit(lambda x: jax.lax.scan(body, x, None, length=20))(np.float32(0)))


def several_in_one_program():
    shape = jax.ShapeDtypeStruct((8,), jnp.float32)

    def f(x):
        a = jax.pure_callback(lambda v: np.asarray(v) * 2, shape, x)
        b = jax.pure_callback(lambda v: np.asarray(v) + 10, shape, a)
        return jax.pure_callback(lambda v, w: np.asarray(v) - np.asarray(w), shape, b, a) + x

    return np.asarray(jax.jit(f)(_X))


def sharded():
    """Each device calls with its own block."""
    f = jax.shard_map(
        lambda x: jax.pure_callback(lambda v: np.asarray(v)[::-1] * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
        mesh=_MESH,
        in_specs=P("i"),
        out_specs=P("i"),
    )
    return np.asarray(jax.jit(f)(_X))


def on_a_sharded_argument():
    x = jax.device_put(_X, NamedSharding(_MESH, P("i")))
    f = jax.jit(lambda x: jax.pure_callback(lambda v: np.cumsum(v).astype(np.float32), jax.ShapeDtypeStruct((8,), jnp.float32), x))
    return np.asarray(f(x))


def unordered_io():
    seen = []
    f = jax.jit(lambda x: io_callback(lambda v: seen.append(float(v)), None, x.sum()) or x + 1)
    out = [np.asarray(f(_X * i)) for i in range(4)]
    jax.effects_barrier()
    return [out, sorted(seen)]


def ordered_io():
    seen = []

    def take(v):
        seen.append(int(v))
        return np.int32(len(seen))

    def f(x):
        a = io_callback(take, jax.ShapeDtypeStruct((), jnp.int32), x, ordered=True)
        b = io_callback(take, jax.ShapeDtypeStruct((), jnp.int32), x * 10, ordered=True)
        return a, b

    jitted = jax.jit(f)
    out = [jitted(i) for i in range(10)]
    jax.effects_barrier()
    return [jax.device_get(out), seen]


def ordered_io_in_a_loop():
    seen = []

    def body(i, x):
        io_callback(lambda v: seen.append(int(v)), None, i, ordered=True)
        return x + i

    out = jax.jit(lambda: jax.lax.fori_loop(0, 12, body, 0))()
    jax.effects_barrier()
    return [int(out), seen]


def keeps_state():
    """A counter in the program's process, as a data loader would be."""
    source = iter(np.arange(100, dtype=np.float32).reshape(20, 5))
    f = jax.jit(lambda w: w + io_callback(lambda: next(source), jax.ShapeDtypeStruct((5,), jnp.float32), ordered=True))
    w = jnp.zeros(5)
    for _ in range(10):
        w = f(w)
    return np.asarray(w)


def debug_print():
    text = _captured(lambda: [jax.jit(lambda x: (jax.debug.print("x = {}, sum {s:.1f}", x, s=x.sum()), x)[1])(_X + i) for i in range(3)])
    return sorted(text.splitlines())


def debug_print_ordered():
    def f(x):
        for k in range(3):
            jax.debug.print("{} {}", k, x, ordered=True)
        return x

    return _captured(lambda: [jax.jit(f)(i) for i in range(4)])


def debug_callback():
    seen = []

    def f(x):
        jax.debug.callback(lambda v, *, k: seen.append((k, float(v))), x.sum(), k="sum")
        return jax.grad(lambda x: (jax.debug.callback(lambda v: seen.append(("in", float(v))), x[0]), (x**2).sum())[1])(x)

    out = np.asarray(jax.jit(f)(_X))
    jax.effects_barrier()
    return [out, sorted(seen)]


def error_in_a_callback():
    """It reaches the program, with what was raised; the session goes on."""

    def bad(_):
        raise ValueError("no such luck")

    f = jax.jit(lambda x: jax.pure_callback(bad, jax.ShapeDtypeStruct((8,), jnp.float32), x))
    try:
        f(_X).block_until_ready()
        told = "nothing"
    except Exception as error:
        told = "no such luck" in str(error)
    return [told, np.asarray(jnp.asarray(_X) + 1)]


def wrong_shape_from_a_callback():
    f = jax.jit(lambda x: jax.pure_callback(lambda v: np.zeros(3, np.float32), jax.ShapeDtypeStruct((8,), jnp.float32), x))
    try:
        f(_X).block_until_ready()
        failed = False
    except Exception:
        failed = True
    return [failed, np.asarray(pure()[0])]


def big_operands():
    """4 MB each way."""
    x = np.arange(1 << 20, dtype=np.float32)
    f = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v)[::-1].copy(), jax.ShapeDtypeStruct(x.shape, x.dtype), x))
    return bool((np.asarray(f(x)) == x[::-1]).all())


def _captured(run):
    stream = StringIO()
    with contextlib.redirect_stdout(stream):
        jax.block_until_ready(run())
        jax.effects_barrier()
    return stream.getvalue()
