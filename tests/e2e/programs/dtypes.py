"""Arithmetic, conversion and transfer of every element type."""

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

_SIGNED = ["int2", "int4", "int8", "int16", "int32", "int64"]
_UNSIGNED = ["uint2", "uint4", "uint8", "uint16", "uint32", "uint64"]
_FLOATS = ["bfloat16", "float16", "float32", "float64"]
_SMALL_FLOATS = [
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]
_COMPLEX = ["complex64", "complex128"]
_ALL = ["bool", *_SIGNED, *_UNSIGNED, *_FLOATS, *_SMALL_FLOATS, *_COMPLEX]


def _values(name: str) -> np.ndarray:
    """Twelve values that the type can hold."""
    dtype = jnp.dtype(name)
    base = np.array([0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1])
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return (np.arange(12) - 4.5 + 1j * np.arange(12)[::-1]).astype(dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return (base + 1 if name.startswith(("float8", "float4")) else np.linspace(-2.3, 5.1, 12)).astype(dtype)
    if name in ("bool", "int2", "uint2"):
        return base.astype(dtype)
    return (np.arange(12) % 8).astype(dtype)


def _reversed(name: str) -> np.ndarray:
    return _values(name)[::-1].copy()


def transfer():
    """Host to device and back, as a vector, a matrix and a scalar."""
    result = {}
    for name in _ALL:
        x = _values(name)
        result[name] = [np.asarray(jax.device_put(v)) for v in (x, x.reshape(3, 4), x[5])]
    return result


def transfer_to_every_device():
    return {name: [np.asarray(jax.device_put(_values(name), d)) for d in jax.devices()] for name in _ALL}


def copy_through_a_program():
    """The identity, jitted: every type as parameter and as result."""
    arrays = {name: _values(name).reshape(4, 3) for name in _ALL}
    return jax.device_get(jax.jit(lambda tree: jax.tree.map(lambda x: x[::-1].T, tree))(arrays))


def sharded():
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.P("x"))
    arrays = {name: jax.device_put(_values(name), sharding) for name in _ALL}
    same = jax.jit(lambda tree: tree)(arrays)
    return [jax.device_get(same), {k: [np.asarray(s.data) for s in v.addressable_shards] for k, v in arrays.items()}]


def integers():
    def body(a, b):
        return a + b, a - b, a * b, a & b, a | b, a ^ b, ~a, a < b, a == b, jnp.maximum(a, b), -a, a << b, a >> b

    return {name: jax.device_get(jax.jit(body)(_values(name), _reversed(name))) for name in [*_SIGNED, *_UNSIGNED]}


def integer_division():
    def body(a, b):
        return a // b, a % b, jax.lax.rem(a, b), jax.lax.population_count(a), jax.lax.clz(a)

    wide = [n for n in [*_SIGNED, *_UNSIGNED] if jnp.dtype(n).itemsize > 1 or n.endswith("8")]
    return {name: jax.device_get(jax.jit(body)(_values(name), _values(name) * 0 + 3)) for name in wide}


def floats():
    def body(a, b):
        positive = jnp.abs(a) + jnp.asarray(1, a.dtype)
        return (
            (a + b, a - b, a * b, a / b, a < b, -a, jnp.sqrt(positive), jnp.exp(a), jnp.log(positive), jnp.sin(a)),
            (jnp.tanh(a), jnp.floor(a), jnp.round(a), jnp.sign(a), a**2, jnp.arctan2(a, b), jnp.logaddexp(a, b)),
            (a.sum(), a.prod(), a.max(), a.argmin(), jnp.cumsum(a), jnp.mean(a), jnp.var(a), jnp.isnan(a / 0)),
        )

    return {name: jax.device_get(jax.jit(body)(_values(name), _reversed(name))) for name in _FLOATS}


def small_floats():
    def body(a, b):
        wide = a.astype(jnp.float32) * 1.25 - b.astype(jnp.float32)
        return a == b, a.astype(jnp.bfloat16), wide.astype(a.dtype), wide

    return {name: jax.device_get(jax.jit(body)(_values(name), _reversed(name))) for name in _SMALL_FLOATS}


