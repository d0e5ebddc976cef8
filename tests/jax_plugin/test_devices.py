"""Questions to devices and backends."""

from __future__ import annotations

from collections.abc import Callable

import jax
import pytest
from jax._src import xla_bridge
from jaxlib import _jax

from everstep.jax_plugin import devices

Install = Callable[[bool], None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Over a jaxlib that tells what it was asked. With everything the proxy backend's, or nothing."""
    monkeypatch.setattr(_jax.Device, "memory_stats", lambda self: {"bytes_in_use": 5})
    monkeypatch.setattr(_jax, "hlo_module_cost_analysis", lambda client, module: (client, module))

    def install(ours: bool) -> None:
        devices.install(lambda client: ours)
        once = _jax.Device.memory_stats, _jax.hlo_module_cost_analysis
        devices.install(lambda client: not ours)
        assert once == (_jax.Device.memory_stats, _jax.hlo_module_cost_analysis), "installing again changes nothing"

    return install


@pytest.mark.parametrize("ours", [True, False])
def test_memory_stats(install: Install, ours: bool) -> None:
    install(ours)
    assert jax.devices("cpu")[0].memory_stats() == (None if ours else {"bytes_in_use": 5})


@pytest.mark.parametrize("ours", [True, False])
def test_cost_analysis_before_compiling(install: Install, ours: bool) -> None:
    install(ours)
    asked, module = _jax.hlo_module_cost_analysis("client", "module")
    assert module == "module"
    assert asked is xla_bridge.get_backend("cpu") if ours else asked == "client"
