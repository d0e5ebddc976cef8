from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OpSharding(_message.Message):
    __slots__ = ("type", "tile_assignment_dimensions", "tile_assignment_devices", "iota_reshape_dims", "iota_transpose_perm", "replicate_on_last_tile_dim", "last_tile_dims", "named_sharding")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        REPLICATED: _ClassVar[OpSharding.Type]
        MAXIMAL: _ClassVar[OpSharding.Type]
        TUPLE: _ClassVar[OpSharding.Type]
        OTHER: _ClassVar[OpSharding.Type]
        MANUAL: _ClassVar[OpSharding.Type]
        UNKNOWN: _ClassVar[OpSharding.Type]
        UNREDUCED: _ClassVar[OpSharding.Type]
    REPLICATED: OpSharding.Type
    MAXIMAL: OpSharding.Type
    TUPLE: OpSharding.Type
    OTHER: OpSharding.Type
    MANUAL: OpSharding.Type
    UNKNOWN: OpSharding.Type
    UNREDUCED: OpSharding.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TILE_ASSIGNMENT_DIMENSIONS_FIELD_NUMBER: _ClassVar[int]
    TILE_ASSIGNMENT_DEVICES_FIELD_NUMBER: _ClassVar[int]
    IOTA_RESHAPE_DIMS_FIELD_NUMBER: _ClassVar[int]
    IOTA_TRANSPOSE_PERM_FIELD_NUMBER: _ClassVar[int]
    REPLICATE_ON_LAST_TILE_DIM_FIELD_NUMBER: _ClassVar[int]
    LAST_TILE_DIMS_FIELD_NUMBER: _ClassVar[int]
    NAMED_SHARDING_FIELD_NUMBER: _ClassVar[int]
    type: OpSharding.Type
    tile_assignment_dimensions: _containers.RepeatedScalarFieldContainer[int]
    tile_assignment_devices: _containers.RepeatedScalarFieldContainer[int]
    iota_reshape_dims: _containers.RepeatedScalarFieldContainer[int]
    iota_transpose_perm: _containers.RepeatedScalarFieldContainer[int]
    replicate_on_last_tile_dim: bool
    last_tile_dims: _containers.RepeatedScalarFieldContainer[OpSharding.Type]
    named_sharding: NamedSharding
    def __init__(self, type: _Optional[_Union[OpSharding.Type, str]] = ..., tile_assignment_dimensions: _Optional[_Iterable[int]] = ..., tile_assignment_devices: _Optional[_Iterable[int]] = ..., iota_reshape_dims: _Optional[_Iterable[int]] = ..., iota_transpose_perm: _Optional[_Iterable[int]] = ..., replicate_on_last_tile_dim: bool = ..., last_tile_dims: _Optional[_Iterable[_Union[OpSharding.Type, str]]] = ..., named_sharding: _Optional[_Union[NamedSharding, _Mapping]] = ...) -> None: ...

class NamedSharding(_message.Message):
    __slots__ = ("mesh", "dim_shardings", "replicated_axes", "unreduced_axes", "manual_axes")
    class DimensionSharding(_message.Message):
        __slots__ = ("axes", "is_closed")
        AXES_FIELD_NUMBER: _ClassVar[int]
        IS_CLOSED_FIELD_NUMBER: _ClassVar[int]
        axes: _containers.RepeatedCompositeFieldContainer[AxisRef]
        is_closed: bool
        def __init__(self, axes: _Optional[_Iterable[_Union[AxisRef, _Mapping]]] = ..., is_closed: bool = ...) -> None: ...
    MESH_FIELD_NUMBER: _ClassVar[int]
    DIM_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    REPLICATED_AXES_FIELD_NUMBER: _ClassVar[int]
    UNREDUCED_AXES_FIELD_NUMBER: _ClassVar[int]
    MANUAL_AXES_FIELD_NUMBER: _ClassVar[int]
    mesh: Mesh
    dim_shardings: _containers.RepeatedCompositeFieldContainer[NamedSharding.DimensionSharding]
    replicated_axes: _containers.RepeatedCompositeFieldContainer[AxisRef]
    unreduced_axes: _containers.RepeatedCompositeFieldContainer[AxisRef]
    manual_axes: _containers.RepeatedCompositeFieldContainer[AxisRef]
    def __init__(self, mesh: _Optional[_Union[Mesh, _Mapping]] = ..., dim_shardings: _Optional[_Iterable[_Union[NamedSharding.DimensionSharding, _Mapping]]] = ..., replicated_axes: _Optional[_Iterable[_Union[AxisRef, _Mapping]]] = ..., unreduced_axes: _Optional[_Iterable[_Union[AxisRef, _Mapping]]] = ..., manual_axes: _Optional[_Iterable[_Union[AxisRef, _Mapping]]] = ...) -> None: ...

