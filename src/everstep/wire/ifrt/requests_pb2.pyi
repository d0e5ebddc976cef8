from everstep.wire.ifrt import shardings_pb2 as _shardings_pb2
from everstep.wire.ifrt import values_pb2 as _values_pb2
from everstep.wire.ifrt import xla_pb2 as _xla_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class IfrtRequest(_message.Message):
    __slots__ = ("request_metadata", "init_request", "check_future_request", "check_value_ready_request", "make_array_from_host_buffer_request", "make_arrays_from_host_buffer_shards_request", "make_error_arrays_request", "assemble_array_from_single_device_arrays_request", "remap_arrays_request", "bitcast_arrays_request", "reshard_arrays_request", "copy_to_host_buffer_request", "disassemble_into_single_device_arrays_request", "delete_array_request", "copy_arrays_request", "fully_replicated_shard_request", "is_array_deleted_request", "destruct_array_request", "compile_request", "loaded_executable_metadata_request", "loaded_executable_execute_request", "loaded_executable_fetch_execute_result_request", "loaded_executable_cost_analysis_request", "loaded_executable_human_readable_program_text_request", "loaded_executable_delete_request", "loaded_executable_is_deleted_request", "loaded_executable_destruct_request", "loaded_executable_mpmd_metadata_request", "loaded_executable_mpmd_cost_analysis_request", "loaded_host_callback_poll_request", "loaded_host_callback_return_request", "get_default_device_assignment_request", "get_default_layout_request")
    REQUEST_METADATA_FIELD_NUMBER: _ClassVar[int]
    INIT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CHECK_FUTURE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    CHECK_VALUE_READY_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAKE_ARRAY_FROM_HOST_BUFFER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAKE_ARRAYS_FROM_HOST_BUFFER_SHARDS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    MAKE_ERROR_ARRAYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    ASSEMBLE_ARRAY_FROM_SINGLE_DEVICE_ARRAYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    REMAP_ARRAYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    BITCAST_ARRAYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    RESHARD_ARRAYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    COPY_TO_HOST_BUFFER_REQUEST_FIELD_NUMBER: _ClassVar[int]
    DISASSEMBLE_INTO_SINGLE_DEVICE_ARRAYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    DELETE_ARRAY_REQUEST_FIELD_NUMBER: _ClassVar[int]
    COPY_ARRAYS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    FULLY_REPLICATED_SHARD_REQUEST_FIELD_NUMBER: _ClassVar[int]
    IS_ARRAY_DELETED_REQUEST_FIELD_NUMBER: _ClassVar[int]
    DESTRUCT_ARRAY_REQUEST_FIELD_NUMBER: _ClassVar[int]
    COMPILE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_METADATA_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_EXECUTE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_FETCH_EXECUTE_RESULT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_COST_ANALYSIS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_HUMAN_READABLE_PROGRAM_TEXT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_DELETE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_IS_DELETED_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_DESTRUCT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_MPMD_METADATA_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_MPMD_COST_ANALYSIS_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_HOST_CALLBACK_POLL_REQUEST_FIELD_NUMBER: _ClassVar[int]
    LOADED_HOST_CALLBACK_RETURN_REQUEST_FIELD_NUMBER: _ClassVar[int]
    GET_DEFAULT_DEVICE_ASSIGNMENT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    GET_DEFAULT_LAYOUT_REQUEST_FIELD_NUMBER: _ClassVar[int]
    request_metadata: RequestMetadata
    init_request: InitRequest
    check_future_request: CheckFutureRequest
    check_value_ready_request: CheckValueReadyRequest
    make_array_from_host_buffer_request: MakeArrayFromHostBufferRequest
    make_arrays_from_host_buffer_shards_request: MakeArraysFromHostBufferShardsRequest
    make_error_arrays_request: MakeErrorArraysRequest
    assemble_array_from_single_device_arrays_request: AssembleArrayFromSingleDeviceArraysRequest
    remap_arrays_request: RemapArraysRequest
    bitcast_arrays_request: BitcastArraysRequest
    reshard_arrays_request: ReshardArraysRequest
    copy_to_host_buffer_request: CopyToHostBufferRequest
    disassemble_into_single_device_arrays_request: DisassembleIntoSingleDeviceArraysRequest
    delete_array_request: DeleteArrayRequest
    copy_arrays_request: CopyArraysRequest
    fully_replicated_shard_request: FullyReplicatedShardRequest
    is_array_deleted_request: IsArrayDeletedRequest
    destruct_array_request: DestructArrayRequest
    compile_request: CompileRequest
    loaded_executable_metadata_request: LoadedExecutableMetadataRequest
    loaded_executable_execute_request: LoadedExecutableExecuteRequest
    loaded_executable_fetch_execute_result_request: LoadedExecutableFetchExecuteResultRequest
    loaded_executable_cost_analysis_request: LoadedExecutableCostAnalysisRequest
    loaded_executable_human_readable_program_text_request: LoadedExecutableHumanReadableProgramTextRequest
    loaded_executable_delete_request: LoadedExecutableDeleteRequest
    loaded_executable_is_deleted_request: LoadedExecutableIsDeletedRequest
    loaded_executable_destruct_request: LoadedExecutableDestructRequest
    loaded_executable_mpmd_metadata_request: LoadedExecutableMpmdMetadataRequest
    loaded_executable_mpmd_cost_analysis_request: LoadedExecutableMpmdCostAnalysisRequest
    loaded_host_callback_poll_request: LoadedHostCallbackPollRequest
    loaded_host_callback_return_request: LoadedHostCallbackReturnRequest
    get_default_device_assignment_request: GetDefaultDeviceAssignmentRequest
    get_default_layout_request: GetDefaultLayoutRequest
    def __init__(self, request_metadata: _Optional[_Union[RequestMetadata, _Mapping]] = ..., init_request: _Optional[_Union[InitRequest, _Mapping]] = ..., check_future_request: _Optional[_Union[CheckFutureRequest, _Mapping]] = ..., check_value_ready_request: _Optional[_Union[CheckValueReadyRequest, _Mapping]] = ..., make_array_from_host_buffer_request: _Optional[_Union[MakeArrayFromHostBufferRequest, _Mapping]] = ..., make_arrays_from_host_buffer_shards_request: _Optional[_Union[MakeArraysFromHostBufferShardsRequest, _Mapping]] = ..., make_error_arrays_request: _Optional[_Union[MakeErrorArraysRequest, _Mapping]] = ..., assemble_array_from_single_device_arrays_request: _Optional[_Union[AssembleArrayFromSingleDeviceArraysRequest, _Mapping]] = ..., remap_arrays_request: _Optional[_Union[RemapArraysRequest, _Mapping]] = ..., bitcast_arrays_request: _Optional[_Union[BitcastArraysRequest, _Mapping]] = ..., reshard_arrays_request: _Optional[_Union[ReshardArraysRequest, _Mapping]] = ..., copy_to_host_buffer_request: _Optional[_Union[CopyToHostBufferRequest, _Mapping]] = ..., disassemble_into_single_device_arrays_request: _Optional[_Union[DisassembleIntoSingleDeviceArraysRequest, _Mapping]] = ..., delete_array_request: _Optional[_Union[DeleteArrayRequest, _Mapping]] = ..., copy_arrays_request: _Optional[_Union[CopyArraysRequest, _Mapping]] = ..., fully_replicated_shard_request: _Optional[_Union[FullyReplicatedShardRequest, _Mapping]] = ..., is_array_deleted_request: _Optional[_Union[IsArrayDeletedRequest, _Mapping]] = ..., destruct_array_request: _Optional[_Union[DestructArrayRequest, _Mapping]] = ..., compile_request: _Optional[_Union[CompileRequest, _Mapping]] = ..., loaded_executable_metadata_request: _Optional[_Union[LoadedExecutableMetadataRequest, _Mapping]] = ..., loaded_executable_execute_request: _Optional[_Union[LoadedExecutableExecuteRequest, _Mapping]] = ..., loaded_executable_fetch_execute_result_request: _Optional[_Union[LoadedExecutableFetchExecuteResultRequest, _Mapping]] = ..., loaded_executable_cost_analysis_request: _Optional[_Union[LoadedExecutableCostAnalysisRequest, _Mapping]] = ..., loaded_executable_human_readable_program_text_request: _Optional[_Union[LoadedExecutableHumanReadableProgramTextRequest, _Mapping]] = ..., loaded_executable_delete_request: _Optional[_Union[LoadedExecutableDeleteRequest, _Mapping]] = ..., loaded_executable_is_deleted_request: _Optional[_Union[LoadedExecutableIsDeletedRequest, _Mapping]] = ..., loaded_executable_destruct_request: _Optional[_Union[LoadedExecutableDestructRequest, _Mapping]] = ..., loaded_executable_mpmd_metadata_request: _Optional[_Union[LoadedExecutableMpmdMetadataRequest, _Mapping]] = ..., loaded_executable_mpmd_cost_analysis_request: _Optional[_Union[LoadedExecutableMpmdCostAnalysisRequest, _Mapping]] = ..., loaded_host_callback_poll_request: _Optional[_Union[LoadedHostCallbackPollRequest, _Mapping]] = ..., loaded_host_callback_return_request: _Optional[_Union[LoadedHostCallbackReturnRequest, _Mapping]] = ..., get_default_device_assignment_request: _Optional[_Union[GetDefaultDeviceAssignmentRequest, _Mapping]] = ..., get_default_layout_request: _Optional[_Union[GetDefaultLayoutRequest, _Mapping]] = ...) -> None: ...

