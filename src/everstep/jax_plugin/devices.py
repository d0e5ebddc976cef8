"""Questions to the proxy backend and its devices that jaxlib's client has no answer to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from jax._src import xla_bridge
from jaxlib import _jax

_jaxlib: Any = _jax


def install(is_ours: Callable[[Any], bool]) -> None:
    """is_ours: tells clients of the proxy backend from others."""
    if not hasattr(_jaxlib.Device.memory_stats, "__wrapped__"):
        _jaxlib.Device.memory_stats = _memory_stats(_jaxlib.Device.memory_stats, is_ours)
    analyse = getattr(_jaxlib, "hlo_module_cost_analysis", None)
    if analyse is not None and not hasattr(analyse, "__wrapped__"):
        _jaxlib.hlo_module_cost_analysis = _cost_analysis(analyse, is_ours)


def _memory_stats(original: Callable[..., Any], is_ours: Callable[[Any], bool]) -> Callable[..., Any]:
    @functools.wraps(original)
    def memory_stats(device: Any) -> Any:
        """None, as from a CPU: programs ask all their devices, and know that some can't tell."""
        return None if is_ours(device.client) else original(device)

    return memory_stats


def _cost_analysis(original: Callable[..., Any], is_ours: Callable[[Any], bool]) -> Callable[..., Any]:
    @functools.wraps(original)
    def hlo_module_cost_analysis(client: Any, module: Any) -> Any:
        """Of a program that is not compiled yet: an estimate, which any client can make."""
        return original(xla_bridge.get_backend("cpu") if is_ours(client) else client, module)

    return hlo_module_cost_analysis
