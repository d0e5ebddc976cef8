"""lower().compile() and what it tells; layouts; memory kinds."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

_MESH = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"))
_TILES = NamedSharding(_MESH, P("x", "y"))
_X = np.arange(64, dtype=np.float32).reshape(8, 8)
_KINDS = ["device", "pinned_host", "unpinned_host"]


def compiled_call():
    f = jax.jit(lambda x, y: (x @ y, x.sum()))
    compiled = f.lower(jax.ShapeDtypeStruct((8, 8), jnp.float32), jax.ShapeDtypeStruct((8, 3), jnp.float32)).compile()
    return jax.device_get([compiled(_X, _X[:, :3]), compiled(_X * 2, _X[:, :3])])


def compiled_with_shardings():
    f = jax.jit(lambda x: x @ x.T, in_shardings=_TILES, out_shardings=NamedSharding(_MESH, P("y")))
    compiled = f.lower(jax.ShapeDtypeStruct((8, 8), jnp.float32)).compile()
    out = compiled(jax.device_put(_X, _TILES))
    shardings = [s.spec for s in (compiled.input_shardings[0][0], compiled.output_shardings)]
    return [np.asarray(out), [tuple(s) for s in shardings], [np.asarray(s.data) for s in out.addressable_shards]]


def wrong_arguments():
    compiled = jax.jit(lambda x: x * 2).lower(_X).compile()
    try:
        compiled(_X[:3])
        told = "nothing"
    except TypeError as error:
        told = "shape" in str(error) or "aval" in str(error).lower() or "differ" in str(error)
    return [told, np.asarray(compiled(_X))]


def cost():
    compiled = jax.jit(lambda x: jnp.sin(x @ x)).lower(_X).compile()
    return {k: v for k, v in compiled.cost_analysis().items() if k in ("flops", "transcendentals", "bytes accessed")}


def cost_before_compiling():
    return jax.jit(lambda x: jnp.sin(x @ x)).lower(_X).cost_analysis()


def memory():
    stats = jax.jit(lambda x: x @ x.T, donate_argnums=0).lower(_X).compile().memory_analysis()
    return {k: getattr(stats, k) for k in ("argument_size_in_bytes", "output_size_in_bytes", "alias_size_in_bytes", "temp_size_in_bytes")}


def text():
    lowered = jax.jit(lambda x: jnp.sin(x) @ x).lower(_X)
    compiled = lowered.compile()
    again = jax.jit(lambda x: x + 1, in_shardings=_TILES).lower(_X).compile().as_text()
    return ["stablehlo" in lowered.as_text(), "ENTRY" in compiled.as_text(), "f32[8,8]" in compiled.as_text(), "f32[4,4]" in again]


def compiler_options():
    compiled = jax.jit(lambda x: jnp.exp(x)).lower(_X / 99).compile(compiler_options={"xla_cpu_enable_fast_math": False})
    return np.asarray(compiled(_X / 99))


def unknown_compiler_option():
    try:
        jax.jit(lambda x: x).lower(_X).compile(compiler_options={"xla_no_such_option": True})
        return "accepted"
    except Exception as error:
        return "xla_no_such_option" in str(error)


def default_layouts():
    compiled = jax.jit(lambda x: (x.T, x.sum())).lower(_X).compile()
    formats = [*compiled.input_formats[0], *compiled.output_formats]
    return [[tuple(f.layout.major_to_minor) for f in formats], tuple(jnp.asarray(_X).format.layout.major_to_minor)]


def chosen_layouts():
    column_major = Format(Layout(major_to_minor=(1, 0)), SingleDeviceSharding(jax.devices()[0]))
    x = jax.device_put(_X, column_major)
    y = jax.jit(lambda x: x * 2, out_shardings=column_major)(_X)
    z = jax.jit(lambda x: x @ x, in_shardings=column_major)(x)
    return [np.asarray(x), np.asarray(y), np.asarray(z), [tuple(a.format.layout.major_to_minor) for a in (x, y, z)]]


def automatic_layouts():
    auto = Format(Layout.AUTO)
    compiled = jax.jit(lambda x: x @ x.T, in_shardings=auto, out_shardings=auto).lower(jax.ShapeDtypeStruct((8, 8), jnp.float32)).compile()
    x = jax.device_put(_X, compiled.input_formats[0][0])
    return np.asarray(compiled(x))


def layouts_of_sharded_arrays():
    form = Format(Layout(major_to_minor=(1, 0)), _TILES)
    y = jax.jit(lambda x: x + 1, out_shardings=form)(jax.device_put(_X, _TILES))
    back = jax.device_put(y, Format(Layout(major_to_minor=(0, 1)), _TILES))
    return [
        np.asarray(y),
        np.asarray(back),
        np.asarray(y.T),
        [np.asarray(s.data) for s in y.addressable_shards],
        tuple(y.format.layout.major_to_minor),
    ]


def memory_kinds_of_devices():
    d = jax.devices()[0]
    return [sorted(m.kind for m in d.addressable_memories()), d.default_memory().kind, [d.memory(k).kind for k in _KINDS]]


def put_to_memories():
    result = []
    for kind in _KINDS:
        for sharding in (
            SingleDeviceSharding(jax.devices()[2], memory_kind=kind),
            _TILES.with_memory_kind(kind),
            NamedSharding(_MESH, P(), memory_kind=kind),
        ):
            a = jax.device_put(_X, sharding)
            result.append([np.asarray(a), a.sharding.memory_kind, [np.asarray(s.data) for s in a.addressable_shards]])
    return result


def move_between_memories():
    result = []
    for source in _KINDS:
        for target in _KINDS:
            a = jax.device_put(jax.device_put(_X, _TILES.with_memory_kind(source)), _TILES.with_memory_kind(target))
            result.append([np.asarray(a), a.sharding.memory_kind])
    return result


def move_between_memories_and_shardings():
    a = jax.device_put(_X, _TILES.with_memory_kind("pinned_host"))
    b = jax.device_put(a, NamedSharding(_MESH, P("y"), memory_kind="device"))
    return [
        np.asarray(b),
        b.sharding.memory_kind,
        np.asarray(jax.device_put(b, SingleDeviceSharding(jax.devices()[3], memory_kind="pinned_host"))),
    ]


def results_in_memories():
    result = []
    for kind in _KINDS[:2]:
        for sharding in (SingleDeviceSharding(jax.devices()[1], memory_kind=kind), _TILES.with_memory_kind(kind)):
            y = jax.jit(lambda x: x * 2, out_shardings=sharding)(_X)
            result.append([np.asarray(y), y.sharding.memory_kind])
    return result


def moves_inside_a_program():
    host, device = _TILES.with_memory_kind("pinned_host"), _TILES.with_memory_kind("device")

    @jax.jit
    def f(x):
        return jax.device_put(x * 2, device) + 1

    x = jax.device_put(_X, device)
    g = jax.jit(lambda x: jax.device_put(x, device) * 2, in_shardings=host, out_shardings=device)
    return [np.asarray(f(x)), np.asarray(g(jax.device_put(_X, host)))]


def state_offloaded_between_steps():
    """An optimizer state that waits in host memory."""
    host = _TILES.with_memory_kind("pinned_host")
    step = jax.jit(lambda w, m: (w - 0.1 * (m + w), m * 0.9 + w), out_shardings=(_TILES, _TILES))
    w, m = jax.device_put(_X, _TILES), jax.device_put(_X * 0, host)
    for _ in range(5):
        w, m = step(w, jax.device_put(m, _TILES))
        m = jax.device_put(m, host)
    return [np.asarray(w), np.asarray(m), m.sharding.memory_kind]