class IfrtResponse(_message.Message):
    __slots__ = ("response_metadata", "init_response", "check_future_response", "check_value_ready_response", "make_array_from_host_buffer_response", "make_arrays_from_host_buffer_shards_response", "make_error_arrays_response", "assemble_array_from_single_device_arrays_response", "remap_arrays_response", "bitcast_arrays_response", "reshard_arrays_response", "copy_to_host_buffer_response", "disassemble_into_single_device_arrays_response", "delete_array_response", "copy_arrays_response", "fully_replicated_shard_response", "is_array_deleted_response", "destruct_array_response", "compile_response", "loaded_executable_metadata_response", "loaded_executable_execute_response", "loaded_executable_fetch_execute_result_response", "loaded_executable_cost_analysis_response", "loaded_executable_human_readable_program_text_response", "loaded_executable_delete_response", "loaded_executable_is_deleted_response", "loaded_executable_destruct_response", "loaded_host_callback_poll_response", "loaded_host_callback_return_response", "get_default_device_assignment_response", "get_default_layout_response")
    RESPONSE_METADATA_FIELD_NUMBER: _ClassVar[int]
    INIT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    CHECK_FUTURE_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    CHECK_VALUE_READY_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    MAKE_ARRAY_FROM_HOST_BUFFER_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    MAKE_ARRAYS_FROM_HOST_BUFFER_SHARDS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    MAKE_ERROR_ARRAYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ASSEMBLE_ARRAY_FROM_SINGLE_DEVICE_ARRAYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    REMAP_ARRAYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    BITCAST_ARRAYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    RESHARD_ARRAYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    COPY_TO_HOST_BUFFER_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    DISASSEMBLE_INTO_SINGLE_DEVICE_ARRAYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    DELETE_ARRAY_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    COPY_ARRAYS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    FULLY_REPLICATED_SHARD_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    IS_ARRAY_DELETED_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    DESTRUCT_ARRAY_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    COMPILE_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_METADATA_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_EXECUTE_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_FETCH_EXECUTE_RESULT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_COST_ANALYSIS_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_HUMAN_READABLE_PROGRAM_TEXT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_DELETE_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_IS_DELETED_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_EXECUTABLE_DESTRUCT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_HOST_CALLBACK_POLL_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    LOADED_HOST_CALLBACK_RETURN_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    GET_DEFAULT_DEVICE_ASSIGNMENT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    GET_DEFAULT_LAYOUT_RESPONSE_FIELD_NUMBER: _ClassVar[int]
    response_metadata: ResponseMetadata
    init_response: InitResponse
    check_future_response: CheckFutureResponse
    check_value_ready_response: CheckValueReadyResponse
    make_array_from_host_buffer_response: MakeArrayFromHostBufferResponse
    make_arrays_from_host_buffer_shards_response: MakeArraysFromHostBufferShardsResponse
    make_error_arrays_response: MakeErrorArraysResponse
    assemble_array_from_single_device_arrays_response: AssembleArrayFromSingleDeviceArraysResponse
    remap_arrays_response: RemapArraysResponse
    bitcast_arrays_response: BitcastArraysResponse
    reshard_arrays_response: ReshardArraysResponse
    copy_to_host_buffer_response: CopyToHostBufferResponse
    disassemble_into_single_device_arrays_response: DisassembleIntoSingleDeviceArraysResponse
    delete_array_response: DeleteArrayResponse
    copy_arrays_response: CopyArraysResponse
    fully_replicated_shard_response: FullyReplicatedShardResponse
    is_array_deleted_response: IsArrayDeletedResponse
    destruct_array_response: DestructArrayResponse
    compile_response: CompileResponse
    loaded_executable_metadata_response: LoadedExecutableMetadataResponse
    loaded_executable_execute_response: LoadedExecutableExecuteResponse
    loaded_executable_fetch_execute_result_response: LoadedExecutableFetchExecuteResultResponse
    loaded_executable_cost_analysis_response: LoadedExecutableCostAnalysisResponse
    loaded_executable_human_readable_program_text_response: LoadedExecutableHumanReadableProgramTextResponse
    loaded_executable_delete_response: LoadedExecutableDeleteResponse
    loaded_executable_is_deleted_response: LoadedExecutableIsDeletedResponse
    loaded_executable_destruct_response: LoadedExecutableDestructResponse
    loaded_host_callback_poll_response: LoadedHostCallbackPollResponse
    loaded_host_callback_return_response: LoadedHostCallbackReturnResponse
    get_default_device_assignment_response: GetDefaultDeviceAssignmentResponse
    get_default_layout_response: GetDefaultLayoutResponse
    def __init__(self, response_metadata: _Optional[_Union[ResponseMetadata, _Mapping]] = ..., init_response: _Optional[_Union[InitResponse, _Mapping]] = ..., check_future_response: _Optional[_Union[CheckFutureResponse, _Mapping]] = ..., check_value_ready_response: _Optional[_Union[CheckValueReadyResponse, _Mapping]] = ..., make_array_from_host_buffer_response: _Optional[_Union[MakeArrayFromHostBufferResponse, _Mapping]] = ..., make_arrays_from_host_buffer_shards_response: _Optional[_Union[MakeArraysFromHostBufferShardsResponse, _Mapping]] = ..., make_error_arrays_response: _Optional[_Union[MakeErrorArraysResponse, _Mapping]] = ..., assemble_array_from_single_device_arrays_response: _Optional[_Union[AssembleArrayFromSingleDeviceArraysResponse, _Mapping]] = ..., remap_arrays_response: _Optional[_Union[RemapArraysResponse, _Mapping]] = ..., bitcast_arrays_response: _Optional[_Union[BitcastArraysResponse, _Mapping]] = ..., reshard_arrays_response: _Optional[_Union[ReshardArraysResponse, _Mapping]] = ..., copy_to_host_buffer_response: _Optional[_Union[CopyToHostBufferResponse, _Mapping]] = ..., disassemble_into_single_device_arrays_response: _Optional[_Union[DisassembleIntoSingleDeviceArraysResponse, _Mapping]] = ..., delete_array_response: _Optional[_Union[DeleteArrayResponse, _Mapping]] = ..., copy_arrays_response: _Optional[_Union[CopyArraysResponse, _Mapping]] = ..., fully_replicated_shard_response: _Optional[_Union[FullyReplicatedShardResponse, _Mapping]] = ..., is_array_deleted_response: _Optional[_Union[IsArrayDeletedResponse, _Mapping]] = ..., destruct_array_response: _Optional[_Union[DestructArrayResponse, _Mapping]] = ..., compile_response: _Optional[_Union[CompileResponse, _Mapping]] = ..., loaded_executable_metadata_response: _Optional[_Union[LoadedExecutableMetadataResponse, _Mapping]] = ..., loaded_executable_execute_response: _Optional[_Union[LoadedExecutableExecuteResponse, _Mapping]] = ..., loaded_executable_fetch_execute_result_response: _Optional[_Union[LoadedExecutableFetchExecuteResultResponse, _Mapping]] = ..., loaded_executable_cost_analysis_response: _Optional[_Union[LoadedExecutableCostAnalysisResponse, _Mapping]] = ..., loaded_executable_human_readable_program_text_response: _Optional[_Union[LoadedExecutableHumanReadableProgramTextResponse, _Mapping]] = ..., loaded_executable_delete_response: _Optional[_Union[LoadedExecutableDeleteResponse, _Mapping]] = ..., loaded_executable_is_deleted_response: _Optional[_Union[LoadedExecutableIsDeletedResponse, _Mapping]] = ..., loaded_executable_destruct_response: _Optional[_Union[LoadedExecutableDestructResponse, _Mapping]] = ..., loaded_host_callback_poll_response: _Optional[_Union[LoadedHostCallbackPollResponse, _Mapping]] = ..., loaded_host_callback_return_response: _Optional[_Union[LoadedHostCallbackReturnResponse, _Mapping]] = ..., get_default_device_assignment_response: _Optional[_Union[GetDefaultDeviceAssignmentResponse, _Mapping]] = ..., get_default_layout_response: _Optional[_Union[GetDefaultLayoutResponse, _Mapping]] = ...) -> None: ...

