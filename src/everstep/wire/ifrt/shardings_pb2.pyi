from everstep.wire.ifrt import values_pb2 as _values_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DeviceList(_message.Message):
    __slots__ = ("device_ids", "version_number")
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    device_ids: _containers.RepeatedScalarFieldContainer[int]
    version_number: int
    def __init__(self, device_ids: _Optional[_Iterable[int]] = ..., version_number: _Optional[int] = ...) -> None: ...

class SingleDeviceSharding(_message.Message):
    __slots__ = ("device_id", "memory_kind", "version_number")
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    device_id: int
    memory_kind: str
    version_number: int
    def __init__(self, device_id: _Optional[int] = ..., memory_kind: _Optional[str] = ..., version_number: _Optional[int] = ...) -> None: ...

class OpaqueSharding(_message.Message):
    __slots__ = ("devices", "memory_kind", "version_number")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    devices: DeviceList
    memory_kind: str
    version_number: int
    def __init__(self, devices: _Optional[_Union[DeviceList, _Mapping]] = ..., memory_kind: _Optional[str] = ..., version_number: _Optional[int] = ...) -> None: ...

class ConcreteSharding(_message.Message):
    __slots__ = ("devices", "memory_kind", "shape", "dynamic_shape", "shard_shapes", "shard_dynamic_shapes", "version_number")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DYNAMIC_SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHARD_SHAPES_FIELD_NUMBER: _ClassVar[int]
    SHARD_DYNAMIC_SHAPES_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    devices: DeviceList
    memory_kind: str
    shape: _values_pb2.Shape
    dynamic_shape: _values_pb2.DynamicShape
    shard_shapes: _containers.RepeatedCompositeFieldContainer[_values_pb2.Shape]
    shard_dynamic_shapes: _containers.RepeatedCompositeFieldContainer[_values_pb2.DynamicShape]
    version_number: int
    def __init__(self, devices: _Optional[_Union[DeviceList, _Mapping]] = ..., memory_kind: _Optional[str] = ..., shape: _Optional[_Union[_values_pb2.Shape, _Mapping]] = ..., dynamic_shape: _Optional[_Union[_values_pb2.DynamicShape, _Mapping]] = ..., shard_shapes: _Optional[_Iterable[_Union[_values_pb2.Shape, _Mapping]]] = ..., shard_dynamic_shapes: _Optional[_Iterable[_Union[_values_pb2.DynamicShape, _Mapping]]] = ..., version_number: _Optional[int] = ...) -> None: ...

class ConcreteEvenSharding(_message.Message):
    __slots__ = ("devices", "shape", "shard_shape", "memory_kind", "is_fully_replicated", "version_number")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHARD_SHAPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    IS_FULLY_REPLICATED_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    devices: DeviceList
    shape: _values_pb2.Shape
    shard_shape: _values_pb2.Shape
    memory_kind: str
    is_fully_replicated: bool
    version_number: int
    def __init__(self, devices: _Optional[_Union[DeviceList, _Mapping]] = ..., shape: _Optional[_Union[_values_pb2.Shape, _Mapping]] = ..., shard_shape: _Optional[_Union[_values_pb2.Shape, _Mapping]] = ..., memory_kind: _Optional[str] = ..., is_fully_replicated: bool = ..., version_number: _Optional[int] = ...) -> None: ...

class HloSharding(_message.Message):
    __slots__ = ("devices", "xla_op_sharding", "memory_kind", "version_number")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    XLA_OP_SHARDING_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    devices: DeviceList
    xla_op_sharding: bytes
    memory_kind: str
    version_number: int
    def __init__(self, devices: _Optional[_Union[DeviceList, _Mapping]] = ..., xla_op_sharding: _Optional[bytes] = ..., memory_kind: _Optional[str] = ..., version_number: _Optional[int] = ...) -> None: ...

class PjRtLayout(_message.Message):
    __slots__ = ("xla_layout", "version_number")
    XLA_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    xla_layout: XlaLayout
    version_number: int
    def __init__(self, xla_layout: _Optional[_Union[XlaLayout, _Mapping]] = ..., version_number: _Optional[int] = ...) -> None: ...

class XlaLayout(_message.Message):
    __slots__ = ("minor_to_major",)
    MINOR_TO_MAJOR_FIELD_NUMBER: _ClassVar[int]
    minor_to_major: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, minor_to_major: _Optional[_Iterable[int]] = ...) -> None: ...

class CompactLayout(_message.Message):
    __slots__ = ("major_to_minor", "version_number")
    MAJOR_TO_MINOR_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    major_to_minor: _containers.RepeatedScalarFieldContainer[int]
    version_number: int
    def __init__(self, major_to_minor: _Optional[_Iterable[int]] = ..., version_number: _Optional[int] = ...) -> None: ...
