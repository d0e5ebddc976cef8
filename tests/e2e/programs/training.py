"""Training loops: Optax, by hand and data-parallel; a Flax NNX model."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

_MESH = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
_BATCH = NamedSharding(_MESH, P("data"))


def _data(step, n=32, d=16):
    rng = np.random.default_rng(step)
    x = rng.standard_normal((n, d)).astype(np.float32)
    return x, np.sin(x.sum(1, keepdims=True)).astype(np.float32)


def _network():
    rng = np.random.default_rng(42)
    w1, w2 = (rng.standard_normal(s).astype(np.float32) * 0.3 for s in ((16, 64), (64, 1)))
    params = {"w1": w1, "b1": np.full(64, 0.1, np.float32), "w2": w2, "b2": np.full(1, 0.1, np.float32)}
    specs = {"w1": P(None, "model"), "b1": P("model"), "w2": P("model"), "b2": P()}
    return {k: jax.device_put(v, NamedSharding(_MESH, specs[k])) for k, v in params.items()}


def _loss(params, x, y):
    h = jax.nn.gelu(x @ params["w1"] + params["b1"])
    return jnp.mean((h @ params["w2"] + params["b2"] - y) ** 2)


def _train(optimizer, steps=20, put=lambda a: jax.device_put(a, _BATCH)):
    params = _network()
    state = optimizer.init(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(_loss)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    losses = []
    for k in range(steps):
        x, y = _data(k)
        params, state, loss = step(params, state, put(x), put(y))
        losses.append(loss)
    return jax.device_get([losses, params, state])


def sgd():
    return _train(optax.sgd(0.05, momentum=0.9))


def adamw_with_schedule_and_clipping():
    schedule = optax.warmup_cosine_decay_schedule(0, 0.01, 5, 20)
    return _train(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule)))


def accumulated_gradients():
    return _train(optax.MultiSteps(optax.adam(0.01), 4))


def replicated_data():
    return _train(optax.rmsprop(0.001), 10, put=lambda a: jax.device_put(a, NamedSharding(_MESH, P())))


def data_parallel_by_hand():
    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
    params = jax.device_put(jax.device_get(_network()), NamedSharding(mesh, P()))

    @functools.partial(jax.jit, donate_argnums=0)
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=(P(), P("d"), P("d")), out_specs=(P(), P()))
    def step(params, x, y):
        varying = jax.tree.map(lambda p: jax.lax.pcast(p, "d", to="varying"), params)
        loss, grads = jax.value_and_grad(_loss)(varying, x, y)
        grads = jax.lax.pmean(grads, "d")
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), jax.lax.pmean(loss, "d")

    losses = []
    for k in range(20):
        params, loss = step(params, *(jax.device_put(a, NamedSharding(mesh, P("d"))) for a in _data(k)))
        losses.append(loss)
    return jax.device_get([losses, params])


def pipeline_over_devices():
    """Each device holds a layer; activations travel by device_put."""
    rng = np.random.default_rng(3)
    layers = [jax.device_put(rng.standard_normal((16, 16)).astype(np.float32) / 4, d) for d in jax.devices()[:4]]
    f = jax.jit(lambda w, x: jnp.tanh(x @ w))
    out = []
    for k in range(8):
        x = _data(k)[0]
        for w in layers:
            x = f(w, jax.device_put(x, w.sharding))
        out.append(x)
    return jax.device_get(out)


def loss_scan_over_steps():
    """The loop itself in one program."""
    xs, ys = (np.stack(a) for a in zip(*(_data(k) for k in range(10)), strict=True))

    def step(params, batch):
        loss, grads = jax.value_and_grad(_loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.05 * g, params, grads), loss

    return jax.device_get(jax.jit(lambda p: jax.lax.scan(step, p, (xs, ys)))(_network()))


class _Model(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.first = nnx.Linear(16, 32, rngs=rngs)
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.last = nnx.Linear(32, 1, rngs=rngs)

    def __call__(self, x):
        return self.last(self.dropout(nnx.relu(self.norm(self.first(x)))))


def flax_nnx():
    model = _Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.01), wrt=nnx.Param)
    replicated = NamedSharding(_MESH, P())
    state = nnx.state((model, optimizer))
    nnx.update((model, optimizer), jax.device_put(state, replicated))

    @nnx.jit
    def step(model, optimizer, x, y):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    losses = [step(model, optimizer, *(jax.device_put(a, _BATCH) for a in _data(k))) for k in range(10)]
    model.eval()
    return jax.device_get([losses, model(_data(99)[0]), nnx.to_pure_dict(nnx.state(model, nnx.Param))])


def flax_nnx_attention():
    model = nnx.MultiHeadAttention(num_heads=4, in_features=16, decode=False, rngs=nnx.Rngs(1))
    x = _data(0)[0].reshape(4, 8, 16)
    grads = nnx.grad(lambda m: m(x).sum())(model)
    return jax.device_get([model(x), nnx.to_pure_dict(nnx.state(grads))])