class RequestMetadata(_message.Message):
    __slots__ = ("op_id", "user_context_id")
    OP_ID_FIELD_NUMBER: _ClassVar[int]
    USER_CONTEXT_ID_FIELD_NUMBER: _ClassVar[int]
    op_id: int
    user_context_id: int
    def __init__(self, op_id: _Optional[int] = ..., user_context_id: _Optional[int] = ...) -> None: ...

class ResponseMetadata(_message.Message):
    __slots__ = ("op_id", "status", "seq_num", "destroyed_user_context_ids")
    OP_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SEQ_NUM_FIELD_NUMBER: _ClassVar[int]
    DESTROYED_USER_CONTEXT_IDS_FIELD_NUMBER: _ClassVar[int]
    op_id: int
    status: _values_pb2.Status
    seq_num: int
    destroyed_user_context_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, op_id: _Optional[int] = ..., status: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., seq_num: _Optional[int] = ..., destroyed_user_context_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class InitRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class InitResponse(_message.Message):
    __slots__ = ("platform_name", "platform_version", "platform_id", "process_index", "runtime_type", "all_devices", "addressable_device_ids", "session_id", "memories", "primary_device_ids", "client_attributes")
    class Device(_message.Message):
        __slots__ = ("id", "local_hardware_id", "device_kind", "debug_string", "to_string", "default_memory_id", "memory_ids", "local_device_id", "attributes", "platform_name")
        ID_FIELD_NUMBER: _ClassVar[int]
        LOCAL_HARDWARE_ID_FIELD_NUMBER: _ClassVar[int]
        DEVICE_KIND_FIELD_NUMBER: _ClassVar[int]
        DEBUG_STRING_FIELD_NUMBER: _ClassVar[int]
        TO_STRING_FIELD_NUMBER: _ClassVar[int]
        DEFAULT_MEMORY_ID_FIELD_NUMBER: _ClassVar[int]
        MEMORY_IDS_FIELD_NUMBER: _ClassVar[int]
        LOCAL_DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
        ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
        PLATFORM_NAME_FIELD_NUMBER: _ClassVar[int]
        id: int
        local_hardware_id: int
        device_kind: str
        debug_string: str
        to_string: str
        default_memory_id: int
        memory_ids: _containers.RepeatedScalarFieldContainer[int]
        local_device_id: int
        attributes: _values_pb2.AttributeMap
        platform_name: str
        def __init__(self, id: _Optional[int] = ..., local_hardware_id: _Optional[int] = ..., device_kind: _Optional[str] = ..., debug_string: _Optional[str] = ..., to_string: _Optional[str] = ..., default_memory_id: _Optional[int] = ..., memory_ids: _Optional[_Iterable[int]] = ..., local_device_id: _Optional[int] = ..., attributes: _Optional[_Union[_values_pb2.AttributeMap, _Mapping]] = ..., platform_name: _Optional[str] = ...) -> None: ...
    class Memory(_message.Message):
        __slots__ = ("id", "memory_space_kind", "device_ids", "debug_string", "to_string", "kind_id")
        ID_FIELD_NUMBER: _ClassVar[int]
        MEMORY_SPACE_KIND_FIELD_NUMBER: _ClassVar[int]
        DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
        DEBUG_STRING_FIELD_NUMBER: _ClassVar[int]
        TO_STRING_FIELD_NUMBER: _ClassVar[int]
        KIND_ID_FIELD_NUMBER: _ClassVar[int]
        id: int
        memory_space_kind: str
        device_ids: _containers.RepeatedScalarFieldContainer[int]
        debug_string: str
        to_string: str
        kind_id: int
        def __init__(self, id: _Optional[int] = ..., memory_space_kind: _Optional[str] = ..., device_ids: _Optional[_Iterable[int]] = ..., debug_string: _Optional[str] = ..., to_string: _Optional[str] = ..., kind_id: _Optional[int] = ...) -> None: ...
    PLATFORM_NAME_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_VERSION_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_ID_FIELD_NUMBER: _ClassVar[int]
    PROCESS_INDEX_FIELD_NUMBER: _ClassVar[int]
    RUNTIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    ALL_DEVICES_FIELD_NUMBER: _ClassVar[int]
    ADDRESSABLE_DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORIES_FIELD_NUMBER: _ClassVar[int]
    PRIMARY_DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    platform_name: str
    platform_version: str
    platform_id: int
    process_index: int
    runtime_type: str
    all_devices: _containers.RepeatedCompositeFieldContainer[InitResponse.Device]
    addressable_device_ids: _containers.RepeatedScalarFieldContainer[int]
    session_id: int
    memories: _containers.RepeatedCompositeFieldContainer[InitResponse.Memory]
    primary_device_ids: _containers.RepeatedScalarFieldContainer[int]
    client_attributes: _values_pb2.AttributeMap
    def __init__(self, platform_name: _Optional[str] = ..., platform_version: _Optional[str] = ..., platform_id: _Optional[int] = ..., process_index: _Optional[int] = ..., runtime_type: _Optional[str] = ..., all_devices: _Optional[_Iterable[_Union[InitResponse.Device, _Mapping]]] = ..., addressable_device_ids: _Optional[_Iterable[int]] = ..., session_id: _Optional[int] = ..., memories: _Optional[_Iterable[_Union[InitResponse.Memory, _Mapping]]] = ..., primary_device_ids: _Optional[_Iterable[int]] = ..., client_attributes: _Optional[_Union[_values_pb2.AttributeMap, _Mapping]] = ...) -> None: ...

