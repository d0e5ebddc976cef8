"""Arrays as objects: making them from parts, taking them apart, their life, odd inputs."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_MESH = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
_TILES = NamedSharding(_MESH, P("x", "y"))
_X = np.arange(48, dtype=np.float32).reshape(6, 8)


def from_single_device_arrays():
    parts = [jax.device_put(_X[i], d) for d, i in _TILES.addressable_devices_indices_map(_X.shape).items()]
    whole = jax.make_array_from_single_device_arrays(_X.shape, _TILES, parts)
    return [np.asarray(whole), np.asarray(whole * 2), [np.asarray(p) for p in parts]]


def from_callback():
    seen = []
    a = jax.make_array_from_callback(_X.shape, _TILES, lambda i: (seen.append(str(i)), _X[i])[1])
    b = jax.make_array_from_callback((), NamedSharding(_MESH, P()), lambda i: np.float32(3))
    return [np.asarray(a), np.asarray(b), sorted(seen)]


def from_process_local_data():
    return np.asarray(jax.make_array_from_process_local_data(_TILES, _X))


def shards():
    a = jax.device_put(_X, NamedSharding(_MESH, P("x")))
    return [
        a.is_fully_addressable,
        a.is_fully_replicated,
        a.nbytes,
        [(s.device.id, str(s.index), s.replica_id, np.asarray(s.data)) for s in a.addressable_shards],
        np.asarray(a.addressable_data(3)),
    ]


def shards_as_arrays():
    """The data of a shard is an array like any other."""
    a = jax.device_put(_X, _TILES)
    parts = [s.data for s in a.addressable_shards]
    results = [p + 1 for p in parts]
    a.delete()
    return [np.asarray(r) for r in results]


def replicated_value():
    a = jax.device_put(_X, NamedSharding(_MESH, P()))
    return [np.asarray(a), np.asarray(a.addressable_shards[3].data), a.is_fully_replicated]


def deletion():
    a = jax.device_put(_X, _TILES)
    b = a + 1
    before = a.is_deleted()
    a.delete()
    a.delete()
    try:
        np.asarray(a)
        message = "readable"
    except RuntimeError as error:
        message = "deleted" if "deleted" in str(error) else str(error)
    try:
        a + 1
        use = "usable"
    except (RuntimeError, ValueError) as error:
        use = "deleted" if "deleted" in str(error) else str(error)
    return [before, a.is_deleted(), message, use, np.asarray(b), a.shape]


def live_arrays():
    gc.collect()
    before = len(jax.live_arrays())
    made = [jax.device_put(np.float32(i)) for i in range(5)]
    during = len(jax.live_arrays()) - before
    del made
    gc.collect()
    return [during, len(jax.live_arrays()) - before]


def copies():
    a = jax.device_put(_X, _TILES)
    b, c = a.copy(), jnp.array(a, copy=True)
    a.delete()
    return [np.asarray(b), np.asarray(c)]


def asynchronous_copies():
    arrays = [jax.device_put(_X + i, _TILES) * 2 for i in range(10)]
    for a in arrays:
        a.copy_to_host_async()
    return [np.asarray(a) for a in arrays]


def waiting():
    a = jnp.ones((100, 100))
    for _ in range(10):
        a = a @ a / 100
    tree = jax.block_until_ready({"a": a, "b": [a + 1]})
    return [float(a.block_until_ready()[3, 4]), float(tree["b"][0][0, 0])]


def zero_sized():
    made = [jnp.zeros((0,)), jnp.zeros((3, 0, 2), jnp.bfloat16), jax.device_put(np.zeros((0, 4), np.int8))]
    f = jax.jit(lambda x: (x + 1, x.sum(), x.T))
    spread = jax.device_put(np.zeros((4, 0), np.float32), NamedSharding(_MESH, P("x")))
    return jax.device_get(
        [
            made,
            [f(m) for m in made],
            f(spread),
            [jax.device_put(m, jax.devices()[2]) for m in made],
            jax.device_put(spread, NamedSharding(_MESH, P("y"))),
            jnp.concatenate([made[0], jnp.ones(2)]),
        ]
    )


def scalars():
    values = [3, 2.5, True, 1 + 2j, np.float16(1.5), np.int8(-3), np.bool_(False), np.array(7, np.uint32)]
    spread = [jax.device_put(v, NamedSharding(_MESH, P())) for v in values]
    f = jax.jit(lambda v: v)
    return [np.asarray(x) for v, s in zip(values, spread, strict=True) for x in (jax.device_put(v), s, f(v), f(s), s + s)]


def python_conversions():
    x = jnp.float32(2.75)
    return [
        float(x),
        int(x),
        bool(x),
        x.item(),
        jnp.arange(3).tolist(),
        f"{x:.1f}",
        str(jnp.arange(3)),
        len(jnp.arange(3)),
        [int(v) for v in jnp.arange(3)],
        complex(x),
        5 in jnp.arange(6),
        hash(x.shape),
    ]


def strided_inputs():
    """NumPy views whose bytes are anything but dense."""
    big = np.arange(4 * 6 * 8, dtype=np.int32).reshape(4, 6, 8)
    views = [
        big.T,
        big[::-1],
        big[:, ::-2],
        big[..., ::3],
        big[1:3, 2:4, 1:7:2],
        np.broadcast_to(big[0], (4, 6, 8)),
        np.asfortranarray(big),
        big.swapaxes(0, 1)[::-1],
        big[0, 0, ::-1],
    ]
    f = jax.jit(lambda x: x * 2)
    fields = np.zeros(5, dtype=[("a", "f4"), ("b", "i2")])
    fields["a"] = np.arange(5)
    spread = NamedSharding(Mesh(np.array(jax.devices()[:2]), ("p",)), P("p"))
    return [
        [np.asarray(jax.device_put(v)), np.asarray(f(v))]
        for v in [*views, fields["a"].copy(), np.frombuffer(b"\0" + big.tobytes(), np.uint8)[1:]]
    ] + [np.asarray(jax.device_put(v, spread)) for v in (big[:, ::-1], big.T, big[::2])]


def inputs_that_change_later():
    """Once an array is ready, what it was made from may change."""
    x = np.arange(300_000, dtype=np.float32)
    y = jax.block_until_ready(jax.jit(lambda x: x + 0)(x))
    x[:] = -1
    return [float(y[299_999]), float(y.sum())]


def results_are_their_own():
    """What NumPy got is not changed by what comes after."""
    a = jnp.arange(1000.0)
    host = np.array(a)
    a = jax.jit(lambda a: a * 0, donate_argnums=0)(a)
    return [host, np.asarray(a)]


def big():
    """64 MB there and back, whole, sharded and between devices."""
    x = np.random.default_rng(0).integers(0, 2**31, 16 << 20, dtype=np.int32)
    whole = jax.device_put(x)
    spread = jax.device_put(x, NamedSharding(_MESH, P(("x", "y"))))
    moved = jax.device_put(spread, jax.devices()[3])
    doubled = jax.jit(lambda a: a * 2)(spread)
    return [bool((np.asarray(a) == x).all()) for a in (whole, spread, moved)] + [
        bool((np.asarray(doubled) == x * 2).all()),
        int(doubled.sum()),
    ]


def many():
    """Thousands of small arrays."""
    arrays = [jax.device_put(np.float32(i), jax.devices()[i % 4]) for i in range(2000)]
    sums = [a + 1 for a in arrays[:200]]
    return [np.asarray(jax.device_get(arrays)), np.asarray(jax.device_get(sums))]


def wide_programs():
    """Hundreds of parameters and results."""
    arrays = [np.full((2,), i, np.float32) for i in range(400)]
    out = jax.jit(lambda xs: [x * i for i, x in enumerate(xs)])(arrays)
    return np.stack(jax.device_get(out))


def unused_parameters():
    f = jax.jit(lambda a, b, c: b + 1, keep_unused=False)
    g = jax.jit(lambda a, b, c: b + 1, keep_unused=True)
    return jax.device_get([f(_X, 2.0, _X), g(_X, 2.0, _X)])


def pass_through():
    """Results that are parameters or constants."""
    constant = jnp.arange(4)
    x = jax.device_put(_X, _TILES)
    a, b, c, d = jax.jit(lambda x: (x, x, constant, 5))(x)
    x.delete()
    return jax.device_get([a, b, c, d])


def devices():
    """What a program can learn about its devices."""
    ds = jax.devices()
    return [
        jax.device_count(),
        jax.local_device_count(),
        jax.process_count(),
        jax.process_index(),
        [d.process_index for d in ds],
        len({d.id for d in ds}),
        [d.platform for d in ds],
        [d.device_kind for d in ds],
        [d.memory_stats() is None for d in ds],
    ]


def arrays_of_the_cpu_backend():
    """As arguments beside others, and arrays that go there."""
    cpu = jax.devices("cpu")[0]
    add = jax.jit(lambda a, b: a + b)
    x = jax.device_put(_X, _TILES)
    key = jax.random.key(3)
    with jax.default_device(cpu):
        local = jnp.arange(8, dtype=jnp.float32) + 1
    sums = [np.asarray(add(x, local)) for _ in range(3)]
    there = jax.device_put(local, NamedSharding(_MESH, P("x")))
    back = [jax.device_put(each, cpu) for each in (x, there, local)]
    return [
        sums,
        np.asarray(there),
        np.asarray(jax.jit(jnp.sin, in_shardings=NamedSharding(_MESH, P("y")))(local)),
        np.asarray(jnp.ones(8) + jax.device_put(local, cpu)),
        back,
        jax.random.key_data(jax.device_put(key, cpu)),
        [each.sharding.device_set == {cpu} for each in back],
    ]


def printing():
    return [repr(jnp.arange(3)), str(jax.device_put(_X, _TILES)), repr(jax.random.key(3))]


def pickling():
    import copy
    import pickle

    a = jax.device_put(_X, _TILES)
    return [np.asarray(pickle.loads(pickle.dumps(a))), np.asarray(copy.deepcopy(a))]
