from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ArrayCopySemantics(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ARRAY_COPY_SEMANTICS_UNSPECIFIED: _ClassVar[ArrayCopySemantics]
    ARRAY_COPY_SEMANTICS_ALWAYS_COPY: _ClassVar[ArrayCopySemantics]
    ARRAY_COPY_SEMANTICS_REUSE_INPUT: _ClassVar[ArrayCopySemantics]
    ARRAY_COPY_SEMANTICS_DONATE_INPUT: _ClassVar[ArrayCopySemantics]

class SingleDeviceShardSemantics(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SINGLE_DEVICE_SHARD_SEMANTICS_UNSPECIFIED: _ClassVar[SingleDeviceShardSemantics]
    SINGLE_DEVICE_SHARD_SEMANTICS_ADDRESSABLE_SHARDS: _ClassVar[SingleDeviceShardSemantics]
    SINGLE_DEVICE_SHARD_SEMANTICS_ALL_SHARDS: _ClassVar[SingleDeviceShardSemantics]
ARRAY_COPY_SEMANTICS_UNSPECIFIED: ArrayCopySemantics
ARRAY_COPY_SEMANTICS_ALWAYS_COPY: ArrayCopySemantics
ARRAY_COPY_SEMANTICS_REUSE_INPUT: ArrayCopySemantics
ARRAY_COPY_SEMANTICS_DONATE_INPUT: ArrayCopySemantics
SINGLE_DEVICE_SHARD_SEMANTICS_UNSPECIFIED: SingleDeviceShardSemantics
SINGLE_DEVICE_SHARD_SEMANTICS_ADDRESSABLE_SHARDS: SingleDeviceShardSemantics
SINGLE_DEVICE_SHARD_SEMANTICS_ALL_SHARDS: SingleDeviceShardSemantics

class Serialized(_message.Message):
    __slots__ = ("type_name", "data")
    TYPE_NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    type_name: str
    data: bytes
    def __init__(self, type_name: _Optional[str] = ..., data: _Optional[bytes] = ...) -> None: ...

class DType(_message.Message):
    __slots__ = ("kind", "version_number")
    class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        KIND_UNSPECIFIED: _ClassVar[DType.Kind]
        KIND_PRED: _ClassVar[DType.Kind]
        KIND_S1: _ClassVar[DType.Kind]
        KIND_S2: _ClassVar[DType.Kind]
        KIND_S4: _ClassVar[DType.Kind]
        KIND_S8: _ClassVar[DType.Kind]
        KIND_S16: _ClassVar[DType.Kind]
        KIND_S32: _ClassVar[DType.Kind]
        KIND_S64: _ClassVar[DType.Kind]
        KIND_U1: _ClassVar[DType.Kind]
        KIND_U2: _ClassVar[DType.Kind]
        KIND_U4: _ClassVar[DType.Kind]
        KIND_U8: _ClassVar[DType.Kind]
        KIND_U16: _ClassVar[DType.Kind]
        KIND_U32: _ClassVar[DType.Kind]
        KIND_U64: _ClassVar[DType.Kind]
        KIND_F16: _ClassVar[DType.Kind]
        KIND_F32: _ClassVar[DType.Kind]
        KIND_F64: _ClassVar[DType.Kind]
        KIND_BF16: _ClassVar[DType.Kind]
        KIND_C64: _ClassVar[DType.Kind]
        KIND_C128: _ClassVar[DType.Kind]
        KIND_TOKEN: _ClassVar[DType.Kind]
        KIND_OPAQUE: _ClassVar[DType.Kind]
        KIND_F8E3M4: _ClassVar[DType.Kind]
        KIND_F8E4M3: _ClassVar[DType.Kind]
        KIND_F8E4M3FN: _ClassVar[DType.Kind]
        KIND_F8E4M3B11FNUZ: _ClassVar[DType.Kind]
        KIND_F8E4M3FNUZ: _ClassVar[DType.Kind]
        KIND_F8E5M2: _ClassVar[DType.Kind]
        KIND_F8E5M2FNUZ: _ClassVar[DType.Kind]
        KIND_F8E8M0FNU: _ClassVar[DType.Kind]
        KIND_F4E2M1FN: _ClassVar[DType.Kind]
        KIND_F6E2M3FN: _ClassVar[DType.Kind]
        KIND_F6E3M2FN: _ClassVar[DType.Kind]
        KIND_STRING: _ClassVar[DType.Kind]
    KIND_UNSPECIFIED: DType.Kind
    KIND_PRED: DType.Kind
    KIND_S1: DType.Kind
    KIND_S2: DType.Kind
    KIND_S4: DType.Kind
    KIND_S8: DType.Kind
    KIND_S16: DType.Kind
    KIND_S32: DType.Kind
    KIND_S64: DType.Kind
    KIND_U1: DType.Kind
    KIND_U2: DType.Kind
    KIND_U4: DType.Kind
    KIND_U8: DType.Kind
    KIND_U16: DType.Kind
    KIND_U32: DType.Kind
    KIND_U64: DType.Kind
    KIND_F16: DType.Kind
    KIND_F32: DType.Kind
    KIND_F64: DType.Kind
    KIND_BF16: DType.Kind
    KIND_C64: DType.Kind
    KIND_C128: DType.Kind
    KIND_TOKEN: DType.Kind
    KIND_OPAQUE: DType.Kind
    KIND_F8E3M4: DType.Kind
    KIND_F8E4M3: DType.Kind
    KIND_F8E4M3FN: DType.Kind
    KIND_F8E4M3B11FNUZ: DType.Kind
    KIND_F8E4M3FNUZ: DType.Kind
    KIND_F8E5M2: DType.Kind
    KIND_F8E5M2FNUZ: DType.Kind
    KIND_F8E8M0FNU: DType.Kind
    KIND_F4E2M1FN: DType.Kind
    KIND_F6E2M3FN: DType.Kind
    KIND_F6E3M2FN: DType.Kind
    KIND_STRING: DType.Kind
    KIND_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    kind: DType.Kind
    version_number: int
    def __init__(self, kind: _Optional[_Union[DType.Kind, str]] = ..., version_number: _Optional[int] = ...) -> None: ...

class Shape(_message.Message):
    __slots__ = ("dims", "version_number")
    DIMS_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    dims: _containers.RepeatedScalarFieldContainer[int]
    version_number: int
    def __init__(self, dims: _Optional[_Iterable[int]] = ..., version_number: _Optional[int] = ...) -> None: ...

class BoundedDynamicShapeTag(_message.Message):
    __slots__ = ("is_dynamic_dims", "version_number")
    IS_DYNAMIC_DIMS_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    is_dynamic_dims: _containers.RepeatedScalarFieldContainer[bool]
    version_number: int
    def __init__(self, is_dynamic_dims: _Optional[_Iterable[bool]] = ..., version_number: _Optional[int] = ...) -> None: ...

class DynamicShape(_message.Message):
    __slots__ = ("shape", "bounded_dynamic_shape_tag", "version_number")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_DYNAMIC_SHAPE_TAG_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    shape: Shape
    bounded_dynamic_shape_tag: BoundedDynamicShapeTag
    version_number: int
    def __init__(self, shape: _Optional[_Union[Shape, _Mapping]] = ..., bounded_dynamic_shape_tag: _Optional[_Union[BoundedDynamicShapeTag, _Mapping]] = ..., version_number: _Optional[int] = ...) -> None: ...

class Sharding(_message.Message):
    __slots__ = ("serialized_sharding",)
    SERIALIZED_SHARDING_FIELD_NUMBER: _ClassVar[int]
    serialized_sharding: Serialized
    def __init__(self, serialized_sharding: _Optional[_Union[Serialized, _Mapping]] = ...) -> None: ...

class Layout(_message.Message):
    __slots__ = ("serialized_layout",)
    SERIALIZED_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    serialized_layout: Serialized
    def __init__(self, serialized_layout: _Optional[_Union[Serialized, _Mapping]] = ...) -> None: ...

class ArraySpec(_message.Message):
    __slots__ = ("dtype", "shape", "sharding", "layout", "version_number")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHARDING_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    dtype: DType
    shape: Shape
    sharding: Sharding
    layout: bytes
    version_number: int
    def __init__(self, dtype: _Optional[_Union[DType, _Mapping]] = ..., shape: _Optional[_Union[Shape, _Mapping]] = ..., sharding: _Optional[_Union[Sharding, _Mapping]] = ..., layout: _Optional[bytes] = ..., version_number: _Optional[int] = ...) -> None: ...

class ByteStrides(_message.Message):
    __slots__ = ("strides",)
    STRIDES_FIELD_NUMBER: _ClassVar[int]
    strides: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, strides: _Optional[_Iterable[int]] = ...) -> None: ...

class StringArrayContents(_message.Message):
    __slots__ = ("strings",)
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    strings: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, strings: _Optional[_Iterable[bytes]] = ...) -> None: ...