class GetDefaultDeviceAssignmentRequest(_message.Message):
    __slots__ = ("num_replicas", "num_partitions")
    NUM_REPLICAS_FIELD_NUMBER: _ClassVar[int]
    NUM_PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    num_replicas: int
    num_partitions: int
    def __init__(self, num_replicas: _Optional[int] = ..., num_partitions: _Optional[int] = ...) -> None: ...

class GetDefaultDeviceAssignmentResponse(_message.Message):
    __slots__ = ("device_assignment",)
    DEVICE_ASSIGNMENT_FIELD_NUMBER: _ClassVar[int]
    device_assignment: _xla_pb2.DeviceAssignment
    def __init__(self, device_assignment: _Optional[_Union[_xla_pb2.DeviceAssignment, _Mapping]] = ...) -> None: ...

class GetDefaultLayoutRequest(_message.Message):
    __slots__ = ("dtype", "dims", "device_id", "memory_kind")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    DIMS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    dtype: _values_pb2.DType
    dims: _containers.RepeatedScalarFieldContainer[int]
    device_id: int
    memory_kind: str
    def __init__(self, dtype: _Optional[_Union[_values_pb2.DType, _Mapping]] = ..., dims: _Optional[_Iterable[int]] = ..., device_id: _Optional[int] = ..., memory_kind: _Optional[str] = ...) -> None: ...

class GetDefaultLayoutResponse(_message.Message):
    __slots__ = ("serialized_pjrt_layout",)
    SERIALIZED_PJRT_LAYOUT_FIELD_NUMBER: _ClassVar[int]
    serialized_pjrt_layout: bytes
    def __init__(self, serialized_pjrt_layout: _Optional[bytes] = ...) -> None: ...

class CheckFutureRequest(_message.Message):
    __slots__ = ("future_handle",)
    FUTURE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    future_handle: int
    def __init__(self, future_handle: _Optional[int] = ...) -> None: ...

class CheckFutureResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CheckValueReadyRequest(_message.Message):
    __slots__ = ("value_handles",)
    VALUE_HANDLES_FIELD_NUMBER: _ClassVar[int]
    value_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, value_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class CheckValueReadyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MakeArrayFromHostBufferRequest(_message.Message):
    __slots__ = ("dtype", "shape", "sharding", "host_buffer_handle", "byte_strides", "array_handle", "layout")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHARDING_FIELD_NUMBER: _ClassVar[int]
    HOST_BUFFER_HANDLE_FIELD_NUMBER: _ClassVar[int]
    BYTE_STRIDES_FIELD_NUMBER: _ClassVar[int]
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    LAYOUT_FIELD_NUMBER: _ClassVar[int]
    dtype: _values_pb2.DType
    shape: _values_pb2.Shape
    sharding: _values_pb2.Sharding
    host_buffer_handle: int
    byte_strides: _values_pb2.ByteStrides
    array_handle: int
    layout: _values_pb2.Layout
    def __init__(self, dtype: _Optional[_Union[_values_pb2.DType, _Mapping]] = ..., shape: _Optional[_Union[_values_pb2.Shape, _Mapping]] = ..., sharding: _Optional[_Union[_values_pb2.Sharding, _Mapping]] = ..., host_buffer_handle: _Optional[int] = ..., byte_strides: _Optional[_Union[_values_pb2.ByteStrides, _Mapping]] = ..., array_handle: _Optional[int] = ..., layout: _Optional[_Union[_values_pb2.Layout, _Mapping]] = ...) -> None: ...

class MakeArrayFromHostBufferResponse(_message.Message):
    __slots__ = ("array_handle",)
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    array_handle: int
    def __init__(self, array_handle: _Optional[int] = ...) -> None: ...

