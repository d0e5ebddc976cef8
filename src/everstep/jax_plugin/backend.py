"""The backend "proxy": known to JAX from 0.12 on, registered here for older ones."""

from __future__ import annotations

import os
import re
from typing import Any

import jax
from jax._src import xla_bridge

from everstep.jax_plugin import large_buffers

NAME = "proxy"

_config: Any = jax.config  # hardly typed

# What jaxlib's client wants to hear before it connects without credentials: the only way it can talk to anyone outside Google.
_INSECURE = "IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"
_STAYS_ON_THIS_MACHINE = re.compile(r"grpc://(unix:.*|localhost:\d+|127(\.\d+){3}:\d+|\[::1\]:\d+)")


def target() -> str:
    """The address of the head as JAX was told it, "grpc://unix:/path" or "grpc://host:port"; "" if it was not."""
    value = xla_bridge.BACKEND_TARGET.value or ""
    given = os.environ.get("JAX_BACKEND_TARGET", "")
    # JAX lower-cases what it reads from the environment, and paths may have capitals.
    return given if value == given.lower() else value


def is_wanted() -> bool:
    """Whether this program may use the backend: it names it, or says where its server is."""
    platforms = (_config.jax_platforms or "").split(",")
    return NAME in platforms or target().startswith("grpc://")


def is_ours(client: Any) -> bool:
    """Whether a client of jaxlib's is the proxy backend's."""
    return str(getattr(client, "runtime_type", "")).startswith(f"{NAME}/")


def prepare() -> None:
    """Let JAX create the backend if it wants to. Nothing connects yet."""
    _config.update("jax_backend_target", target())
    if _STAYS_ON_THIS_MACHINE.fullmatch(target()):
        os.environ.setdefault(_INSECURE, "true")
    large_buffers.claim()
    if NAME not in xla_bridge._backend_factories:
        xla_bridge.register_backend_factory(NAME, _connect, priority=-1)


def _connect() -> Any:
    """JAX's client, connected. Raises RuntimeError without a target, JaxRuntimeError if nobody answers there."""
    from jax.extend.backend import ifrt_proxy

    if not target():
        raise RuntimeError(
            "the backend 'proxy' needs the address of a head: set JAX_BACKEND_TARGET, or start the program with 'everstep run'"
        )
    options = ifrt_proxy.ClientConnectionOptions()
    if timeout := os.environ.get("PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS"):  # as pathwaysutils reads it
        options.connection_timeout_in_seconds = int(timeout)
    return ifrt_proxy.get_client(target(), options)
