"""Random numbers: the same bits everywhere, however the array is sharded."""

import jax
import jax.numpy as jnp
import numpy as np

_KINDS = ["threefry2x32", "rbg", "unsafe_rbg"]


def bits():
    return {
        kind: jax.device_get([jax.random.bits(jax.random.key(1, impl=kind), (5, 7), t) for t in ("uint8", "uint16", "uint32")])
        for kind in _KINDS
    }


def distributions():
    key = jax.random.key(3)
    draws = {
        "uniform": lambda k: jax.random.uniform(k, (50,)),
        "normal": lambda k: jax.random.normal(k, (50,)),
        "normal_bf16": lambda k: jax.random.normal(k, (50,), jnp.bfloat16),
        "randint": lambda k: jax.random.randint(k, (50,), -9, 99),
        "bernoulli": lambda k: jax.random.bernoulli(k, 0.3, (50,)),
        "categorical": lambda k: jax.random.categorical(k, jnp.arange(6.0), shape=(50,)),
        "gamma": lambda k: jax.random.gamma(k, 2.5, (20,)),
        "beta": lambda k: jax.random.beta(k, 2.0, 3.0, (20,)),
        "poisson": lambda k: jax.random.poisson(k, 4.0, (20,)),
        "dirichlet": lambda k: jax.random.dirichlet(k, jnp.ones(3), (5,)),
        "exponential": lambda k: jax.random.exponential(k, (20,)),
        "gumbel": lambda k: jax.random.gumbel(k, (20,)),
        "laplace": lambda k: jax.random.laplace(k, (20,)),
        "truncated_normal": lambda k: jax.random.truncated_normal(k, -1, 2, (20,)),
        "multivariate_normal": lambda k: jax.random.multivariate_normal(k, jnp.zeros(2), jnp.eye(2) * 3, (5,)),
        "permutation": lambda k: jax.random.permutation(k, 40),
        "choice": lambda k: jax.random.choice(k, 40, (10,), replace=False),
        "orthogonal": lambda k: jax.random.orthogonal(k, 4),
        "complex": lambda k: jax.random.normal(k, (10,), jnp.complex64),
    }
    return {name: np.asarray(jax.jit(draw)(key)) for name, draw in draws.items()}


def splitting():
    key = jax.random.PRNGKey(5)
    return jax.device_get(
        [key, jax.random.split(key, 5), jax.random.fold_in(key, 9), jax.random.split(key, (2, 3)), jax.random.wrap_key_data(key).dtype.name]
    )


def with_sharded_results():
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    sharding = jax.sharding.NamedSharding(mesh, jax.P("x", "y"))
    f = jax.jit(lambda k: jax.random.normal(k, (8, 12)), out_shardings=sharding)
    return {kind: np.asarray(f(jax.random.key(11, impl=kind))) for kind in ["threefry2x32"]}


def in_a_loop():
    def body(key, _):
        key, sub = jax.random.split(key)
        return key, jax.random.uniform(sub, (3,))

    return np.asarray(jax.jit(lambda k: jax.lax.scan(body, k, None, 10)[1])(jax.random.key(0)))


def rng_bit_generator():
    state = jnp.arange(4, dtype=jnp.uint32)
    return jax.device_get([jax.lax.rng_bit_generator(state, (6,), jnp.dtype(t)) for t in ("uint8", "uint32")])


def rng_uniform():
    """XLA's stateful generator: only the range can be compared."""
    x = jax.lax.rng_uniform(0.0, 1.0, (1000,))
    return bool((x >= 0).all() and (x < 1).all() and x.std() > 0.2)