class MakeArraysFromHostBufferShardsRequest(_message.Message):
    __slots__ = ("specs", "array_handles")
    class HostBuffer(_message.Message):
        __slots__ = ("dtype", "shape", "host_buffer_handle", "byte_strides")
        DTYPE_FIELD_NUMBER: _ClassVar[int]
        SHAPE_FIELD_NUMBER: _ClassVar[int]
        HOST_BUFFER_HANDLE_FIELD_NUMBER: _ClassVar[int]
        BYTE_STRIDES_FIELD_NUMBER: _ClassVar[int]
        dtype: _values_pb2.DType
        shape: _values_pb2.Shape
        host_buffer_handle: int
        byte_strides: _values_pb2.ByteStrides
        def __init__(self, dtype: _Optional[_Union[_values_pb2.DType, _Mapping]] = ..., shape: _Optional[_Union[_values_pb2.Shape, _Mapping]] = ..., host_buffer_handle: _Optional[int] = ..., byte_strides: _Optional[_Union[_values_pb2.ByteStrides, _Mapping]] = ...) -> None: ...
    class ShardIndices(_message.Message):
        __slots__ = ("indices",)
        INDICES_FIELD_NUMBER: _ClassVar[int]
        indices: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, indices: _Optional[_Iterable[int]] = ...) -> None: ...
    class MakeArraysFromHostBufferShardsSpec(_message.Message):
        __slots__ = ("addressable_shard_indices", "host_buffers", "array_spec")
        ADDRESSABLE_SHARD_INDICES_FIELD_NUMBER: _ClassVar[int]
        HOST_BUFFERS_FIELD_NUMBER: _ClassVar[int]
        ARRAY_SPEC_FIELD_NUMBER: _ClassVar[int]
        addressable_shard_indices: _containers.RepeatedCompositeFieldContainer[MakeArraysFromHostBufferShardsRequest.ShardIndices]
        host_buffers: _containers.RepeatedCompositeFieldContainer[MakeArraysFromHostBufferShardsRequest.HostBuffer]
        array_spec: _values_pb2.ArraySpec
        def __init__(self, addressable_shard_indices: _Optional[_Iterable[_Union[MakeArraysFromHostBufferShardsRequest.ShardIndices, _Mapping]]] = ..., host_buffers: _Optional[_Iterable[_Union[MakeArraysFromHostBufferShardsRequest.HostBuffer, _Mapping]]] = ..., array_spec: _Optional[_Union[_values_pb2.ArraySpec, _Mapping]] = ...) -> None: ...
    SPECS_FIELD_NUMBER: _ClassVar[int]
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    specs: _containers.RepeatedCompositeFieldContainer[MakeArraysFromHostBufferShardsRequest.MakeArraysFromHostBufferShardsSpec]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, specs: _Optional[_Iterable[_Union[MakeArraysFromHostBufferShardsRequest.MakeArraysFromHostBufferShardsSpec, _Mapping]]] = ..., array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class MakeArraysFromHostBufferShardsResponse(_message.Message):
    __slots__ = ("array_handles",)
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class MakeErrorArraysRequest(_message.Message):
    __slots__ = ("error", "array_specs", "array_handles")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    ARRAY_SPECS_FIELD_NUMBER: _ClassVar[int]
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    error: _values_pb2.Status
    array_specs: _containers.RepeatedCompositeFieldContainer[_values_pb2.ArraySpec]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, error: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., array_specs: _Optional[_Iterable[_Union[_values_pb2.ArraySpec, _Mapping]]] = ..., array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class MakeErrorArraysResponse(_message.Message):
    __slots__ = ("array_handles",)
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class AssembleArrayFromSingleDeviceArraysRequest(_message.Message):
    __slots__ = ("shape", "sharding", "single_device_array_handles", "copy_semantics", "single_device_shard_semantics", "result_handle", "dtype")
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHARDING_FIELD_NUMBER: _ClassVar[int]
    SINGLE_DEVICE_ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    COPY_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    SINGLE_DEVICE_SHARD_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    RESULT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    shape: _values_pb2.Shape
    sharding: _values_pb2.Sharding
    single_device_array_handles: _containers.RepeatedScalarFieldContainer[int]
    copy_semantics: _values_pb2.ArrayCopySemantics
    single_device_shard_semantics: _values_pb2.SingleDeviceShardSemantics
    result_handle: int
    dtype: _values_pb2.DType
    def __init__(self, shape: _Optional[_Union[_values_pb2.Shape, _Mapping]] = ..., sharding: _Optional[_Union[_values_pb2.Sharding, _Mapping]] = ..., single_device_array_handles: _Optional[_Iterable[int]] = ..., copy_semantics: _Optional[_Union[_values_pb2.ArrayCopySemantics, str]] = ..., single_device_shard_semantics: _Optional[_Union[_values_pb2.SingleDeviceShardSemantics, str]] = ..., result_handle: _Optional[int] = ..., dtype: _Optional[_Union[_values_pb2.DType, _Mapping]] = ...) -> None: ...

class AssembleArrayFromSingleDeviceArraysResponse(_message.Message):
    __slots__ = ("array_handle",)
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    array_handle: int
    def __init__(self, array_handle: _Optional[int] = ...) -> None: ...

class RemapPlan(_message.Message):
    __slots__ = ("input_specs", "output_specs", "mappings", "version_number", "input_devices_for_output")
    class Mapping(_message.Message):
        __slots__ = ("in_array", "out_array", "from_start", "from_end", "from_step", "to_start", "to_end", "to_step")
        IN_ARRAY_FIELD_NUMBER: _ClassVar[int]
        OUT_ARRAY_FIELD_NUMBER: _ClassVar[int]
        FROM_START_FIELD_NUMBER: _ClassVar[int]
        FROM_END_FIELD_NUMBER: _ClassVar[int]
        FROM_STEP_FIELD_NUMBER: _ClassVar[int]
        TO_START_FIELD_NUMBER: _ClassVar[int]
        TO_END_FIELD_NUMBER: _ClassVar[int]
        TO_STEP_FIELD_NUMBER: _ClassVar[int]
        in_array: int
        out_array: int
        from_start: _containers.RepeatedScalarFieldContainer[int]
        from_end: _containers.RepeatedScalarFieldContainer[int]
        from_step: _containers.RepeatedScalarFieldContainer[int]
        to_start: _containers.RepeatedScalarFieldContainer[int]
        to_end: _containers.RepeatedScalarFieldContainer[int]
        to_step: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, in_array: _Optional[int] = ..., out_array: _Optional[int] = ..., from_start: _Optional[_Iterable[int]] = ..., from_end: _Optional[_Iterable[int]] = ..., from_step: _Optional[_Iterable[int]] = ..., to_start: _Optional[_Iterable[int]] = ..., to_end: _Optional[_Iterable[int]] = ..., to_step: _Optional[_Iterable[int]] = ...) -> None: ...
    class InputDevices(_message.Message):
        __slots__ = ("in_array", "device_list")
        IN_ARRAY_FIELD_NUMBER: _ClassVar[int]
        DEVICE_LIST_FIELD_NUMBER: _ClassVar[int]
        in_array: int
        device_list: _shardings_pb2.DeviceList
        def __init__(self, in_array: _Optional[int] = ..., device_list: _Optional[_Union[_shardings_pb2.DeviceList, _Mapping]] = ...) -> None: ...
    class InputDevicesForOutput(_message.Message):
        __slots__ = ("out_array", "input_devices")
        OUT_ARRAY_FIELD_NUMBER: _ClassVar[int]
        INPUT_DEVICES_FIELD_NUMBER: _ClassVar[int]
        out_array: int
        input_devices: _containers.RepeatedCompositeFieldContainer[RemapPlan.InputDevices]
        def __init__(self, out_array: _Optional[int] = ..., input_devices: _Optional[_Iterable[_Union[RemapPlan.InputDevices, _Mapping]]] = ...) -> None: ...
    INPUT_SPECS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SPECS_FIELD_NUMBER: _ClassVar[int]
    MAPPINGS_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    INPUT_DEVICES_FOR_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    input_specs: _containers.RepeatedCompositeFieldContainer[_values_pb2.ArraySpec]
    output_specs: _containers.RepeatedCompositeFieldContainer[_values_pb2.ArraySpec]
    mappings: _containers.RepeatedCompositeFieldContainer[RemapPlan.Mapping]
    version_number: int
    input_devices_for_output: _containers.RepeatedCompositeFieldContainer[RemapPlan.InputDevicesForOutput]
    def __init__(self, input_specs: _Optional[_Iterable[_Union[_values_pb2.ArraySpec, _Mapping]]] = ..., output_specs: _Optional[_Iterable[_Union[_values_pb2.ArraySpec, _Mapping]]] = ..., mappings: _Optional[_Iterable[_Union[RemapPlan.Mapping, _Mapping]]] = ..., version_number: _Optional[int] = ..., input_devices_for_output: _Optional[_Iterable[_Union[RemapPlan.InputDevicesForOutput, _Mapping]]] = ...) -> None: ...

