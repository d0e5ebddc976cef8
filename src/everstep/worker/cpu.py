"""Worlds of CPU devices: all that is peculiar to CPUs.

A world of one worker is the client that JAX itself would make, so that results are the same to the bit. A world of several is a client per
worker with gloo between them. Gloo knows no cancelling: to break a world its TCP connections are shut under it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxlib import _jax, xla_client

from everstep.wire import channel_pb2 as wire
from everstep.worker import coordination, xla
from everstep.worker.world import Locals, Placement, World

_COMBINER = "cpu-all-reduce-combiner"
_TOPOLOGY_MINUTES = 1

# Before 0.12 XLA gives each of its threads to whichever program comes first, and two programs over the same devices, each with some of the
# threads it needs, wait for each other for ever.
_ONE_AT_A_TIME = xla.VERSION < (0, 12)

_WARM_UP = """
func.func public @main(%x: tensor<f32>) -> tensor<f32> {
  %y = stablehlo.add %x, %x : tensor<f32>
  return %y : tensor<f32>
}
"""


class CpuPlatform:
    """The CPU devices of this worker."""

    def __init__(self, devices: int, keep_combiner: bool) -> None:
        self._count = devices
        self._keep_combiner = keep_combiner
        client = _make_client(devices)
        self.version: str = client.platform_version
        self.devices = [_describe(device) for device in client.local_devices()]
        _warm_up(client)

    def world(self, number: int, host: str) -> World:
        """host: the address by which other workers reach this one."""
        return CpuWorld(number, self._count, host, self._keep_combiner)


def _describe(device: xla.Device) -> wire.DeviceInfo:
    return wire.DeviceInfo(
        platform=device.platform,
        kind=device.device_kind,
        memory_kinds=[memory.kind for memory in device.addressable_memories()],
        default_memory_kind=device.default_memory().kind,
    )


def _warm_up(client: xla.Client) -> None:
    """Run a program: half a second to two that the first one of a world would have to wait for."""
    device = client.local_devices()[0]
    options = xla_client.CompileOptions()
    executable = xla.compile_program(client, xla.parse(_WARM_UP.encode()), xla.device_list([device]), options, ())
    results = executable.execute_sharded([xla.put(np.ones((), np.float32), device, None)])
    xla.view(results.disassemble_into_single_device_arrays()[0][0])


def _make_client(devices: int) -> xla.Client:
    return xla_client.make_cpu_client(asynchronous=True, num_devices=devices)


class CpuWorld(World):
    def __init__(self, number: int, devices: int, host: str, keep_combiner: bool) -> None:
        super().__init__(number)
        self._count = devices
        self._host = host
        self._keep_combiner = keep_combiner
        self._agent: Any = None
        self._collectives: Any = None
        self._running: dict[int, Any] = {}  # program's device id -> token of the last program over several devices

    def connect(self, service: str) -> list[str]:
        self._agent = coordination.join(service)
        self._collectives, endpoints = _make_gloo(self._agent, self._host)
        return endpoints

    def build(self, rank: int, size: int, devices: Sequence[int]) -> None:
        if size == 1:
            self.client = _make_client(self._count)
        else:
            self.client = xla_client.make_cpu_client(
                asynchronous=True,
                distributed_client=self._agent,
                node_id=rank,
                num_nodes=size,
                collectives=self._collectives,
                num_devices=self._count,
                get_local_topology_timeout_minutes=_TOPOLOGY_MINUTES,
                get_global_topology_timeout_minutes=_TOPOLOGY_MINUTES,
            )
        theirs = sorted(self.client.devices(), key=lambda device: (device.process_index, device.id))
        self.devices = dict(zip(devices, theirs, strict=True))
        own = {device.id for device in self.client.local_devices()}
        self.local = frozenset(number for number, device in self.devices.items() if device.id in own)

    def break_up(self, endpoints: Sequence[str]) -> None:
        if self._agent is None:
            return
        _shut_connections(set(endpoints))
        with contextlib.suppress(Exception):
            self._agent.shutdown()  # cancels what waits in the key-value store
        _shut_connections(set(endpoints))  # those that came up in between

    def close(self) -> None:
        # The agent stays with the client: dropping it early breaks cliques that form later.
        self._running.clear()
        self._placements.clear()
        self._locals.clear()
        self.devices = {}
        self.client = self._collectives = self._agent = None

    def adopt(self, buffer: xla.Buffer, device: xla.Device, memory_kind: str | None) -> xla.Buffer:
        if memory_kind in (None, "", device.default_memory().kind):
            with contextlib.suppress(Exception):
                return xla.adopt(buffer, device)
        return xla.put(xla.view(buffer), device, memory_kind or None)

    def tune(self, options: xla.Options, placement: Placement) -> None:
        if placement.spans_workers and not self._keep_combiner:
            # A peer's death in the middle of a combined all-reduce makes gloo abort this process.
            debug = options.executable_build_options.debug_options
            debug.xla_disable_hlo_passes = ",".join(filter(None, (debug.xla_disable_hlo_passes, _COMBINER)))

    def must_wait(self, local: Locals) -> bool:
        return _ONE_AT_A_TIME and len(local.devices) > 1 and any(device in self._running for device in local.devices)

    def wait_to_launch(self, local: Locals) -> None:
        if self.must_wait(local):
            for device in local.devices:
                with contextlib.suppress(Exception):  # it is reported by who waits for it
                    self._running.pop(device).block_until_ready()

    def launched(self, local: Locals, token: Any) -> None:
        if _ONE_AT_A_TIME and len(local.devices) > 1:
            self._running.update(dict.fromkeys(local.devices, token))


_gloo_lock = threading.Lock()


def _make_gloo(agent: Any, host: str) -> tuple[Any, list[str]]:
    """Gloo for one world, and the endpoint it listens at: it does not tell, but it opens exactly one listener."""
    with _gloo_lock:
        before = set(_listeners())
        collectives = _jax.make_gloo_tcp_collectives(agent, hostname=host)
        return collectives, sorted(set(_listeners()) - before)


def _endpoint(address: Any) -> str:
    host, port = address[:2]
    return f"{host.removeprefix('::ffff:')}:{port}"


def _sockets() -> Iterator[socket.socket]:
    """All TCP sockets of this process, as duplicates: the originals may be closed and their numbers used again at any time."""
    for name in os.listdir("/dev/fd"):
        try:
            duplicate = os.dup(int(name))
        except OSError:
            continue
        try:
            sock = socket.socket(fileno=duplicate)
        except OSError:
            os.close(duplicate)
            continue
        with sock:
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                yield sock


def _listeners() -> Iterator[str]:
    for sock in _sockets():
        with contextlib.suppress(OSError):
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield _endpoint(sock.getsockname())


def _shut_connections(endpoints: set[str]) -> None:
    for sock in _sockets():
        with contextlib.suppress(OSError):
            if not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                ends = {_endpoint(sock.getsockname()), _endpoint(sock.getpeername())}
                if ends & endpoints:
                    sock.shutdown(socket.SHUT_RDWR)
