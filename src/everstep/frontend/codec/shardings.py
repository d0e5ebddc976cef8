"""Shardings and array specs, for the devices of this run."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from everstep.frontend.codec import dtypes, layouts, op_sharding
from everstep.head.specs import ArraySpec, Shape, Sharding
from everstep.wire.errors import Failure, invalid, unimplemented
from everstep.wire.ifrt import shardings_pb2 as shardings
from everstep.wire.ifrt import values_pb2 as values
from everstep.wire.ifrt import xla_pb2 as xla

if TYPE_CHECKING:
    from everstep.head.members import Device


class _Kind:
    SINGLE = "xla::ifrt::SingleDeviceSharding"
    HLO = "xla::ifrt::HloSharding"
    EVEN = "xla::ifrt::ConcreteEvenSharding"
    CONCRETE = "xla::ifrt::ConcreteSharding"
    OPAQUE = "xla::ifrt::OpaqueSharding"


_CACHED = 8192  # shardings: a program uses a few hundred again and again


def shape(message: values.Shape) -> Shape:
    """Raises Failure (INVALID_ARGUMENT) for negative sizes."""
    dims = tuple(message.dims)
    if dims and min(dims) < 0:
        raise invalid(f"a shape can't have negative sizes: {dims}")
    return dims


def byte_strides(message: values.ByteStrides, rank: int) -> tuple[int, ...]:
    """Raises Failure (INVALID_ARGUMENT) unless there is one per dimension."""
    strides = tuple(message.strides)
    if len(strides) != rank:
        raise invalid(f"{len(strides)} strides don't fit {rank} dimensions")
    return strides


class Specs:
    """Decodes shardings and array specs that name devices of this run.

    Memory kinds are always resolved: where the program names none, it is the default of the first device.
    """

    def __init__(self, devices: Sequence[Device]) -> None:
        self._devices = {device.id: device for device in devices}
        self._sharding = functools.lru_cache(_CACHED)(self._decode)

    def array_spec(self, message: values.ArraySpec) -> ArraySpec:
        """Raises Failure for what makes no sense, or is not supported: layouts other than row-major, for one."""
        spec = self.spec(message.dtype, message.shape, message.sharding)
        if message.HasField("layout"):
            layouts.check_default_text(message.layout, len(spec.shape))
        return spec

    def spec(self, dtype: values.DType, dims: values.Shape, sharding: values.Sharding) -> ArraySpec:
        """The same from its parts."""
        size = shape(dims)
        return ArraySpec(dtypes.decode(dtype), size, self.sharding(sharding, size))

    def sharding(self, message: values.Sharding, dims: Shape) -> Sharding:
        """A sharding of an array of that shape. Raises Failure."""
        serialized = message.serialized_sharding
        return self._sharding(serialized.type_name, serialized.data, dims)

    def cut(self, serialized: bytes, devices: tuple[int, ...], memory_kind: str | None, dims: Shape) -> Sharding:
        """The sharding that a serialized xla.OpSharding means on these devices, for an array of that shape. Raises Failure."""
        try:
            op = xla.OpSharding.FromString(serialized)
        except DecodeError as error:
            raise invalid("not an OpSharding") from error
        kind = self.memory_kind(devices, memory_kind)
        if len(devices) == 1:
            return Sharding.single(devices[0], kind)
        try:
            cut = op_sharding.cut(op, len(devices))
        except Failure as failure:
            if failure.code is not failure.code.UNIMPLEMENTED:
                raise
            return Sharding(devices, kind)  # good enough to be handed on
        if cut.tiles and len(cut.tiles) != len(dims):
            raise invalid(f"a sharding of {len(cut.tiles)} dimensions does not fit shape {dims}")
        whole = Sharding(devices, kind, cut.tiles, cut.tile_of)
        return Sharding(devices, kind, shard_shapes=tuple(whole.shapes(dims))) if cut.distinct else whole

    def even(self, dims: Shape, shard: Shape, devices: tuple[int, ...], memory_kind: str | None) -> Sharding:
        """Shards of one shape; where they lie is not known, unless there is just one. Raises Failure."""
        kind = self.memory_kind(devices, memory_kind)
        if len(devices) == 1:
            return Sharding.single(devices[0], kind)
        return Sharding(devices, kind, shard_shapes=(shard,) * len(devices))

    def _decode(self, type_name: str, data: bytes, dims: Shape) -> Sharding:
        try:
            match type_name:
                case _Kind.SINGLE:
                    single = shardings.SingleDeviceSharding.FromString(data)
                    devices = (single.device_id,)
                    return Sharding.single(single.device_id, self.memory_kind(devices, single.memory_kind))
                case _Kind.HLO:
                    hlo = shardings.HloSharding.FromString(data)
                    return self.cut(hlo.xla_op_sharding, tuple(hlo.devices.device_ids), hlo.memory_kind, dims)
                case _Kind.EVEN:
                    return self._even(shardings.ConcreteEvenSharding.FromString(data), dims)
                case _Kind.CONCRETE:
                    return self._concrete(shardings.ConcreteSharding.FromString(data), dims)
                case _Kind.OPAQUE:
                    opaque = shardings.OpaqueSharding.FromString(data)
                    return self._unknown(tuple(opaque.devices.device_ids), opaque.memory_kind)
        except DecodeError as error:
            raise invalid(f"not a {type_name}") from error
        raise unimplemented(f"shardings of type {type_name or '(none)'} are not supported")

    def _even(self, even: shardings.ConcreteEvenSharding, dims: Shape) -> Sharding:
        _check_shape(even.shape, dims)
        shard = dims if even.is_fully_replicated else shape(even.shard_shape)
        sharding = self.even(dims, shard, tuple(even.devices.device_ids), even.memory_kind)
        return Sharding.replicated(sharding.devices, sharding.memory_kind) if even.is_fully_replicated else sharding

    def _concrete(self, concrete: shardings.ConcreteSharding, dims: Shape) -> Sharding:
        devices = tuple(concrete.devices.device_ids)
        kind = self.memory_kind(devices, concrete.memory_kind)
        if concrete.WhichOneof("shape_or_dynamic_shape") != "shape":
            raise unimplemented("dynamic shapes are not supported")
        _check_shape(concrete.shape, dims)
        if len(concrete.shard_shapes) != len(devices):
            raise invalid(f"a sharding over {len(devices)} devices gives the shapes of {len(concrete.shard_shapes)} shards")
        if len(devices) == 1:
            return Sharding.single(devices[0], kind)
        return Sharding(devices, kind, shard_shapes=tuple(shape(shard) for shard in concrete.shard_shapes))

    def _unknown(self, devices: tuple[int, ...], memory_kind: str) -> Sharding:
        kind = self.memory_kind(devices, memory_kind)
        return Sharding.single(devices[0], kind) if len(devices) == 1 else Sharding(devices, kind)

    def check_devices(self, devices: Sequence[int]) -> None:
        """Raises Failure (INVALID_ARGUMENT) unless they are devices of this run, each named once, at least one."""
        if not devices:
            raise invalid("an empty list of devices")
        if len(set(devices)) != len(devices):
            raise invalid(f"a device is named twice: {list(devices)}")
        for device in devices:
            if device not in self._devices:
                raise invalid(f"there is no device {device}")

    def memory_kind(self, devices: tuple[int, ...], name: str | None) -> str:
        """The memory kind of that name ("" or None: the default) that all these devices have. Raises Failure (INVALID_ARGUMENT)."""
        self.check_devices(devices)
        name = name or self._devices[devices[0]].default_memory_kind
        for device in devices:
            if name not in self._devices[device].memory_kinds:
                raise invalid(f"device {device} has no memory of kind {name!r}: it has {', '.join(self._devices[device].memory_kinds)}")
        return name


def _check_shape(message: values.Shape, dims: Shape) -> None:
    if tuple(message.dims) != dims:
        raise invalid(f"a sharding for shape {tuple(message.dims)} does not fit shape {dims}")


def encode_single(device: int, memory_kind: str) -> values.Sharding:
    """All of the array on one device."""
    return _encode(_Kind.SINGLE, shardings.SingleDeviceSharding(device_id=device, memory_kind=memory_kind))


def encode_cut(op: bytes, devices: Sequence[int], memory_kind: str) -> values.Sharding:
    """As the serialized xla.OpSharding says."""
    devices_message = shardings.DeviceList(device_ids=devices)
    return _encode(_Kind.HLO, shardings.HloSharding(devices=devices_message, xla_op_sharding=op, memory_kind=memory_kind))


def encode_even(dims: Shape, shard: Shape, devices: Sequence[int], memory_kind: str) -> values.Sharding:
    """Shards of one shape; nothing is said about where they lie."""
    message = shardings.ConcreteEvenSharding(
        devices=shardings.DeviceList(device_ids=devices),
        shape=values.Shape(dims=dims),
        shard_shape=values.Shape(dims=shard),
        memory_kind=memory_kind,
    )
    return _encode(_Kind.EVEN, message)


def _encode(
    type_name: str, message: shardings.SingleDeviceSharding | shardings.HloSharding | shardings.ConcreteEvenSharding
) -> values.Sharding:
    return values.Sharding(serialized_sharding=values.Serialized(type_name=type_name, data=message.SerializeToString()))
