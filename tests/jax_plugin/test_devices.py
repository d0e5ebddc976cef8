"""Questions to devices."""

from __future__ import annotations

import jax
import pytest
from jaxlib import _jax

from everstep.jax_plugin import devices


@pytest.mark.parametrize("ours", [True, False])
def test_memory_stats(monkeypatch: pytest.MonkeyPatch, ours: bool) -> None:
    monkeypatch.setattr(_jax.Device, "memory_stats", lambda self: {"bytes_in_use": 5})
    devices.install(lambda client: ours)
    once = _jax.Device.memory_stats
    devices.install(lambda client: not ours)
    assert _jax.Device.memory_stats is once, "installing again changes nothing"
    assert jax.devices("cpu")[0].memory_stats() == (None if ours else {"bytes_in_use": 5})
