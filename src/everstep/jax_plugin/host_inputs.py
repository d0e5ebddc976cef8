"""NumPy arrays on their way to workers: copied first, because jaxlib's client goes on reading them after the call has returned.

Plain JAX on CPU has read them by then in all but a few cases, and programs count on it: a data loader fills the same buffer again. The
client also refuses strides that are negative or zero, which a copy doesn't have. Arguments of a function that is compiled already go
another way, in C++, where nothing can be put between: as on a GPU, they must not change before the call's results are there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax._src.interpreters import pxla
from jax._src.lax import lax


def install() -> None:
    """Put the copy before JAX's own handling: of device_put and the like, for devices of the proxy backend, and of jnp.array."""
    handlers = pxla.shard_arg_handlers
    original = handlers[np.ndarray]
    if not hasattr(original, "__wrapped__"):
        copying = _copying(original)
        # One handler serves several types: JAX has a subclass of its own for arrays whose dtype is settled.
        handlers.update({kind: copying for kind, handler in handlers.items() if handler is original})
    if not hasattr(lax.stage, "__wrapped__"):
        lax.stage = _staging(lax.stage)


def _copying(handler: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(handler)
    def shard(arrays: Sequence[np.ndarray[Any, Any]], shardings: Sequence[Any], *rest: Any) -> Any:
        ours = [array.copy("C") if _is_remote(sharding) else array for array, sharding in zip(arrays, shardings, strict=True)]
        return handler(ours, shardings, *rest)

    return shard


def _staging(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def stage(value: Any, *rest: Any, **options: Any) -> Any:
        return original(value.copy("C") if isinstance(value, np.ndarray) else value, *rest, **options)

    return stage


def _is_remote(sharding: Any) -> bool:
    device = next(iter(sharding.device_set))
    return bool(device.client.runtime_type.startswith("proxy"))
