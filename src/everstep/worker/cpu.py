"""Worlds of CPU devices: all that is peculiar to CPUs.

A world of one worker is the client that JAX itself would make, so that results are the same to the bit. A world of several is a client per
worker with gloo between them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib import lapack, xla_client

from everstep.wire import channel_pb2 as wire
from everstep.worker import coordination, gloo, xla
from everstep.worker.world import Placement, World

_COMBINER = "cpu-all-reduce-combiner"
_TOPOLOGY_MINUTES = 1

# Before 0.12 XLA gives each of its threads to whichever program comes first, and two programs over the same devices, each with some of the
# threads it needs, wait for each other for ever. There even the call that starts a program waits for a thread.
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
        # The kernels of linear algebra find SciPy's LAPACK now, or crash when they run. JAX does this where it lowers: in the program.
        lapack._lapack.initialize()  # type: ignore[attr-defined]

    def world(self, number: int, host: str) -> World:
        """host: the address by which other workers reach this one."""
        return CpuWorld(number, self._count, host, self._keep_combiner)

    def stand_in(self, devices: Sequence[int]) -> World:
        """A world of no other workers, with devices under these ids: to compile for devices that are away."""
        world = CpuWorld(0, len(devices), "", self._keep_combiner)
        world.build(0, 1, devices)
        return world


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
    can_follow = not _ONE_AT_A_TIME

    def __init__(self, number: int, devices: int, host: str, keep_combiner: bool) -> None:
        super().__init__(number)
        self._count = devices
        self._host = host
        self._keep_combiner = keep_combiner
        self._agent: Any = None
        self._collectives: Any = None
        self._endpoints: list[str] = []

    def connect(self, service: str) -> list[str]:
        self._agent = coordination.join(service)
        self._collectives, self._endpoints = gloo.make(self._agent, self._host)
        return self._endpoints

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
        gloo.shut_connections(set(endpoints))
        last = gloo.last_number(self._agent, len(self.local) * len(self.devices))
        with contextlib.suppress(Exception):
            self._agent.shutdown()  # cancels what waits in the key-value store; nothing new comes up from here on
        for endpoint in self._endpoints:
            gloo.answer_for_the_dead(endpoint, last)
        gloo.shut_connections(set(endpoints))  # those that came up in between

    def close(self) -> None:
        # The agent stays with the client: dropping it early breaks cliques that form later.
        self._placements.clear()
        self._locals.clear()
        self.devices = {}
        self.client = self._collectives = self._agent = None

    def adopt(self, buffer: xla.Buffer, device: xla.Device, memory_kind: str | None) -> xla.Buffer:
        if memory_kind in (None, "", device.default_memory().kind):
            with contextlib.suppress(Exception):
                return xla.adopt(buffer, device)
        return xla.put(xla.view(buffer), device, memory_kind or None)

    def tune(self, options: xla.Options, spans_workers: bool) -> None:
        if spans_workers and not self._keep_combiner:
            # A peer's death in the middle of a combined all-reduce makes gloo abort this process.
            debug = options.executable_build_options.debug_options
            debug.xla_disable_hlo_passes = ",".join(filter(None, (debug.xla_disable_hlo_passes, _COMBINER)))

    def takes_turns(self, placement: Placement, meets: bool) -> bool:
        if _ONE_AT_A_TIME:
            return placement.spans_workers or len(placement.local.devices) > 1
        return placement.spans_workers and meets