class Mesh(_message.Message):
    __slots__ = ("axes", "device_ids", "iota_transform")
    class Axis(_message.Message):
        __slots__ = ("name", "size")
        NAME_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        name: str
        size: int
        def __init__(self, name: _Optional[str] = ..., size: _Optional[int] = ...) -> None: ...
    class IotaTransform(_message.Message):
        __slots__ = ("reshape_dims", "transpose_perm")
        RESHAPE_DIMS_FIELD_NUMBER: _ClassVar[int]
        TRANSPOSE_PERM_FIELD_NUMBER: _ClassVar[int]
        reshape_dims: _containers.RepeatedScalarFieldContainer[int]
        transpose_perm: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, reshape_dims: _Optional[_Iterable[int]] = ..., transpose_perm: _Optional[_Iterable[int]] = ...) -> None: ...
    AXES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    IOTA_TRANSFORM_FIELD_NUMBER: _ClassVar[int]
    axes: _containers.RepeatedCompositeFieldContainer[Mesh.Axis]
    device_ids: _containers.RepeatedScalarFieldContainer[int]
    iota_transform: Mesh.IotaTransform
    def __init__(self, axes: _Optional[_Iterable[_Union[Mesh.Axis, _Mapping]]] = ..., device_ids: _Optional[_Iterable[int]] = ..., iota_transform: _Optional[_Union[Mesh.IotaTransform, _Mapping]] = ...) -> None: ...

class AxisRef(_message.Message):
    __slots__ = ("mesh_axis_index", "sub_axis_info")
    class SubAxis(_message.Message):
        __slots__ = ("pre_size", "size")
        PRE_SIZE_FIELD_NUMBER: _ClassVar[int]
        SIZE_FIELD_NUMBER: _ClassVar[int]
        pre_size: int
        size: int
        def __init__(self, pre_size: _Optional[int] = ..., size: _Optional[int] = ...) -> None: ...
    MESH_AXIS_INDEX_FIELD_NUMBER: _ClassVar[int]
    SUB_AXIS_INFO_FIELD_NUMBER: _ClassVar[int]
    mesh_axis_index: int
    sub_axis_info: AxisRef.SubAxis
    def __init__(self, mesh_axis_index: _Optional[int] = ..., sub_axis_info: _Optional[_Union[AxisRef.SubAxis, _Mapping]] = ...) -> None: ...

class DeviceAssignment(_message.Message):
    __slots__ = ("replica_count", "computation_count", "computation_devices")
    class ComputationDevice(_message.Message):
        __slots__ = ("replica_device_ids",)
        REPLICA_DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
        replica_device_ids: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, replica_device_ids: _Optional[_Iterable[int]] = ...) -> None: ...
    REPLICA_COUNT_FIELD_NUMBER: _ClassVar[int]
    COMPUTATION_COUNT_FIELD_NUMBER: _ClassVar[int]
    COMPUTATION_DEVICES_FIELD_NUMBER: _ClassVar[int]
    replica_count: int
    computation_count: int
    computation_devices: _containers.RepeatedCompositeFieldContainer[DeviceAssignment.ComputationDevice]
    def __init__(self, replica_count: _Optional[int] = ..., computation_count: _Optional[int] = ..., computation_devices: _Optional[_Iterable[_Union[DeviceAssignment.ComputationDevice, _Mapping]]] = ...) -> None: ...

class DebugOptions(_message.Message):
    __slots__ = ("xla_gpu_analytical_latency_estimator_options", "xla_gpu_experimental_cost_model_gemm_tiling_options", "xla_backend_extra_options")
    class XlaGpuAnalyticalLatencyEstimatorOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class XlaGpuExperimentalCostModelGemmTilingOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class XlaBackendExtraOptionsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    XLA_GPU_ANALYTICAL_LATENCY_ESTIMATOR_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    XLA_GPU_EXPERIMENTAL_COST_MODEL_GEMM_TILING_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    XLA_BACKEND_EXTRA_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    xla_gpu_analytical_latency_estimator_options: _containers.ScalarMap[str, str]
    xla_gpu_experimental_cost_model_gemm_tiling_options: _containers.ScalarMap[str, str]
    xla_backend_extra_options: _containers.ScalarMap[str, str]
    def __init__(self, xla_gpu_analytical_latency_estimator_options: _Optional[_Mapping[str, str]] = ..., xla_gpu_experimental_cost_model_gemm_tiling_options: _Optional[_Mapping[str, str]] = ..., xla_backend_extra_options: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ExecutableBuildOptions(_message.Message):
    __slots__ = ("debug_options", "num_replicas", "num_partitions", "device_assignment")
    DEBUG_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    NUM_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    debug_options: DebugOptions
    num_replicas: int
    num_partitions: int
    device_assignment: DeviceAssignment
    def __init__(self, debug_options: _Optional[_Union[DebugOptions, _Mapping]] = ..., num_replicas: _Optional[int] = ..., num_partitions: _Optional[int] = ..., device_assignment: _Optional[_Union[DeviceAssignment, _Mapping]] = ...) -> None: ...

class OptionOverride(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompileOptions(_message.Message):
    __slots__ = ("executable_build_options", "env_option_overrides")
    class EnvOptionOverridesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: OptionOverride
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[OptionOverride, _Mapping]] = ...) -> None: ...
    EXECUTABLE_BUILD_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ENV_OPTION_OVERRIDES_FIELD_NUMBER: _ClassVar[int]
    executable_build_options: ExecutableBuildOptions
    env_option_overrides: _containers.MessageMap[str, OptionOverride]
    def __init__(self, executable_build_options: _Optional[_Union[ExecutableBuildOptions, _Mapping]] = ..., env_option_overrides: _Optional[_Mapping[str, OptionOverride]] = ...) -> None: ...
