"""Many programs in flight, several threads, and errors that leave the session usable."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_MESH = Mesh(np.array(jax.devices()[:4]), ("i",))
_ROWS = NamedSharding(_MESH, P("i"))
_X = np.arange(64, dtype=np.float32).reshape(8, 8) / 64


def _in_threads(count, work):
    """The results of `work(k)` for k < count, each in a thread of its own."""
    results: list = [None] * count

    def run(k):
        try:
            results[k] = jax.device_get(work(k))
        except Exception as error:
            results[k] = repr(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


# Plain CPU JAX 0.10.2 hangs when 32 programs with collectives are unfinished, so the cases with collectives wait now and
# then. Everstep does not need that: see test_survival.py.
_IN_FLIGHT = 12


def programs_in_flight():
    f = jax.jit(lambda x, k: jnp.tanh(x * k) + x)
    x = jax.device_put(_X, _ROWS)
    out = [f(x, np.float32(k)) for k in range(200)]
    return np.asarray(jax.jit(lambda ys: sum(ys))(out))


def programs_with_collectives_in_flight():
    f = jax.jit(lambda x, k: jnp.tanh(x @ x.T) * k)
    x = jax.device_put(_X, _ROWS)
    return jax.device_get([f(x, np.float32(k)) for k in range(_IN_FLIGHT)])


def chain():
    f = jax.jit(lambda x: jnp.sin(x) + x / 2)
    x = jax.device_put(_X, _ROWS)
    for _ in range(500):
        x = f(x)
    return np.asarray(x)


def chain_with_collectives():
    f = jax.jit(lambda x: jnp.sin(x) + jnp.roll(x, 1) / 2)
    x = jax.device_put(_X, _ROWS)
    for k in range(100):
        x = f(x)
        if k % _IN_FLIGHT == 0:
            x.block_until_ready()
    return np.asarray(x)


def independent_devices():
    """Work for each device alone, dispatched in turn."""
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, v: jnp.tanh(v @ v.T), x))
    xs = [jax.device_put(_X + i, d) for i, d in enumerate(jax.devices()[:4])]
    for _ in range(20):
        xs = [f(x) for x in xs]
    return jax.device_get(xs)


def crossing_subsets():
    """Collectives over changing subsets in flight at once."""

    def make(order):
        mesh = Mesh(np.array(jax.devices())[order], ("s",))
        return jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "s") / 2, mesh=mesh, in_specs=P(), out_specs=P())), NamedSharding(mesh, P())

    programs = [make(o) for o in ([0, 1], [2, 3], [1, 2], [3, 0], [0, 1, 2, 3], [2, 0, 1])]
    return [jax.device_get([f(jax.device_put(_X + k, s)) for f, s in programs]) for k in range(5)]


def threads_with_collectives():
    f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "i") / 4 + jax.lax.axis_index("i"), mesh=_MESH, in_specs=P("i"), out_specs=P("i")))

    def work(k):
        x = jax.device_put(_X + k, _ROWS)
        for _ in range(3):
            x = f(x)
        return x

    return _in_threads(4, work)


def threads_that_compile_and_transfer():
    def work(k):
        x = np.arange(100_000, dtype=np.int32) * k
        y = jax.device_put(x, jax.devices()[k % 4])
        z = jax.jit(lambda y: (y * (k + 2)).reshape(100, 1000).sum(k % 2))(y)
        return bool((np.asarray(y) == x).all()), z

    return _in_threads(8, work)


def threads_on_one_function():
    """All compile the same at the same moment."""
    f = jax.jit(lambda x: jnp.linalg.norm(x @ x) + x.sum())
    gate = threading.Barrier(6)

    def work(k):
        gate.wait()
        return f(_X + k)

    return _in_threads(6, work)


def wrong_shapes():
    result = []
    for bad in (
        lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)),
        lambda: jnp.ones(3).reshape(2, 2),
        lambda: jax.jit(lambda x: x[:, 5])(jnp.ones(3)),
        lambda: jax.device_put(np.ones(3), _ROWS),
    ):
        try:
            bad()
            result.append("accepted")
        except (TypeError, ValueError, IndexError) as error:
            result.append(type(error).__name__)
        result.append(np.asarray(jnp.ones(3) + 1))
    return result


def not_a_number():
    """jax_debug_nans sees it and says so."""
    with jax.debug_nans(True):
        try:
            jax.jit(lambda x: jnp.log(x))(-jnp.ones(3)).block_until_ready()
            told = "nothing"
        except FloatingPointError:
            told = "FloatingPointError"
    return [told, np.asarray(jnp.log(-jnp.ones(3)))]


def no_such_device():
    result = []
    for bad in (
        lambda: jax.devices()[len(jax.devices())],
        lambda: Mesh(np.array(jax.devices()), ("a", "b")),
        lambda: jax.make_mesh((1000,), ("a",)),
        lambda: jax.devices("no_such_platform"),
    ):
        try:
            bad()
            result.append("found")
        except (IndexError, ValueError, RuntimeError) as error:
            result.append(type(error).__name__)
    return [result, np.asarray(jnp.ones(3) * 3)]


def mixed_devices():
    a, b = (jax.device_put(_X, d) for d in jax.devices()[:2])
    try:
        a + b
        told = "accepted"
    except ValueError as error:
        told = "incompatible devices" in str(error)
    return [told, np.asarray(a + a), np.asarray(b + jax.device_put(a, b.sharding))]


def interrupted_dispatch():
    """An exception between two calls of a chain leaves no trace."""
    f = jax.jit(lambda x: x + 1)
    x = jax.device_put(_X, _ROWS)
    for k in range(20):
        try:
            x = f(x)
            if k % 3 == 0:
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass
    return np.asarray(x)


def checked():
    """checkify: errors as values."""
    from jax.experimental import checkify

    f = jax.jit(checkify.checkify(lambda x, i: jnp.log(x[i]), errors=checkify.all_checks))
    return [(f(jnp.arange(3.0) - 1, i)[0].get() or "").split(":")[0].split(" at ")[0].split("(")[0] for i in (0, 1, 2, 7)]


def clearing_caches():
    f = jax.jit(lambda x: x * 3 + 1)
    before = f(_X)
    jax.clear_caches()
    return jax.device_get([before, f(_X)])


def between_collectives():
    """Programs of one device, copies from worker to worker, and programs over all of them that need both, none waited for.

    A program over all devices may hold every thread of a worker while it waits for its peers, who may need what that worker does next.
    """
    devices = list(_MESH.devices.flat)
    alone = jax.jit(lambda v, k: jnp.sin(v) + k)
    together = jax.jit(lambda x, v: jnp.tanh(x @ x.T) + v.sum())
    x = jax.device_put(_X, _ROWS)
    out = []
    for k in range(40):
        v = alone(jax.device_put(_X[k % 8], devices[k % 4]), np.float32(k))
        for step in range(3):
            v = alone(jax.device_put(v, devices[(k + step + 1) % 4]), np.float32(step))
        out.append(together(x, jax.device_put(v, NamedSharding(_MESH, P()))))
        if k >= _IN_FLIGHT:
            out[k - _IN_FLIGHT].block_until_ready()
    return jax.device_get(out)