class RemapArraysRequest(_message.Message):
    __slots__ = ("plan", "array_handles", "copy_semantics", "result_handles")
    PLAN_FIELD_NUMBER: _ClassVar[int]
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    COPY_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    RESULT_HANDLES_FIELD_NUMBER: _ClassVar[int]
    plan: RemapPlan
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    copy_semantics: _values_pb2.ArrayCopySemantics
    result_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, plan: _Optional[_Union[RemapPlan, _Mapping]] = ..., array_handles: _Optional[_Iterable[int]] = ..., copy_semantics: _Optional[_Union[_values_pb2.ArrayCopySemantics, str]] = ..., result_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class RemapArraysResponse(_message.Message):
    __slots__ = ("array_handles",)
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class BitcastArraysRequest(_message.Message):
    __slots__ = ("array_handles", "array_specs", "copy_semantics", "result_handles")
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    ARRAY_SPECS_FIELD_NUMBER: _ClassVar[int]
    COPY_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    RESULT_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    array_specs: _containers.RepeatedCompositeFieldContainer[_values_pb2.ArraySpec]
    copy_semantics: _values_pb2.ArrayCopySemantics
    result_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ..., array_specs: _Optional[_Iterable[_Union[_values_pb2.ArraySpec, _Mapping]]] = ..., copy_semantics: _Optional[_Union[_values_pb2.ArrayCopySemantics, str]] = ..., result_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class BitcastArraysResponse(_message.Message):
    __slots__ = ("array_handles",)
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class ReshardArraysRequest(_message.Message):
    __slots__ = ("array_handles", "array_specs", "copy_semantics", "result_handles")
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    ARRAY_SPECS_FIELD_NUMBER: _ClassVar[int]
    COPY_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    RESULT_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    array_specs: _containers.RepeatedCompositeFieldContainer[_values_pb2.ArraySpec]
    copy_semantics: _values_pb2.ArrayCopySemantics
    result_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ..., array_specs: _Optional[_Iterable[_Union[_values_pb2.ArraySpec, _Mapping]]] = ..., copy_semantics: _Optional[_Union[_values_pb2.ArrayCopySemantics, str]] = ..., result_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class ReshardArraysResponse(_message.Message):
    __slots__ = ("array_handles",)
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class CopyToHostBufferRequest(_message.Message):
    __slots__ = ("host_buffer_handle", "array_handle", "byte_strides")
    HOST_BUFFER_HANDLE_FIELD_NUMBER: _ClassVar[int]
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    BYTE_STRIDES_FIELD_NUMBER: _ClassVar[int]
    host_buffer_handle: int
    array_handle: int
    byte_strides: _values_pb2.ByteStrides
    def __init__(self, host_buffer_handle: _Optional[int] = ..., array_handle: _Optional[int] = ..., byte_strides: _Optional[_Union[_values_pb2.ByteStrides, _Mapping]] = ...) -> None: ...

class CopyToHostBufferResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DisassembleIntoSingleDeviceArraysRequest(_message.Message):
    __slots__ = ("array_handle", "copy_semantics", "single_device_shard_semantics", "result_handles")
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    COPY_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    SINGLE_DEVICE_SHARD_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    RESULT_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handle: int
    copy_semantics: _values_pb2.ArrayCopySemantics
    single_device_shard_semantics: _values_pb2.SingleDeviceShardSemantics
    result_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handle: _Optional[int] = ..., copy_semantics: _Optional[_Union[_values_pb2.ArrayCopySemantics, str]] = ..., single_device_shard_semantics: _Optional[_Union[_values_pb2.SingleDeviceShardSemantics, str]] = ..., result_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class DisassembleIntoSingleDeviceArraysResponse(_message.Message):
    __slots__ = ("array_handles",)
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class CopyArraysRequest(_message.Message):
    __slots__ = ("array_handles", "device_ids", "memory_kind", "copy_semantics", "result_handles")
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    COPY_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    RESULT_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    device_ids: _containers.RepeatedScalarFieldContainer[int]
    memory_kind: str
    copy_semantics: _values_pb2.ArrayCopySemantics
    result_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ..., device_ids: _Optional[_Iterable[int]] = ..., memory_kind: _Optional[str] = ..., copy_semantics: _Optional[_Union[_values_pb2.ArrayCopySemantics, str]] = ..., result_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class CopyArraysResponse(_message.Message):
    __slots__ = ("array_handles",)
    ARRAY_HANDLES_FIELD_NUMBER: _ClassVar[int]
    array_handles: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handles: _Optional[_Iterable[int]] = ...) -> None: ...

class FullyReplicatedShardRequest(_message.Message):
    __slots__ = ("array_handle", "copy_semantics", "result_handle")
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    COPY_SEMANTICS_FIELD_NUMBER: _ClassVar[int]
    RESULT_HANDLE_FIELD_NUMBER: _ClassVar[int]
    array_handle: int
    copy_semantics: _values_pb2.ArrayCopySemantics
    result_handle: int
    def __init__(self, array_handle: _Optional[int] = ..., copy_semantics: _Optional[_Union[_values_pb2.ArrayCopySemantics, str]] = ..., result_handle: _Optional[int] = ...) -> None: ...

class FullyReplicatedShardResponse(_message.Message):
    __slots__ = ("array_handle",)
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    array_handle: int
    def __init__(self, array_handle: _Optional[int] = ...) -> None: ...

class DeleteArrayRequest(_message.Message):
    __slots__ = ("array_handle",)
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    array_handle: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handle: _Optional[_Iterable[int]] = ...) -> None: ...

class DeleteArrayResponse(_message.Message):
    __slots__ = ("deletion_future_handle",)
    DELETION_FUTURE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    deletion_future_handle: int
    def __init__(self, deletion_future_handle: _Optional[int] = ...) -> None: ...

class IsArrayDeletedRequest(_message.Message):
    __slots__ = ("array_handle",)
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    array_handle: int
    def __init__(self, array_handle: _Optional[int] = ...) -> None: ...

class IsArrayDeletedResponse(_message.Message):
    __slots__ = ("deleted",)
    DELETED_FIELD_NUMBER: _ClassVar[int]
    deleted: bool
    def __init__(self, deleted: bool = ...) -> None: ...

class DestructArrayRequest(_message.Message):
    __slots__ = ("array_handle",)
    ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    array_handle: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array_handle: _Optional[_Iterable[int]] = ...) -> None: ...

class DestructArrayResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CompileRequest(_message.Message):
    __slots__ = ("program", "compile_options", "host_callbacks")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    COMPILE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    HOST_CALLBACKS_FIELD_NUMBER: _ClassVar[int]
    program: _values_pb2.Serialized
    compile_options: _values_pb2.Serialized
    host_callbacks: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, program: _Optional[_Union[_values_pb2.Serialized, _Mapping]] = ..., compile_options: _Optional[_Union[_values_pb2.Serialized, _Mapping]] = ..., host_callbacks: _Optional[_Iterable[bytes]] = ...) -> None: ...

class XlaCompileOptions(_message.Message):
    __slots__ = ("compile_options", "outputs_bundle_slice_sizes", "version_number")
    COMPILE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_BUNDLE_SLICE_SIZES_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    compile_options: bytes
    outputs_bundle_slice_sizes: _containers.RepeatedScalarFieldContainer[int]
    version_number: int
    def __init__(self, compile_options: _Optional[bytes] = ..., outputs_bundle_slice_sizes: _Optional[_Iterable[int]] = ..., version_number: _Optional[int] = ...) -> None: ...

