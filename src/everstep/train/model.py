"""A Llama-style decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU. In Flax NNX."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx

from everstep.train.config import Model

_ROTARY_BASE = 10_000.0


class Attention(nnx.Module):
    """Causal self-attention; several heads of queries share one of keys and values."""

    def __init__(self, config: Model, rngs: nnx.Rngs) -> None:
        self.heads, self.kv_heads, self.size = config.heads, config.kv_heads, config.width // config.heads
        self.query = _linear(config.width, self.heads * self.size, config, rngs)
        self.key = _linear(config.width, self.kv_heads * self.size, config, rngs)
        self.value = _linear(config.width, self.kv_heads * self.size, config, rngs)
        self.out = _linear(self.heads * self.size, config.width, config, rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        """x: [batch, length, width]."""
        batch, length, _ = x.shape
        query = _rotate(self.query(x).reshape(batch, length, self.heads, self.size))
        key = _rotate(self.key(x).reshape(batch, length, self.kv_heads, self.size))
        value = self.value(x).reshape(batch, length, self.kv_heads, self.size)
        mixed = jax.nn.dot_product_attention(query, key, value, is_causal=True)
        result: jax.Array = self.out(mixed.reshape(batch, length, self.heads * self.size))
        return result


class FeedForward(nnx.Module):
    """SwiGLU."""

    def __init__(self, config: Model, rngs: nnx.Rngs) -> None:
        hidden = config.hidden or -(-8 * config.width // 3 // 32) * 32
        self.gate = _linear(config.width, hidden, config, rngs)
        self.up = _linear(config.width, hidden, config, rngs)
        self.down = _linear(hidden, config.width, config, rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        result: jax.Array = self.down(jax.nn.silu(self.gate(x)) * self.up(x))
        return result


class Block(nnx.Module):
    """One layer."""

    def __init__(self, config: Model, rngs: nnx.Rngs) -> None:
        self.before_attention = _norm(config, rngs)
        self.attention = Attention(config, rngs)
        self.before_feed_forward = _norm(config, rngs)
        self.feed_forward = FeedForward(config, rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attention(self.before_attention(x))
        return x + self.feed_forward(self.before_feed_forward(x))


class Decoder(nnx.Module):
    """Tokens to logits."""

    def __init__(self, config: Model, vocabulary: int, rngs: nnx.Rngs) -> None:
        spread = nnx.initializers.normal(0.02)
        self.embedding = nnx.Embed(vocabulary, config.width, dtype=_dtype(config), embedding_init=spread, rngs=rngs)
        self.blocks = nnx.List([Block(config, rngs) for _ in range(config.layers)])
        self.norm = _norm(config, rngs)
        self.head = _linear(config.width, vocabulary, config, rngs)

    def __call__(self, tokens: jax.Array) -> jax.Array:
        """tokens: int [batch, length]. Returns float32 [batch, length, vocabulary]."""
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).astype(jnp.float32)


def parameters(model: Decoder) -> int:
    """How many numbers it learns."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nnx.state(model, nnx.Param)))


def _dtype(config: Model) -> Any:
    return jnp.bfloat16 if config.dtype == "bfloat16" else jnp.float32


def _linear(into: int, out: int, config: Model, rngs: nnx.Rngs) -> nnx.Linear:
    return nnx.Linear(into, out, use_bias=False, dtype=_dtype(config), kernel_init=nnx.initializers.normal(0.02), rngs=rngs)


def _norm(config: Model, rngs: nnx.Rngs) -> nnx.RMSNorm:
    return nnx.RMSNorm(config.width, dtype=_dtype(config), rngs=rngs)


def _rotate(x: jax.Array) -> jax.Array:
    """Rotary positions (Su et al., RoFormer, 2021). x: [batch, length, heads, size]."""
    size = x.shape[-1]
    frequencies = _ROTARY_BASE ** (-jnp.arange(0, size, 2, dtype=jnp.float32) / size)
    angles = jnp.arange(x.shape[1], dtype=jnp.float32)[:, None] * frequencies
    cos, sin = jnp.cos(angles)[:, None, :], jnp.sin(angles)[:, None, :]
    left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1).astype(x.dtype)