def complexes():
    def body(a, b):
        return a + b, a * b, a / b, jnp.abs(a), jnp.angle(a), jnp.conj(a), jnp.exp(a), a.real, a.imag, a == b, a.sum()

    return {name: jax.device_get(jax.jit(body)(_values(name), _reversed(name))) for name in _COMPLEX}


def booleans():
    def body(a, b):
        return a & b, a | b, a ^ b, ~a, a.any(), a.all(), a.sum(), jnp.where(a, 1, 2), jnp.nonzero(a, size=12)

    return jax.device_get(jax.jit(body)(_values("bool"), _reversed("bool")))


def conversions():
    """From every type to every wide type, in one program."""

    def body(tree):
        real = {name: x for name, x in tree.items() if name not in _COMPLEX}
        targets = ["bool", "int8", "uint32", "float32", "complex64"]
        return {name: [x.astype(target) for target in targets] for name, x in real.items()}

    return jax.device_get(jax.jit(body)({name: _values(name) for name in _ALL}))


def special_values():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-42, 3.4e38], np.float32)
    y = jax.device_put(x)
    return jax.device_get([y, jax.jit(lambda x: (x + 1, x * 0, jnp.isfinite(x), jnp.signbit(x)))(y), y.astype(jnp.bfloat16)])


def dot_of_types():
    """Matrix products with the accumulation type given."""
    result = {}
    for name in ["int8", "int32", "bfloat16", "float16", "float32", "float64", "complex64", "float8_e4m3fn", "float8_e5m2"]:
        x = _values(name).reshape(3, 4)
        out = "int32" if name.startswith("int") else "complex64" if name.startswith("complex") else "float32"
        result[name] = np.asarray(jnp.dot(x, x.T, preferred_element_type=jnp.dtype("float64" if name == "float64" else out)))
    return result


def bitcasts():
    x = _values("float32")
    return jax.device_get(
        jax.jit(
            lambda x: [
                jax.lax.bitcast_convert_type(x, jnp.int32),
                jax.lax.bitcast_convert_type(x, jnp.uint8),
                jax.lax.bitcast_convert_type(x.astype(jnp.bfloat16), jnp.int16),
                jax.lax.bitcast_convert_type(x.astype(jnp.int8), jnp.int4),
            ]
        )(x)
    )


def keys():
    """PRNG keys as arrays: scalars, vectors, sharded, through a program."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("x",))
    result = {}
    for kind in ["threefry2x32", "rbg", "unsafe_rbg"]:
        key = jax.random.key(7, impl=kind)
        several = jax.random.split(key, 8)
        spread = jax.device_put(several, jax.sharding.NamedSharding(mesh, jax.P("x")))
        folded = jax.jit(lambda k: jax.vmap(jax.random.fold_in, (0, None))(k, 3))(spread)
        result[kind] = [np.asarray(jax.random.key_data(k)) for k in (key, several, spread, folded, spread[3], folded[::2])]
    return result


def strings():
    """Strings live on the host of a device; only transfers are defined for them."""
    x = np.array([["abcd", "e"], ["", "ünï"]], dtype=np.dtypes.StringDType())
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    whole = jax.device_put(x, jax.devices()[1])
    spread = jax.device_put(x, jax.sharding.NamedSharding(mesh, jax.P("x")))
    return [np.asarray(whole).tolist(), np.asarray(spread).tolist(), [np.asarray(s.data).tolist() for s in spread.addressable_shards]]


def weak_types():
    f = jax.jit(lambda x: x * 2)
    return [(r := f(v)).weak_type and np.asarray(r) for v in (3, 2.5, 1j)] + [f(np.float32(3)).dtype.name, f(True).dtype.name]


def nothing_but_ones_and_zeros():
    return jax.device_get(
        [jnp.zeros(5, n) for n in _ALL if n != "float8_e8m0fnu"] + [jnp.ones((2, 2), n) for n in _ALL] + [jnp.full((), 1, n) for n in _ALL]
    )