class CompileResponse(_message.Message):
    __slots__ = ("loaded_executable_handle", "name", "num_devices", "addressable_device_ids", "fingerprint_value", "fingerprint_error", "loaded_host_callback_handles", "ready_future_handle", "device_ids")
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUM_DEVICES_FIELD_NUMBER: _ClassVar[int]
    ADDRESSABLE_DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_VALUE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOADED_HOST_CALLBACK_HANDLES_FIELD_NUMBER: _ClassVar[int]
    READY_FUTURE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    name: str
    num_devices: int
    addressable_device_ids: _containers.RepeatedScalarFieldContainer[int]
    fingerprint_value: bytes
    fingerprint_error: _values_pb2.Status
    loaded_host_callback_handles: _containers.RepeatedScalarFieldContainer[int]
    ready_future_handle: int
    device_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, loaded_executable_handle: _Optional[int] = ..., name: _Optional[str] = ..., num_devices: _Optional[int] = ..., addressable_device_ids: _Optional[_Iterable[int]] = ..., fingerprint_value: _Optional[bytes] = ..., fingerprint_error: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., loaded_host_callback_handles: _Optional[_Iterable[int]] = ..., ready_future_handle: _Optional[int] = ..., device_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class LoadedExecutableMetadataRequest(_message.Message):
    __slots__ = ("loaded_executable_handle",)
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    def __init__(self, loaded_executable_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableMetadataResponse(_message.Message):
    __slots__ = ("parameter_shardings", "output_shardings", "output_memory_kinds", "parameter_layouts_list", "parameter_layouts_error", "output_layouts_list", "output_layouts_error", "donated_input_indices", "donated_input_indices_error", "compiled_memory_stats", "compiled_memory_stats_error", "size_of_generated_code_in_bytes")
    class ShardingList(_message.Message):
        __slots__ = ("shardings",)
        SHARDINGS_FIELD_NUMBER: _ClassVar[int]
        shardings: _containers.RepeatedScalarFieldContainer[bytes]
        def __init__(self, shardings: _Optional[_Iterable[bytes]] = ...) -> None: ...
    class LayoutList(_message.Message):
        __slots__ = ("layouts",)
        LAYOUTS_FIELD_NUMBER: _ClassVar[int]
        layouts: _containers.RepeatedScalarFieldContainer[bytes]
        def __init__(self, layouts: _Optional[_Iterable[bytes]] = ...) -> None: ...
    class MemoryKindList(_message.Message):
        __slots__ = ("memory_kinds",)
        MEMORY_KINDS_FIELD_NUMBER: _ClassVar[int]
        memory_kinds: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, memory_kinds: _Optional[_Iterable[str]] = ...) -> None: ...
    class OutputMemoryKind(_message.Message):
        __slots__ = ("status", "memory_kind_lists")
        STATUS_FIELD_NUMBER: _ClassVar[int]
        MEMORY_KIND_LISTS_FIELD_NUMBER: _ClassVar[int]
        status: _values_pb2.Status
        memory_kind_lists: _containers.RepeatedCompositeFieldContainer[LoadedExecutableMetadataResponse.MemoryKindList]
        def __init__(self, status: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., memory_kind_lists: _Optional[_Iterable[_Union[LoadedExecutableMetadataResponse.MemoryKindList, _Mapping]]] = ...) -> None: ...
    class DonatedInputIndices(_message.Message):
        __slots__ = ("donated_input_indices",)
        DONATED_INPUT_INDICES_FIELD_NUMBER: _ClassVar[int]
        donated_input_indices: _containers.RepeatedScalarFieldContainer[int]
        def __init__(self, donated_input_indices: _Optional[_Iterable[int]] = ...) -> None: ...
    PARAMETER_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_MEMORY_KINDS_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_LAYOUTS_LIST_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_LAYOUTS_ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_LAYOUTS_LIST_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_LAYOUTS_ERROR_FIELD_NUMBER: _ClassVar[int]
    DONATED_INPUT_INDICES_FIELD_NUMBER: _ClassVar[int]
    DONATED_INPUT_INDICES_ERROR_FIELD_NUMBER: _ClassVar[int]
    COMPILED_MEMORY_STATS_FIELD_NUMBER: _ClassVar[int]
    COMPILED_MEMORY_STATS_ERROR_FIELD_NUMBER: _ClassVar[int]
    SIZE_OF_GENERATED_CODE_IN_BYTES_FIELD_NUMBER: _ClassVar[int]
    parameter_shardings: LoadedExecutableMetadataResponse.ShardingList
    output_shardings: LoadedExecutableMetadataResponse.ShardingList
    output_memory_kinds: LoadedExecutableMetadataResponse.OutputMemoryKind
    parameter_layouts_list: LoadedExecutableMetadataResponse.LayoutList
    parameter_layouts_error: _values_pb2.Status
    output_layouts_list: LoadedExecutableMetadataResponse.LayoutList
    output_layouts_error: _values_pb2.Status
    donated_input_indices: LoadedExecutableMetadataResponse.DonatedInputIndices
    donated_input_indices_error: _values_pb2.Status
    compiled_memory_stats: bytes
    compiled_memory_stats_error: _values_pb2.Status
    size_of_generated_code_in_bytes: int
    def __init__(self, parameter_shardings: _Optional[_Union[LoadedExecutableMetadataResponse.ShardingList, _Mapping]] = ..., output_shardings: _Optional[_Union[LoadedExecutableMetadataResponse.ShardingList, _Mapping]] = ..., output_memory_kinds: _Optional[_Union[LoadedExecutableMetadataResponse.OutputMemoryKind, _Mapping]] = ..., parameter_layouts_list: _Optional[_Union[LoadedExecutableMetadataResponse.LayoutList, _Mapping]] = ..., parameter_layouts_error: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., output_layouts_list: _Optional[_Union[LoadedExecutableMetadataResponse.LayoutList, _Mapping]] = ..., output_layouts_error: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., donated_input_indices: _Optional[_Union[LoadedExecutableMetadataResponse.DonatedInputIndices, _Mapping]] = ..., donated_input_indices_error: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., compiled_memory_stats: _Optional[bytes] = ..., compiled_memory_stats_error: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., size_of_generated_code_in_bytes: _Optional[int] = ...) -> None: ...

