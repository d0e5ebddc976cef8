"""One step of training, for given devices: how the state lies on them, and the programs."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from everstep.train.config import Config, ConfigError
from everstep.train.data import Tokens
from everstep.train.model import Decoder

State = Any  # {"params": ..., "optimizer": ...}

# By the name of a layer: which axes its kernel [in, out] is cut along. Others lie on all devices.
_KERNELS = {
    **dict.fromkeys(("query", "key", "value", "gate", "up", "head"), ("fsdp", "tensor")),
    **dict.fromkeys(("out", "down"), ("tensor", "fsdp")),
    "embedding": ("tensor", "fsdp"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Rounds:
    """How a batch is fed: [rounds, samples] with a weight of 0 for those that only fill up."""

    rounds: int
    samples: int

    @staticmethod
    def of(batch: int, shards: int, most: int) -> Rounds:
        """For a batch over so many shards of devices with at most `most` samples each at one time."""
        rounds = -(-batch // (shards * most))
        return Rounds(rounds, -(-batch // (rounds * shards)) * shards)

    def laid_out(self, samples: Tokens) -> tuple[Tokens, np.ndarray[Any, Any]]:
        """Tokens int32 [rounds, samples, length + 1] and weights float32 [rounds, samples]."""
        missing = self.rounds * self.samples - len(samples)
        filled = np.concatenate([samples, np.zeros((missing, samples.shape[1]), np.int32)])
        weights = np.concatenate([np.ones(len(samples), np.float32), np.zeros(missing, np.float32)])
        return filled.reshape(self.rounds, self.samples, -1), weights.reshape(self.rounds, self.samples)


class Programs:
    """What training needs on given devices, compiled."""

    def __init__(self, config: Config, vocabulary: int, devices: list[jax.Device]) -> None:
        """Raises ConfigError if the mesh does not fit the devices."""
        shape = config.mesh.fsdp * config.mesh.tensor
        if len(devices) % shape:
            raise ConfigError(f"mesh: fsdp {config.mesh.fsdp} x tensor {config.mesh.tensor} does not divide {len(devices)} devices")
        grid = np.array(devices).reshape(-1, config.mesh.fsdp, config.mesh.tensor)
        self._config = config
        self._mesh = Mesh(grid, ("data", "fsdp", "tensor"))
        self._rounds = Rounds.of(config.train.batch, len(devices) // config.mesh.tensor, config.train.most)
        self._batch = NamedSharding(self._mesh, P(None, ("data", "fsdp")))
        model = nnx.eval_shape(lambda: Decoder(config.model, vocabulary, nnx.Rngs(config.train.seed)))
        self._graph, shapes = nnx.split(model, nnx.Param)
        self._optimizer = _optimizer(config)
        self._vocabulary = vocabulary
        abstract = jax.eval_shape(lambda params: {"params": params, "optimizer": self._optimizer.init(params)}, nnx.to_pure_dict(shapes))
        self.shardings = jax.tree_util.tree_map_with_path(self._sharding, abstract)
        self.abstract = jax.tree.map(lambda x, s: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s), abstract, self.shardings)
        self.everywhere = NamedSharding(self._mesh, P())
        self.abstract_loss = jax.ShapeDtypeStruct((), jnp.float32, sharding=self.everywhere)
        shape_of_batch = (self._rounds.rounds, self._rounds.samples)
        tokens = jax.ShapeDtypeStruct((*shape_of_batch, config.model.context + 1), jnp.int32, sharding=self._batch)
        weights = jax.ShapeDtypeStruct(shape_of_batch, jnp.float32, sharding=self._batch)
        step = jax.jit(self._step, donate_argnums=0, out_shardings=(self.shardings, self.everywhere))
        self._compiled_step = step.lower(self.abstract, tokens, weights).compile()
        loss = jax.jit(self._loss, out_shardings=self.everywhere)
        self._compiled_loss = loss.lower(self.abstract["params"], tokens, weights).compile() if config.train.evaluate else loss

    def start(self) -> State:
        """The first state, from the seed."""

        def make() -> State:
            model = Decoder(self._config.model, self._vocabulary, nnx.Rngs(self._config.train.seed))
            params = nnx.to_pure_dict(nnx.state(model, nnx.Param))
            return {"params": params, "optimizer": self._optimizer.init(params)}

        return jax.jit(make, out_shardings=self.shardings)()

    def step(self, state: State, samples: Tokens) -> tuple[State, jax.Array]:
        """One step on samples int32 [batch, context + 1]: the new state, and the mean loss per token before it. Takes over the state."""
        result: tuple[State, jax.Array] = self._compiled_step(state, *self._put(samples))
        return result

    def loss(self, state: State, samples: Tokens) -> jax.Array:
        """The mean loss per token."""
        result: jax.Array = self._compiled_loss(state["params"], *self._put(samples))
        return result

    def _put(self, samples: Tokens) -> tuple[jax.Array, jax.Array]:
        tokens, weights = self._rounds.laid_out(samples)
        return jax.device_put(tokens, self._batch), jax.device_put(weights, self._batch)

    def _sharding(self, path: Any, leaf: Any) -> NamedSharding:
        names = [str(getattr(key, "key", getattr(key, "name", ""))) for key in path]
        axes = next((_KERNELS[name] for name in reversed(names) if name in _KERNELS), ()) if leaf.ndim == 2 else ()
        fitting = [axis if size % self._mesh.shape[axis] == 0 else None for axis, size in zip(axes, leaf.shape, strict=False)]
        return NamedSharding(self._mesh, P(*fitting))

    def _sum(self, params: Any, tokens: jax.Array, weights: jax.Array) -> jax.Array:
        """The weighted sum of the samples' mean losses. tokens: [samples, length + 1], weights: [samples]."""
        logits = nnx.merge(self._graph, nnx.State(jax.tree.map(nnx.Param, params)))(tokens[:, :-1])
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean(1)
        total: jax.Array = (losses * weights).sum()
        return total

    def _loss(self, params: Any, tokens: jax.Array, weights: jax.Array) -> jax.Array:
        total, _ = jax.lax.scan(lambda total, each: (total + self._sum(params, *each), None), jnp.zeros(()), (tokens, weights))
        return total / weights.sum()

    def _step(self, state: State, tokens: jax.Array, weights: jax.Array) -> tuple[State, jax.Array]:
        def one(carry: Any, each: Any) -> tuple[Any, None]:
            value, gradients = jax.value_and_grad(self._sum)(state["params"], *each)
            return jax.tree.map(jnp.add, carry, (value, gradients)), None

        zero = jnp.zeros(()), jax.tree.map(jnp.zeros_like, state["params"])
        (value, gradients), _ = jax.lax.scan(one, zero, (tokens, weights))
        count = weights.sum()
        gradients = jax.tree.map(lambda gradient: gradient / count, gradients)
        updates, optimizer = self._optimizer.update(gradients, state["optimizer"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "optimizer": optimizer}, value / count


def _optimizer(config: Config) -> optax.GradientTransformation:
    chosen = config.optimizer
    warmup = min(chosen.warmup, config.train.steps - 1)
    rate = optax.warmup_cosine_decay_schedule(
        0.0 if warmup else chosen.learning_rate, chosen.learning_rate, warmup, config.train.steps, chosen.learning_rate * chosen.floor
    )
    matrices = lambda params: jax.tree.map(lambda leaf: leaf.ndim > 1, params)  # noqa: E731
    return optax.chain(
        optax.clip_by_global_norm(chosen.clip),
        optax.adamw(rate, b1=chosen.b1, b2=chosen.b2, weight_decay=chosen.weight_decay, mask=matrices),
    )