class AttributeMap(_message.Message):
    __slots__ = ("attributes", "version_number")
    class Value(_message.Message):
        __slots__ = ("string_value", "bool_value", "int64_value", "int64_list_value", "float_value")
        class Int64List(_message.Message):
            __slots__ = ("elements",)
            ELEMENTS_FIELD_NUMBER: _ClassVar[int]
            elements: _containers.RepeatedScalarFieldContainer[int]
            def __init__(self, elements: _Optional[_Iterable[int]] = ...) -> None: ...
        STRING_VALUE_FIELD_NUMBER: _ClassVar[int]
        BOOL_VALUE_FIELD_NUMBER: _ClassVar[int]
        INT64_VALUE_FIELD_NUMBER: _ClassVar[int]
        INT64_LIST_VALUE_FIELD_NUMBER: _ClassVar[int]
        FLOAT_VALUE_FIELD_NUMBER: _ClassVar[int]
        string_value: bytes
        bool_value: bool
        int64_value: int
        int64_list_value: AttributeMap.Value.Int64List
        float_value: float
        def __init__(self, string_value: _Optional[bytes] = ..., bool_value: bool = ..., int64_value: _Optional[int] = ..., int64_list_value: _Optional[_Union[AttributeMap.Value.Int64List, _Mapping]] = ..., float_value: _Optional[float] = ...) -> None: ...
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: AttributeMap.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[AttributeMap.Value, _Mapping]] = ...) -> None: ...
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    attributes: _containers.MessageMap[str, AttributeMap.Value]
    version_number: int
    def __init__(self, attributes: _Optional[_Mapping[str, AttributeMap.Value]] = ..., version_number: _Optional[int] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("code", "message", "payload")
    class PayloadEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: bytes
        def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    payload: _containers.ScalarMap[str, bytes]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., payload: _Optional[_Mapping[str, bytes]] = ...) -> None: ...