class LoadedExecutableCostAnalysisRequest(_message.Message):
    __slots__ = ("loaded_executable_handle",)
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    def __init__(self, loaded_executable_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableCostAnalysisResponse(_message.Message):
    __slots__ = ("status", "attributes")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    status: _values_pb2.Status
    attributes: _values_pb2.AttributeMap
    def __init__(self, status: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., attributes: _Optional[_Union[_values_pb2.AttributeMap, _Mapping]] = ...) -> None: ...

class LoadedExecutableHumanReadableProgramTextRequest(_message.Message):
    __slots__ = ("loaded_executable_handle",)
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    def __init__(self, loaded_executable_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableHumanReadableProgramTextResponse(_message.Message):
    __slots__ = ("status", "human_readable_program_text")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    HUMAN_READABLE_PROGRAM_TEXT_FIELD_NUMBER: _ClassVar[int]
    status: _values_pb2.Status
    human_readable_program_text: str
    def __init__(self, status: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., human_readable_program_text: _Optional[str] = ...) -> None: ...

class ExecuteOptions(_message.Message):
    __slots__ = ("untuple_result", "launch_id", "non_donatable_input_indices", "fill_status", "custom_options", "execution_stream_id", "version_number")
    UNTUPLE_RESULT_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_ID_FIELD_NUMBER: _ClassVar[int]
    NON_DONATABLE_INPUT_INDICES_FIELD_NUMBER: _ClassVar[int]
    FILL_STATUS_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    untuple_result: bool
    launch_id: int
    non_donatable_input_indices: _containers.RepeatedScalarFieldContainer[int]
    fill_status: bool
    custom_options: _values_pb2.AttributeMap
    execution_stream_id: int
    version_number: int
    def __init__(self, untuple_result: bool = ..., launch_id: _Optional[int] = ..., non_donatable_input_indices: _Optional[_Iterable[int]] = ..., fill_status: bool = ..., custom_options: _Optional[_Union[_values_pb2.AttributeMap, _Mapping]] = ..., execution_stream_id: _Optional[int] = ..., version_number: _Optional[int] = ...) -> None: ...

class LoadedExecutableExecuteRequest(_message.Message):
    __slots__ = ("loaded_executable_handle", "args_handles", "execute_options", "device_ids", "result_array_handle", "result_status_handle")
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    ARGS_HANDLES_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    RESULT_ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
    RESULT_STATUS_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    args_handles: _containers.RepeatedScalarFieldContainer[int]
    execute_options: ExecuteOptions
    device_ids: _containers.RepeatedScalarFieldContainer[int]
    result_array_handle: _containers.RepeatedScalarFieldContainer[int]
    result_status_handle: int
    def __init__(self, loaded_executable_handle: _Optional[int] = ..., args_handles: _Optional[_Iterable[int]] = ..., execute_options: _Optional[_Union[ExecuteOptions, _Mapping]] = ..., device_ids: _Optional[_Iterable[int]] = ..., result_array_handle: _Optional[_Iterable[int]] = ..., result_status_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableExecuteResponse(_message.Message):
    __slots__ = ("status_handle", "outputs")
    class Output(_message.Message):
        __slots__ = ("dtype", "shape", "sharding", "array_handle")
        DTYPE_FIELD_NUMBER: _ClassVar[int]
        SHAPE_FIELD_NUMBER: _ClassVar[int]
        SHARDING_FIELD_NUMBER: _ClassVar[int]
        ARRAY_HANDLE_FIELD_NUMBER: _ClassVar[int]
        dtype: _values_pb2.DType
        shape: _values_pb2.Shape
        sharding: _values_pb2.Sharding
        array_handle: int
        def __init__(self, dtype: _Optional[_Union[_values_pb2.DType, _Mapping]] = ..., shape: _Optional[_Union[_values_pb2.Shape, _Mapping]] = ..., sharding: _Optional[_Union[_values_pb2.Sharding, _Mapping]] = ..., array_handle: _Optional[int] = ...) -> None: ...
    STATUS_HANDLE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    status_handle: int
    outputs: _containers.RepeatedCompositeFieldContainer[LoadedExecutableExecuteResponse.Output]
    def __init__(self, status_handle: _Optional[int] = ..., outputs: _Optional[_Iterable[_Union[LoadedExecutableExecuteResponse.Output, _Mapping]]] = ...) -> None: ...

class LoadedExecutableFetchExecuteResultRequest(_message.Message):
    __slots__ = ("result_status_handle",)
    RESULT_STATUS_HANDLE_FIELD_NUMBER: _ClassVar[int]
    result_status_handle: int
    def __init__(self, result_status_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableFetchExecuteResultResponse(_message.Message):
    __slots__ = ("device_time",)
    class DeviceTimeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    DEVICE_TIME_FIELD_NUMBER: _ClassVar[int]
    device_time: _containers.ScalarMap[str, float]
    def __init__(self, device_time: _Optional[_Mapping[str, float]] = ...) -> None: ...

class LoadedExecutableDeleteRequest(_message.Message):
    __slots__ = ("loaded_executable_handle",)
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    def __init__(self, loaded_executable_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableDeleteResponse(_message.Message):
    __slots__ = ("future_handle",)
    FUTURE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    future_handle: int
    def __init__(self, future_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableIsDeletedRequest(_message.Message):
    __slots__ = ("loaded_executable_handle",)
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    def __init__(self, loaded_executable_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableIsDeletedResponse(_message.Message):
    __slots__ = ("is_deleted",)
    IS_DELETED_FIELD_NUMBER: _ClassVar[int]
    is_deleted: bool
    def __init__(self, is_deleted: bool = ...) -> None: ...

class LoadedExecutableDeleteOptions(_message.Message):
    __slots__ = ("deletion_stream_id",)
    DELETION_STREAM_ID_FIELD_NUMBER: _ClassVar[int]
    deletion_stream_id: int
    def __init__(self, deletion_stream_id: _Optional[int] = ...) -> None: ...

class LoadedExecutableDestructRequest(_message.Message):
    __slots__ = ("loaded_executable_handle", "delete_options")
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    DELETE_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    delete_options: LoadedExecutableDeleteOptions
    def __init__(self, loaded_executable_handle: _Optional[int] = ..., delete_options: _Optional[_Union[LoadedExecutableDeleteOptions, _Mapping]] = ...) -> None: ...

class LoadedExecutableDestructResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class LoadedExecutableMpmdMetadataRequest(_message.Message):
    __slots__ = ("mpmd_loaded_executable_handle",)
    MPMD_LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    mpmd_loaded_executable_handle: int
    def __init__(self, mpmd_loaded_executable_handle: _Optional[int] = ...) -> None: ...

class LoadedExecutableMpmdCostAnalysisRequest(_message.Message):
    __slots__ = ("loaded_executable_handle",)
    LOADED_EXECUTABLE_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_executable_handle: int
    def __init__(self, loaded_executable_handle: _Optional[int] = ...) -> None: ...

class LoadedHostCallbackPollRequest(_message.Message):
    __slots__ = ("loaded_host_callback_handle", "operand_host_buffer_handle")
    LOADED_HOST_CALLBACK_HANDLE_FIELD_NUMBER: _ClassVar[int]
    OPERAND_HOST_BUFFER_HANDLE_FIELD_NUMBER: _ClassVar[int]
    loaded_host_callback_handle: int
    operand_host_buffer_handle: int
    def __init__(self, loaded_host_callback_handle: _Optional[int] = ..., operand_host_buffer_handle: _Optional[int] = ...) -> None: ...

class LoadedHostCallbackPollResponse(_message.Message):
    __slots__ = ("host_callback_execution_handle",)
    HOST_CALLBACK_EXECUTION_HANDLE_FIELD_NUMBER: _ClassVar[int]
    host_callback_execution_handle: int
    def __init__(self, host_callback_execution_handle: _Optional[int] = ...) -> None: ...

class LoadedHostCallbackReturnRequest(_message.Message):
    __slots__ = ("host_callback_execution_handle", "error", "result_host_buffer_handle")
    HOST_CALLBACK_EXECUTION_HANDLE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RESULT_HOST_BUFFER_HANDLE_FIELD_NUMBER: _ClassVar[int]
    host_callback_execution_handle: int
    error: _values_pb2.Status
    result_host_buffer_handle: int
    def __init__(self, host_callback_execution_handle: _Optional[int] = ..., error: _Optional[_Union[_values_pb2.Status, _Mapping]] = ..., result_host_buffer_handle: _Optional[int] = ...) -> None: ...

class LoadedHostCallbackReturnResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
