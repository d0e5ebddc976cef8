"""Train a small byte-level GPT on the Python standard library's own source files. Plain JAX and Optax.

On the devices of this process:

    python examples/gpt.py
    XLA_FLAGS=--xla_force_host_platform_device_count=4 JAX_PLATFORMS=cpu python examples/gpt.py

On workers that it can't see, two slices of one device each; nothing in this file changes:

    everstep run --slices 2 --devices-per-worker 1 -- python examples/gpt.py

The batch is split over all devices, the parameters are on each of them; XLA adds up the gradients.
"""

import argparse
import dataclasses
import functools
import itertools
import pathlib
import sysconfig
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int = 4
    heads: int = 4
    width: int = 96
    context: int = 64  # bytes
    batch: int = 24  # sequences
    steps: int = 600
    learning_rate: float = 5e-3


def read_text() -> np.ndarray:
    """Every module at the top of the standard library, as bytes."""
    files = sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return np.frombuffer(b"\n".join(file.read_bytes() for file in files), np.uint8)


def batches(text: np.ndarray, config: Config, seed: int = 0):
    """Endless [batch, context + 1] samples of the text."""
    rng = np.random.default_rng(seed)
    while True:
        starts = rng.integers(0, len(text) - config.context - 1, config.batch)
        yield text[starts[:, None] + np.arange(config.context + 1)].astype(np.int32)


def init(key: jax.Array, config: Config) -> dict:
    """Parameters; those of the layers are stacked along a first axis, to be scanned over."""
    n, d = config.layers, config.width

    def normal(key, *shape, scale):
        return scale * jax.random.normal(key, shape)

    keys = jax.random.split(key, 6)
    return {
        "bytes": normal(keys[0], 256, d, scale=0.02),
        "positions": normal(keys[1], config.context, d, scale=0.02),
        "layers": {
            "qkv": normal(keys[2], n, d, 3 * d, scale=d**-0.5),
            "out": normal(keys[3], n, d, d, scale=d**-0.5 / n),
            "up": normal(keys[4], n, d, 4 * d, scale=d**-0.5),
            "down": normal(keys[5], n, 4 * d, d, scale=(4 * d) ** -0.5 / n),
            "norm1": jnp.ones((n, d)),
            "norm2": jnp.ones((n, d)),
        },
        "norm": jnp.ones(d),
    }


def norm(x, scale):
    return x * scale * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-6)


def logits(params, tokens, config):
    """[batch, length] bytes -> [batch, length, 256] scores of the byte that follows."""
    batch, length = tokens.shape
    causal = jnp.tril(jnp.ones((length, length), bool))

    def layer(x, p):
        q, k, v = jnp.split((norm(x, p["norm1"]) @ p["qkv"]).reshape(batch, length, config.heads, -1), 3, -1)
        scores = jnp.einsum("bihd,bjhd->bhij", q, k) * q.shape[-1] ** -0.5
        weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))
        x += jnp.einsum("bhij,bjhd->bihd", weights, v).reshape(x.shape) @ p["out"]
        x += jax.nn.gelu(norm(x, p["norm2"]) @ p["up"]) @ p["down"]
        return x, None

    x = params["bytes"][tokens] + params["positions"][:length]
    x, _ = jax.lax.scan(layer, x, params["layers"])
    return norm(x, params["norm"]) @ params["bytes"].T


def loss(params, samples, config):
    scores = logits(params, samples[:, :-1], config)
    return optax.softmax_cross_entropy_with_integer_labels(scores, samples[:, 1:]).mean()


@functools.partial(jax.jit, static_argnames=("config", "length"))
def generate(params, prompt, key, config, length):
    """`length` bytes that follow the prompt, one after the other."""

    def step(carry, key):
        window, end = carry  # the last `context` bytes; how many of them are there yet
        scores = logits(params, window[None], config)[0, end - 1]
        byte = jax.random.categorical(key, scores / 0.8)
        full = end == config.context
        window = jnp.where(full, jnp.roll(window, -1), window).at[jnp.where(full, end - 1, end)].set(byte)
        return (window, jnp.where(full, end, end + 1)), byte

    window = jnp.zeros(config.context, jnp.int32).at[: len(prompt)].set(prompt)
    return jax.lax.scan(step, (window, len(prompt)), jax.random.split(key, length))[1]


def main(config: Config) -> None:
    mesh = Mesh(np.array(jax.devices()), ("data",))
    everywhere, split = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))
    config = dataclasses.replace(config, batch=-(-config.batch // mesh.size) * mesh.size)  # a multiple of the devices
    optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0, config.learning_rate, config.steps // 10 + 1, config.steps + 1))

    @functools.partial(jax.jit, out_shardings=everywhere)
    def start(key):
        params = init(key, config)
        return params, optimizer.init(params)

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def train(params, state, samples):
        value, gradients = jax.value_and_grad(loss)(params, samples, config)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    text = read_text()
    params, state = start(jax.random.key(0))
    size = sum(x.size for x in jax.tree.leaves(params))
    print(
        f"{len(text) / 1e6:.1f} MB of text, {size / 1e6:.2f} M parameters, {mesh.size} devices on {mesh.devices.flat[0].platform}",
        flush=True,
    )
    then = time.perf_counter()
    for step, samples in enumerate(itertools.islice(batches(text, config), config.steps), 1):
        params, state, value = train(params, state, jax.device_put(samples, split))
        value = float(value)  # waits for the step
        then, seconds = time.perf_counter(), time.perf_counter() - then
        print(f"step {step:4d}  loss {value:.3f}  {config.batch * config.context / seconds:8.0f} tokens/s", flush=True)

    prompt = b"def "
    continued = generate(params, np.frombuffer(prompt, np.uint8), jax.random.key(1), config, 300)
    print("\nA sample:\n" + (prompt + bytes(np.asarray(continued, np.uint8))).decode(errors="replace"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for field in dataclasses.fields(Config):
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    main(Config(**vars(parser.parse_args())))
