from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Error(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class Source(_message.Message):
    __slots__ = ("inline", "path", "bulk", "size")
    INLINE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    inline: bytes
    path: str
    bulk: Bulk
    size: int
    def __init__(self, inline: _Optional[bytes] = ..., path: _Optional[str] = ..., bulk: _Optional[_Union[Bulk, _Mapping]] = ..., size: _Optional[int] = ...) -> None: ...

class Bulk(_message.Message):
    __slots__ = ("address", "key")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    address: str
    key: str
    def __init__(self, address: _Optional[str] = ..., key: _Optional[str] = ...) -> None: ...

class Box(_message.Message):
    __slots__ = ("start", "size")
    START_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    start: _containers.RepeatedScalarFieldContainer[int]
    size: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, start: _Optional[_Iterable[int]] = ..., size: _Optional[_Iterable[int]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("version", "release", "token", "name", "slice", "worker", "incarnation", "pid", "host", "bulk_address", "shares_directory", "devices", "jaxlib", "platform_version", "spare")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SLICE_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    BULK_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    SHARES_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    JAXLIB_FIELD_NUMBER: _ClassVar[int]
    PLATFORM_VERSION_FIELD_NUMBER: _ClassVar[int]
    SPARE_FIELD_NUMBER: _ClassVar[int]
    version: int
    release: str
    token: str
    name: str
    slice: int
    worker: int
    incarnation: int
    pid: int
    host: str
    bulk_address: str
    shares_directory: bool
    devices: _containers.RepeatedCompositeFieldContainer[DeviceInfo]
    jaxlib: str
    platform_version: str
    spare: bool
    def __init__(self, version: _Optional[int] = ..., release: _Optional[str] = ..., token: _Optional[str] = ..., name: _Optional[str] = ..., slice: _Optional[int] = ..., worker: _Optional[int] = ..., incarnation: _Optional[int] = ..., pid: _Optional[int] = ..., host: _Optional[str] = ..., bulk_address: _Optional[str] = ..., shares_directory: bool = ..., devices: _Optional[_Iterable[_Union[DeviceInfo, _Mapping]]] = ..., jaxlib: _Optional[str] = ..., platform_version: _Optional[str] = ..., spare: bool = ...) -> None: ...

class DeviceInfo(_message.Message):
    __slots__ = ("platform", "kind", "memory_kinds", "default_memory_kind")
    PLATFORM_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KINDS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    platform: str
    kind: str
    memory_kinds: _containers.RepeatedScalarFieldContainer[str]
    default_memory_kind: str
    def __init__(self, platform: _Optional[str] = ..., kind: _Optional[str] = ..., memory_kinds: _Optional[_Iterable[str]] = ..., default_memory_kind: _Optional[str] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("version", "refused", "device_ids", "heartbeat_interval", "name", "incarnation", "grace", "patience")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    DEVICE_IDS_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    GRACE_FIELD_NUMBER: _ClassVar[int]
    PATIENCE_FIELD_NUMBER: _ClassVar[int]
    version: int
    refused: str
    device_ids: _containers.RepeatedScalarFieldContainer[int]
    heartbeat_interval: float
    name: str
    incarnation: int
    grace: float
    patience: float
    def __init__(self, version: _Optional[int] = ..., refused: _Optional[str] = ..., device_ids: _Optional[_Iterable[int]] = ..., heartbeat_interval: _Optional[float] = ..., name: _Optional[str] = ..., incarnation: _Optional[int] = ..., grace: _Optional[float] = ..., patience: _Optional[float] = ...) -> None: ...

class ToWorker(_message.Message):
    __slots__ = ("op", "welcome", "stop", "connect_world", "build_world", "break_world", "drop_world", "compile", "load", "unload", "describe", "execute", "put", "buffer_ready", "get", "assemble", "build", "bitcast", "delete", "save", "restore", "abandon", "callback_result")
    OP_FIELD_NUMBER: _ClassVar[int]
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    CONNECT_WORLD_FIELD_NUMBER: _ClassVar[int]
    BUILD_WORLD_FIELD_NUMBER: _ClassVar[int]
    BREAK_WORLD_FIELD_NUMBER: _ClassVar[int]
    DROP_WORLD_FIELD_NUMBER: _ClassVar[int]
    COMPILE_FIELD_NUMBER: _ClassVar[int]
    LOAD_FIELD_NUMBER: _ClassVar[int]
    UNLOAD_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_FIELD_NUMBER: _ClassVar[int]
    EXECUTE_FIELD_NUMBER: _ClassVar[int]
    PUT_FIELD_NUMBER: _ClassVar[int]
    BUFFER_READY_FIELD_NUMBER: _ClassVar[int]
    GET_FIELD_NUMBER: _ClassVar[int]
    ASSEMBLE_FIELD_NUMBER: _ClassVar[int]
    BUILD_FIELD_NUMBER: _ClassVar[int]
    BITCAST_FIELD_NUMBER: _ClassVar[int]
    DELETE_FIELD_NUMBER: _ClassVar[int]
    SAVE_FIELD_NUMBER: _ClassVar[int]
    RESTORE_FIELD_NUMBER: _ClassVar[int]
    ABANDON_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_RESULT_FIELD_NUMBER: _ClassVar[int]
    op: int
    welcome: Welcome
    stop: Stop
    connect_world: ConnectWorld
    build_world: BuildWorld
    break_world: BreakWorld
    drop_world: DropWorld
    compile: Compile
    load: Load
    unload: Unload
    describe: Describe
    execute: Execute
    put: Put
    buffer_ready: BufferReady
    get: Get
    assemble: Assemble
    build: Build
    bitcast: Bitcast
    delete: Delete
    save: Save
    restore: Restore
    abandon: Abandon
    callback_result: CallbackResult
    def __init__(self, op: _Optional[int] = ..., welcome: _Optional[_Union[Welcome, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., connect_world: _Optional[_Union[ConnectWorld, _Mapping]] = ..., build_world: _Optional[_Union[BuildWorld, _Mapping]] = ..., break_world: _Optional[_Union[BreakWorld, _Mapping]] = ..., drop_world: _Optional[_Union[DropWorld, _Mapping]] = ..., compile: _Optional[_Union[Compile, _Mapping]] = ..., load: _Optional[_Union[Load, _Mapping]] = ..., unload: _Optional[_Union[Unload, _Mapping]] = ..., describe: _Optional[_Union[Describe, _Mapping]] = ..., execute: _Optional[_Union[Execute, _Mapping]] = ..., put: _Optional[_Union[Put, _Mapping]] = ..., buffer_ready: _Optional[_Union[BufferReady, _Mapping]] = ..., get: _Optional[_Union[Get, _Mapping]] = ..., assemble: _Optional[_Union[Assemble, _Mapping]] = ..., build: _Optional[_Union[Build, _Mapping]] = ..., bitcast: _Optional[_Union[Bitcast, _Mapping]] = ..., delete: _Optional[_Union[Delete, _Mapping]] = ..., save: _Optional[_Union[Save, _Mapping]] = ..., restore: _Optional[_Union[Restore, _Mapping]] = ..., abandon: _Optional[_Union[Abandon, _Mapping]] = ..., callback_result: _Optional[_Union[CallbackResult, _Mapping]] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class ConnectWorld(_message.Message):
    __slots__ = ("world", "service")
    WORLD_FIELD_NUMBER: _ClassVar[int]
    SERVICE_FIELD_NUMBER: _ClassVar[int]
    world: int
    service: str
    def __init__(self, world: _Optional[int] = ..., service: _Optional[str] = ...) -> None: ...

class BuildWorld(_message.Message):
    __slots__ = ("world", "rank", "size", "devices")
    WORLD_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    world: int
    rank: int
    size: int
    devices: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, world: _Optional[int] = ..., rank: _Optional[int] = ..., size: _Optional[int] = ..., devices: _Optional[_Iterable[int]] = ...) -> None: ...

class BreakWorld(_message.Message):
    __slots__ = ("world", "endpoints", "cause")
    WORLD_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    world: int
    endpoints: _containers.RepeatedScalarFieldContainer[str]
    cause: Error
    def __init__(self, world: _Optional[int] = ..., endpoints: _Optional[_Iterable[str]] = ..., cause: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class DropWorld(_message.Message):
    __slots__ = ("world",)
    WORLD_FIELD_NUMBER: _ClassVar[int]
    world: int
    def __init__(self, world: _Optional[int] = ...) -> None: ...

class Compile(_message.Message):
    __slots__ = ("program", "world", "module", "options", "devices", "replicas", "partitions", "blob_path", "spans_workers")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    WORLD_FIELD_NUMBER: _ClassVar[int]
    MODULE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    BLOB_PATH_FIELD_NUMBER: _ClassVar[int]
    SPANS_WORKERS_FIELD_NUMBER: _ClassVar[int]
    program: int
    world: int
    module: Source
    options: bytes
    devices: _containers.RepeatedScalarFieldContainer[int]
    replicas: int
    partitions: int
    blob_path: str
    spans_workers: bool
    def __init__(self, program: _Optional[int] = ..., world: _Optional[int] = ..., module: _Optional[_Union[Source, _Mapping]] = ..., options: _Optional[bytes] = ..., devices: _Optional[_Iterable[int]] = ..., replicas: _Optional[int] = ..., partitions: _Optional[int] = ..., blob_path: _Optional[str] = ..., spans_workers: bool = ...) -> None: ...

class Load(_message.Message):
    __slots__ = ("program", "world", "blob", "options", "devices", "replicas", "partitions", "outputs", "callbacks")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    WORLD_FIELD_NUMBER: _ClassVar[int]
    BLOB_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    REPLICAS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    CALLBACKS_FIELD_NUMBER: _ClassVar[int]
    program: int
    world: int
    blob: Source
    options: bytes
    devices: _containers.RepeatedScalarFieldContainer[int]
    replicas: int
    partitions: int
    outputs: _containers.RepeatedCompositeFieldContainer[ShardInfo]
    callbacks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, program: _Optional[int] = ..., world: _Optional[int] = ..., blob: _Optional[_Union[Source, _Mapping]] = ..., options: _Optional[bytes] = ..., devices: _Optional[_Iterable[int]] = ..., replicas: _Optional[int] = ..., partitions: _Optional[int] = ..., outputs: _Optional[_Iterable[_Union[ShardInfo, _Mapping]]] = ..., callbacks: _Optional[_Iterable[str]] = ...) -> None: ...

class ShardInfo(_message.Message):
    __slots__ = ("dtype", "shape", "memory_kind")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    memory_kind: str
    def __init__(self, dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., memory_kind: _Optional[str] = ...) -> None: ...

class Unload(_message.Message):
    __slots__ = ("programs",)
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    programs: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, programs: _Optional[_Iterable[int]] = ...) -> None: ...

class Describe(_message.Message):
    __slots__ = ("program", "cost_analysis", "hlo_text")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    COST_ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    HLO_TEXT_FIELD_NUMBER: _ClassVar[int]
    program: int
    cost_analysis: bool
    hlo_text: bool
    def __init__(self, program: _Optional[int] = ..., cost_analysis: bool = ..., hlo_text: bool = ...) -> None: ...

class Execute(_message.Message):
    __slots__ = ("program", "arguments", "results", "keep_arguments", "launch")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    KEEP_ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    program: int
    arguments: _containers.RepeatedScalarFieldContainer[int]
    results: _containers.RepeatedScalarFieldContainer[int]
    keep_arguments: _containers.RepeatedScalarFieldContainer[int]
    launch: int
    def __init__(self, program: _Optional[int] = ..., arguments: _Optional[_Iterable[int]] = ..., results: _Optional[_Iterable[int]] = ..., keep_arguments: _Optional[_Iterable[int]] = ..., launch: _Optional[int] = ...) -> None: ...

class Put(_message.Message):
    __slots__ = ("array", "dtype", "shape", "memory_kind", "shards")
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    array: int
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    memory_kind: str
    shards: _containers.RepeatedCompositeFieldContainer[HostShard]
    def __init__(self, array: _Optional[int] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., memory_kind: _Optional[str] = ..., shards: _Optional[_Iterable[_Union[HostShard, _Mapping]]] = ...) -> None: ...

class HostShard(_message.Message):
    __slots__ = ("devices", "buffer", "data", "byte_strides", "has_strides")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    BYTE_STRIDES_FIELD_NUMBER: _ClassVar[int]
    HAS_STRIDES_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedScalarFieldContainer[int]
    buffer: int
    data: Source
    byte_strides: _containers.RepeatedScalarFieldContainer[int]
    has_strides: bool
    def __init__(self, devices: _Optional[_Iterable[int]] = ..., buffer: _Optional[int] = ..., data: _Optional[_Union[Source, _Mapping]] = ..., byte_strides: _Optional[_Iterable[int]] = ..., has_strides: bool = ...) -> None: ...

class BufferReady(_message.Message):
    __slots__ = ("buffer", "data", "error")
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    buffer: int
    data: Source
    error: Error
    def __init__(self, buffer: _Optional[int] = ..., data: _Optional[_Union[Source, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Get(_message.Message):
    __slots__ = ("array", "buffer", "size", "path", "bulk", "shape", "byte_strides", "pieces")
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    BUFFER_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    BULK_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    BYTE_STRIDES_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    array: int
    buffer: int
    size: int
    path: str
    bulk: Bulk
    shape: _containers.RepeatedScalarFieldContainer[int]
    byte_strides: _containers.RepeatedScalarFieldContainer[int]
    pieces: _containers.RepeatedCompositeFieldContainer[GetPiece]
    def __init__(self, array: _Optional[int] = ..., buffer: _Optional[int] = ..., size: _Optional[int] = ..., path: _Optional[str] = ..., bulk: _Optional[_Union[Bulk, _Mapping]] = ..., shape: _Optional[_Iterable[int]] = ..., byte_strides: _Optional[_Iterable[int]] = ..., pieces: _Optional[_Iterable[_Union[GetPiece, _Mapping]]] = ...) -> None: ...

class GetPiece(_message.Message):
    __slots__ = ("device", "box")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    device: int
    box: Box
    def __init__(self, device: _Optional[int] = ..., box: _Optional[_Union[Box, _Mapping]] = ...) -> None: ...

class Assemble(_message.Message):
    __slots__ = ("array", "shards", "consume")
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    CONSUME_FIELD_NUMBER: _ClassVar[int]
    array: int
    shards: _containers.RepeatedCompositeFieldContainer[ShardRef]
    consume: bool
    def __init__(self, array: _Optional[int] = ..., shards: _Optional[_Iterable[_Union[ShardRef, _Mapping]]] = ..., consume: bool = ...) -> None: ...

class ShardRef(_message.Message):
    __slots__ = ("array", "device")
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    array: int
    device: int
    def __init__(self, array: _Optional[int] = ..., device: _Optional[int] = ...) -> None: ...

class Build(_message.Message):
    __slots__ = ("array", "dtype", "memory_kind", "shards")
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    SHARDS_FIELD_NUMBER: _ClassVar[int]
    array: int
    dtype: str
    memory_kind: str
    shards: _containers.RepeatedCompositeFieldContainer[BuildShard]
    def __init__(self, array: _Optional[int] = ..., dtype: _Optional[str] = ..., memory_kind: _Optional[str] = ..., shards: _Optional[_Iterable[_Union[BuildShard, _Mapping]]] = ...) -> None: ...

class BuildShard(_message.Message):
    __slots__ = ("device", "shape", "pieces")
    DEVICE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    device: int
    shape: _containers.RepeatedScalarFieldContainer[int]
    pieces: _containers.RepeatedCompositeFieldContainer[Piece]
    def __init__(self, device: _Optional[int] = ..., shape: _Optional[_Iterable[int]] = ..., pieces: _Optional[_Iterable[_Union[Piece, _Mapping]]] = ...) -> None: ...

class Piece(_message.Message):
    __slots__ = ("bulk_address", "box", "to")
    FROM_FIELD_NUMBER: _ClassVar[int]
    BULK_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    BOX_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    bulk_address: str
    box: Box
    to: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, bulk_address: _Optional[str] = ..., box: _Optional[_Union[Box, _Mapping]] = ..., to: _Optional[_Iterable[int]] = ..., **kwargs) -> None: ...

class Bitcast(_message.Message):
    __slots__ = ("array", "source", "dtype", "shape")
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    array: int
    source: int
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, array: _Optional[int] = ..., source: _Optional[int] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ...) -> None: ...

class Delete(_message.Message):
    __slots__ = ("arrays",)
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    arrays: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, arrays: _Optional[_Iterable[int]] = ...) -> None: ...

class Save(_message.Message):
    __slots__ = ("arrays",)
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    arrays: _containers.RepeatedCompositeFieldContainer[StoredArray]
    def __init__(self, arrays: _Optional[_Iterable[_Union[StoredArray, _Mapping]]] = ...) -> None: ...

class Restore(_message.Message):
    __slots__ = ("arrays",)
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    arrays: _containers.RepeatedCompositeFieldContainer[StoredArray]
    def __init__(self, arrays: _Optional[_Iterable[_Union[StoredArray, _Mapping]]] = ...) -> None: ...

class StoredArray(_message.Message):
    __slots__ = ("location", "name", "dtype", "shape", "tile", "array", "memory_kind", "pieces")
    LOCATION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    TILE_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    location: str
    name: str
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    tile: _containers.RepeatedScalarFieldContainer[int]
    array: int
    memory_kind: str
    pieces: _containers.RepeatedCompositeFieldContainer[GetPiece]
    def __init__(self, location: _Optional[str] = ..., name: _Optional[str] = ..., dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., tile: _Optional[_Iterable[int]] = ..., array: _Optional[int] = ..., memory_kind: _Optional[str] = ..., pieces: _Optional[_Iterable[_Union[GetPiece, _Mapping]]] = ...) -> None: ...

class Abandon(_message.Message):
    __slots__ = ("operation",)
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    operation: int
    def __init__(self, operation: _Optional[int] = ...) -> None: ...

class CallbackResult(_message.Message):
    __slots__ = ("call", "values", "error")
    CALL_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    call: int
    values: _containers.RepeatedCompositeFieldContainer[HostValue]
    error: Error
    def __init__(self, call: _Optional[int] = ..., values: _Optional[_Iterable[_Union[HostValue, _Mapping]]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class HostValue(_message.Message):
    __slots__ = ("dtype", "shape", "data")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    data: bytes
    def __init__(self, dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., data: _Optional[bytes] = ...) -> None: ...

class ToHead(_message.Message):
    __slots__ = ("hello", "heartbeat", "notice", "done", "world_connected", "compiled", "blob_ready", "described", "got", "callback_call")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    NOTICE_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    WORLD_CONNECTED_FIELD_NUMBER: _ClassVar[int]
    COMPILED_FIELD_NUMBER: _ClassVar[int]
    BLOB_READY_FIELD_NUMBER: _ClassVar[int]
    DESCRIBED_FIELD_NUMBER: _ClassVar[int]
    GOT_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_CALL_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    heartbeat: Heartbeat
    notice: Notice
    done: Done
    world_connected: WorldConnected
    compiled: Compiled
    blob_ready: BlobReady
    described: Described
    got: Got
    callback_call: CallbackCall
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ..., notice: _Optional[_Union[Notice, _Mapping]] = ..., done: _Optional[_Union[Done, _Mapping]] = ..., world_connected: _Optional[_Union[WorldConnected, _Mapping]] = ..., compiled: _Optional[_Union[Compiled, _Mapping]] = ..., blob_ready: _Optional[_Union[BlobReady, _Mapping]] = ..., described: _Optional[_Union[Described, _Mapping]] = ..., got: _Optional[_Union[Got, _Mapping]] = ..., callback_call: _Optional[_Union[CallbackCall, _Mapping]] = ...) -> None: ...

class Notice(_message.Message):
    __slots__ = ("reason", "seconds")
    REASON_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    reason: str
    seconds: float
    def __init__(self, reason: _Optional[str] = ..., seconds: _Optional[float] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("arrays", "bytes", "programs", "started")
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    PROGRAMS_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    arrays: int
    bytes: int
    programs: int
    started: int
    def __init__(self, arrays: _Optional[int] = ..., bytes: _Optional[int] = ..., programs: _Optional[int] = ..., started: _Optional[int] = ...) -> None: ...

class Done(_message.Message):
    __slots__ = ("op", "error", "running")
    OP_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    op: int
    error: Error
    running: bool
    def __init__(self, op: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., running: bool = ...) -> None: ...

class WorldConnected(_message.Message):
    __slots__ = ("op", "endpoints", "error")
    OP_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    op: int
    endpoints: _containers.RepeatedScalarFieldContainer[str]
    error: Error
    def __init__(self, op: _Optional[int] = ..., endpoints: _Optional[_Iterable[str]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Compiled(_message.Message):
    __slots__ = ("op", "error", "name", "fingerprint", "parameter_shardings", "has_parameter_shardings", "output_shardings", "has_output_shardings", "parameter_layouts", "output_layouts", "layouts_error", "outputs", "donated", "memory_stats", "memory_stats_error", "code_size", "callbacks")
    OP_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    HAS_PARAMETER_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    HAS_OUTPUT_SHARDINGS_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_LAYOUTS_FIELD_NUMBER: _ClassVar[int]
    LAYOUTS_ERROR_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    DONATED_FIELD_NUMBER: _ClassVar[int]
    MEMORY_STATS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_STATS_ERROR_FIELD_NUMBER: _ClassVar[int]
    CODE_SIZE_FIELD_NUMBER: _ClassVar[int]
    CALLBACKS_FIELD_NUMBER: _ClassVar[int]
    op: int
    error: Error
    name: str
    fingerprint: bytes
    parameter_shardings: _containers.RepeatedScalarFieldContainer[bytes]
    has_parameter_shardings: bool
    output_shardings: _containers.RepeatedScalarFieldContainer[bytes]
    has_output_shardings: bool
    parameter_layouts: _containers.RepeatedScalarFieldContainer[bytes]
    output_layouts: _containers.RepeatedScalarFieldContainer[bytes]
    layouts_error: Error
    outputs: _containers.RepeatedCompositeFieldContainer[Output]
    donated: _containers.RepeatedScalarFieldContainer[int]
    memory_stats: bytes
    memory_stats_error: Error
    code_size: int
    callbacks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, op: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., name: _Optional[str] = ..., fingerprint: _Optional[bytes] = ..., parameter_shardings: _Optional[_Iterable[bytes]] = ..., has_parameter_shardings: bool = ..., output_shardings: _Optional[_Iterable[bytes]] = ..., has_output_shardings: bool = ..., parameter_layouts: _Optional[_Iterable[bytes]] = ..., output_layouts: _Optional[_Iterable[bytes]] = ..., layouts_error: _Optional[_Union[Error, _Mapping]] = ..., outputs: _Optional[_Iterable[_Union[Output, _Mapping]]] = ..., donated: _Optional[_Iterable[int]] = ..., memory_stats: _Optional[bytes] = ..., memory_stats_error: _Optional[_Union[Error, _Mapping]] = ..., code_size: _Optional[int] = ..., callbacks: _Optional[_Iterable[str]] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("dtype", "shape", "shard_shape", "memory_kind")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    SHARD_SHAPE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_KIND_FIELD_NUMBER: _ClassVar[int]
    dtype: str
    shape: _containers.RepeatedScalarFieldContainer[int]
    shard_shape: _containers.RepeatedScalarFieldContainer[int]
    memory_kind: str
    def __init__(self, dtype: _Optional[str] = ..., shape: _Optional[_Iterable[int]] = ..., shard_shape: _Optional[_Iterable[int]] = ..., memory_kind: _Optional[str] = ...) -> None: ...

class BlobReady(_message.Message):
    __slots__ = ("program", "size", "error")
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    program: int
    size: int
    error: Error
    def __init__(self, program: _Optional[int] = ..., size: _Optional[int] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Described(_message.Message):
    __slots__ = ("op", "cost_analysis", "cost_analysis_error", "hlo_text", "error")
    OP_FIELD_NUMBER: _ClassVar[int]
    COST_ANALYSIS_FIELD_NUMBER: _ClassVar[int]
    COST_ANALYSIS_ERROR_FIELD_NUMBER: _ClassVar[int]
    HLO_TEXT_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    op: int
    cost_analysis: str
    cost_analysis_error: Error
    hlo_text: str
    error: Error
    def __init__(self, op: _Optional[int] = ..., cost_analysis: _Optional[str] = ..., cost_analysis_error: _Optional[_Union[Error, _Mapping]] = ..., hlo_text: _Optional[str] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Got(_message.Message):
    __slots__ = ("op", "data", "error")
    OP_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    op: int
    data: bytes
    error: Error
    def __init__(self, op: _Optional[int] = ..., data: _Optional[bytes] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class CallbackCall(_message.Message):
    __slots__ = ("call", "callback", "operands")
    CALL_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    OPERANDS_FIELD_NUMBER: _ClassVar[int]
    call: int
    callback: str
    operands: _containers.RepeatedCompositeFieldContainer[HostValue]
    def __init__(self, call: _Optional[int] = ..., callback: _Optional[str] = ..., operands: _Optional[_Iterable[_Union[HostValue, _Mapping]]] = ...) -> None: ...
