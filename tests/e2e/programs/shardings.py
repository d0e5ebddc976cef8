"""How arrays lie on devices: constraints, ragged and reshape shardings, moves between any two."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

_DEVICES = np.array(jax.devices()[:4])
_GRID = Mesh(_DEVICES.reshape(2, 2), ("x", "y"))
_X = np.arange(96, dtype=np.float32).reshape(8, 12)
_SHARDINGS = {
    "single0": SingleDeviceSharding(_DEVICES[0]),
    "single3": SingleDeviceSharding(_DEVICES[3]),
    "replicated": NamedSharding(_GRID, P()),
    "rows": NamedSharding(_GRID, P("x")),
    "columns": NamedSharding(_GRID, P(None, "y")),
    "tiles": NamedSharding(_GRID, P("x", "y")),
    "turned": NamedSharding(_GRID, P("y", "x")),
    "flat": NamedSharding(_GRID, P(("x", "y"))),
    "flat_columns": NamedSharding(_GRID, P(None, ("y", "x"))),
    "pair": NamedSharding(Mesh(_DEVICES[[2, 1]], ("p",)), P("p")),
    "pair_replicated": NamedSharding(Mesh(_DEVICES[[0, 3]], ("p",)), P()),
    "reversed": NamedSharding(Mesh(_DEVICES[::-1], ("r",)), P(None, "r")),
    "three": NamedSharding(Mesh(_DEVICES[1:], ("t",)), P(None, "t")),
}


def _shards(x):
    """What each device holds, with where it belongs."""
    return [(s.device.id, str(s.index), s.replica_id, np.asarray(s.data)) for s in x.addressable_shards]


def put():
    return {name: _shards(jax.device_put(_X, s)) for name, s in _SHARDINGS.items()}


def move_between_any_two():
    result = {}
    for (a, source), (b, target) in itertools.product(_SHARDINGS.items(), _SHARDINGS.items()):
        moved = jax.device_put(jax.device_put(_X, source), target)
        assert moved.sharding == target
        result[f"{a} {b}"] = [np.asarray(s.data) for s in moved.addressable_shards]
    return result


def move_many_at_once():
    names = list(_SHARDINGS)
    arrays = [jax.device_put(_X + i, _SHARDINGS[n]) for i, n in enumerate(names)]
    moved = jax.device_put(arrays, [_SHARDINGS[n] for n in reversed(names)])
    return [np.asarray(m) for m in moved]


def move_with_donation():
    source = jax.device_put(_X, _SHARDINGS["rows"])
    moved = jax.device_put(source, _SHARDINGS["flat"], donate=True)
    return [np.asarray(moved), source.is_deleted()]


def move_to_a_device():
    x = jax.device_put(_X)
    return [_shards(jax.device_put(x, d)) for d in _DEVICES]


def copies():
    """A copy that must not share memory outlives the original."""
    x = jax.device_put(_X, _SHARDINGS["tiles"])
    other = jax.device_put(x, x.sharding, may_alias=False)
    x.delete()
    return np.asarray(other)


def outputs():
    return {name: _shards(jax.jit(lambda x: x * 2, out_shardings=s)(_X)) for name, s in _SHARDINGS.items()}


def inputs_of_every_kind():
    f = jax.jit(lambda x: (x.sum(), x @ x.T, x * 2))
    return {name: jax.device_get(f(jax.device_put(_X, s))) for name, s in _SHARDINGS.items()}


def chosen_by_the_compiler():
    """The sharding of results, where nothing is said."""
    f = jax.jit(lambda x: (x * 2, x.T, x.sum(0), x @ jnp.ones((12, 4)), x.reshape(4, 24)))
    names = ["tiles", "rows", "columns", "flat", "replicated"]
    return {
        n: [
            (str(y.sharding.spec) if isinstance(y.sharding, NamedSharding) else "?", _shards(y))
            for y in f(jax.device_put(_X, _SHARDINGS[n]))
        ]
        for n in names
    }


def constraints():
    @jax.jit
    def f(x):
        y = jax.lax.with_sharding_constraint(x * 2, NamedSharding(_GRID, P("y", "x")))
        z = jax.lax.with_sharding_constraint(y @ y.T, NamedSharding(_GRID, P(None, ("x", "y"))))
        return y, z

    return [_shards(y) for y in f(jax.device_put(_X, _SHARDINGS["tiles"]))]


def uneven_inside_a_program():
    """Lengths that the devices don't divide: padded by the partitioner, inside the program only."""
    f = jax.jit(
        lambda x: jax.lax.with_sharding_constraint(
            jax.lax.with_sharding_constraint(x, NamedSharding(_GRID, P(("x", "y")))) * 3, NamedSharding(_GRID, P())
        )
    )
    return [np.asarray(f(np.arange(n, dtype=np.float32))) for n in (1, 3, 5, 7, 10)]


def uneven_is_refused():
    try:
        jax.device_put(np.arange(7), NamedSharding(_GRID, P("x")))
    except ValueError as error:
        return "divisible" in str(error)
    return False


def reshaped():
    """A reshape that splits a sharded dimension."""
    x = jax.device_put(_X, _SHARDINGS["flat"])
    return [
        _shards(y)
        for y in jax.jit(lambda x: (x.reshape(2, 4, 12), x.reshape(96), x.reshape(16, 6), x.reshape(4, 2, 3, 4).transpose(1, 0, 2, 3)))(x)
    ]


def inputs_of_mixed_shardings():
    arrays = [jax.device_put(_X, _SHARDINGS[n]) for n in ("tiles", "rows", "columns", "flat", "replicated", "turned")]
    return jax.device_get(jax.jit(lambda *a: (sum(a), jnp.concatenate(a), jnp.stack(a).max(0)))(*arrays))


def computing_follows_data():
    return [_shards(jnp.sin(jax.device_put(_X[0], d)) + 1) for d in _DEVICES]


def programs_on_subsets():
    f = jax.jit(lambda x: (x - x.mean(0)) @ x.T)
    result = []
    for order in ([0], [3], [0, 1], [1, 2], [3, 0], [1, 2, 3], [2, 3, 0, 1]):
        mesh = Mesh(_DEVICES[order], ("s",))
        x = jax.device_put(np.resize(_X, (12, 6)), NamedSharding(mesh, P("s")))
        result.append(_shards(f(x)))
    return result


def default_device():
    result = []
    for d in _DEVICES:
        with jax.default_device(d):
            y = jnp.arange(5) * 2
            result.append([next(iter(y.devices())).id, np.asarray(y)])
    return result


def static_mesh_context():
    with jax.set_mesh(_GRID):
        f = jax.jit(lambda x: jax.lax.with_sharding_constraint(x + 1, P("x", "y")), in_shardings=P("y"), out_shardings=P("x", "y"))
        return _shards(f(_X))


def of_ones():
    """Arrays made inside a program, sharded."""
    f = jax.jit(
        lambda: (jnp.ones((8, 4)), jnp.arange(16), jnp.float32(3)),
        out_shardings=(_SHARDINGS["tiles"], _SHARDINGS["flat"], _SHARDINGS["replicated"]),
    )
    return [_shards(y) for y in f()]
