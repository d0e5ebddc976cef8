"""Requests about the devices of the run. The program reads them once, when it connects."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from everstep.frontend.codec import attributes, dtypes, layouts
from everstep.frontend.requests import Handler, OnFailure
from everstep.head.members import MEMORIES, Device
from everstep.wire.errors import invalid
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import xla_pb2 as xla

if TYPE_CHECKING:
    from everstep.head.runtime import Topology

# The client puts "proxy/" before it; Orbax takes exactly "proxy/pathways" for one controller of many hosts, as we are.
_RUNTIME_TYPE = "pathways"

# What XLA's CPU client says of itself; jax.export asks for it.
_CLIENT_ATTRIBUTES = {"serialize_with_sdy": True}


class DeviceRequests:
    """packed_layouts: whether default layouts tell the size of sub-byte types, as the program's jaxlib expects."""

    def __init__(self, topology: Topology, session_id: int, *, packed_layouts: bool) -> None:
        self._topology = topology
        self._session_id = session_id
        self._packed_layouts = packed_layouts
        self._ids = [device.id for device in topology.devices]
        self.handlers: Mapping[str, Handler] = {
            "init_request": self._init,
            "get_default_device_assignment_request": self._default_device_assignment,
            "get_default_layout_request": self._default_layout,
        }
        self.on_failure: Mapping[str, OnFailure] = {}

    def _init(self, request: wire.InitRequest) -> wire.IfrtResponse:
        body = wire.InitResponse(
            session_id=self._session_id,
            platform_name=self._topology.platform,
            platform_version=self._topology.platform_version,
            platform_id=int.from_bytes(hashlib.sha256(self._topology.platform.encode()).digest()[:8], "big"),
            process_index=0,  # one controller: every device belongs to its process
            runtime_type=_RUNTIME_TYPE,
            primary_device_ids=self._ids,
            addressable_device_ids=self._ids,
            client_attributes=attributes.encode(_CLIENT_ATTRIBUTES),
        )
        for device in self._topology.devices:
            body.all_devices.append(_device(device))
            body.memories.extend(_memories(device))
        return wire.IfrtResponse(init_response=body)

    def _default_device_assignment(self, request: wire.GetDefaultDeviceAssignmentRequest) -> wire.IfrtResponse:
        replicas, partitions = request.num_replicas, request.num_partitions
        if not 1 <= replicas * partitions <= len(self._ids):
            raise invalid(f"{replicas} replicas of {partitions} partitions don't fit on {len(self._ids)} devices")
        assignment = xla.DeviceAssignment(replica_count=replicas, computation_count=partitions)
        for partition in range(partitions):
            devices = self._ids[partition : replicas * partitions : partitions]
            assignment.computation_devices.add(replica_device_ids=devices)
        body = wire.GetDefaultDeviceAssignmentResponse(device_assignment=assignment)
        return wire.IfrtResponse(get_default_device_assignment_response=body)

    def _default_layout(self, request: wire.GetDefaultLayoutRequest) -> wire.IfrtResponse:
        text = layouts.default_text(dtypes.decode(request.dtype), len(request.dims), packed=self._packed_layouts)
        return wire.IfrtResponse(get_default_layout_response=wire.GetDefaultLayoutResponse(serialized_pjrt_layout=text))


def _device(device: Device) -> wire.InitResponse.Device:
    return wire.InitResponse.Device(
        id=device.id,
        local_device_id=device.id,
        local_hardware_id=device.id,
        platform_name=device.platform,
        device_kind=device.kind,
        default_memory_id=_memory_id(device, device.default_memory_kind),
        memory_ids=[_memory_id(device, kind) for kind in device.memory_kinds],
        debug_string=f"{device.platform}:{device.id}",  # str() in Python
        to_string=f"{device.platform.capitalize()}Device(id={device.id})",  # repr() in Python
        attributes=attributes.encode({"slice_index": device.slice_index, "worker": device.worker}),
    )


def _memories(device: Device) -> list[wire.InitResponse.Memory]:
    memories = []
    for kind in device.memory_kinds:
        number = _memory_id(device, kind)
        name = f"{device.platform}_{kind}" if kind == "device" else kind
        camel = name.title().replace("_", "")
        memories.append(
            wire.InitResponse.Memory(
                id=number,
                memory_space_kind=kind,
                kind_id=zlib.crc32(kind.encode()) >> 1,
                device_ids=[device.id],
                debug_string=f"{camel}Memory(id={number}, process_index=0, client={device.platform})",
                to_string=f"{name.upper()}_{number}",
            )
        )
    return memories


def _memory_id(device: Device, kind: str) -> int:
    return device.id * MEMORIES + device.memory_kinds.index(kind)
