"""Arrays of another backend, the program's own cpu as a rule, on their way to workers or from there: by way of the host.

JAX moves arrays between backends with a call of jaxlib's that the proxy client doesn't know. device_put goes round it, arguments don't.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.array import ArrayImpl
from jax._src.interpreters import pxla


def install(is_ours: Callable[[Any], bool]) -> None:
    """is_ours: tells clients of the proxy backend from others."""
    handlers = pxla.shard_arg_handlers
    original: Callable[..., Sequence[Any]] = handlers[ArrayImpl]
    if hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def shard(arrays: Sequence[jax.Array], shardings: Sequence[Any], *rest: Sequence[Any]) -> list[Any]:
        columns = list(zip(arrays, shardings, *rest, strict=True))
        foreign = [
            is_ours(_client(array.sharding)) != is_ours(_client(sharding)) for array, sharding in zip(arrays, shardings, strict=True)
        ]
        results: list[Any] = [None] * len(columns)
        for is_foreign, handler in ((False, original), (True, handlers[np.ndarray])):
            chosen = [index for index, each in enumerate(foreign) if each is is_foreign]
            if chosen:
                first, *others = zip(*(columns[index] for index in chosen), strict=True)
                for index, result in zip(
                    chosen, handler([np.asarray(each) for each in first] if is_foreign else first, *others), strict=True
                ):
                    results[index] = result
        return results

    handlers[ArrayImpl] = shard


def _client(sharding: Any) -> Any:
    return next(iter(sharding.device_set)).client
