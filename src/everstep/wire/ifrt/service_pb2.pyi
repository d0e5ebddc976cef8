from everstep.wire.ifrt import values_pb2 as _values_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Version(_message.Message):
    __slots__ = ("protocol_version", "ifrt_serdes_version_number")
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    IFRT_SERDES_VERSION_NUMBER_FIELD_NUMBER: _ClassVar[int]
    protocol_version: int
    ifrt_serdes_version_number: int
    def __init__(self, protocol_version: _Optional[int] = ..., ifrt_serdes_version_number: _Optional[int] = ...) -> None: ...

class GetVersionRequest(_message.Message):
    __slots__ = ("min_version", "max_version")
    MIN_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_VERSION_FIELD_NUMBER: _ClassVar[int]
    min_version: Version
    max_version: Version
    def __init__(self, min_version: _Optional[_Union[Version, _Mapping]] = ..., max_version: _Optional[_Union[Version, _Mapping]] = ...) -> None: ...

class GetVersionResponse(_message.Message):
    __slots__ = ("version",)
    VERSION_FIELD_NUMBER: _ClassVar[int]
    version: Version
    def __init__(self, version: _Optional[_Union[Version, _Mapping]] = ...) -> None: ...

class SessionMetadata(_message.Message):
    __slots__ = ("version", "initialization_data")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    INITIALIZATION_DATA_FIELD_NUMBER: _ClassVar[int]
    version: Version
    initialization_data: _values_pb2.AttributeMap
    def __init__(self, version: _Optional[_Union[Version, _Mapping]] = ..., initialization_data: _Optional[_Union[_values_pb2.AttributeMap, _Mapping]] = ...) -> None: ...

class HostBufferStoreMetadata(_message.Message):
    __slots__ = ("session_id", "handle", "buffer_size")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    BUFFER_SIZE_FIELD_NUMBER: _ClassVar[int]
    session_id: int
    handle: int
    buffer_size: int
    def __init__(self, session_id: _Optional[int] = ..., handle: _Optional[int] = ..., buffer_size: _Optional[int] = ...) -> None: ...

class HostBufferStoreRequest(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class HostBufferStoreResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HostBufferReadFromDiskRequest(_message.Message):
    __slots__ = ("metadata",)
    METADATA_FIELD_NUMBER: _ClassVar[int]
    metadata: HostBufferStoreMetadata
    def __init__(self, metadata: _Optional[_Union[HostBufferStoreMetadata, _Mapping]] = ...) -> None: ...

class HostBufferReadFromDiskResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HostBufferLookupRequest(_message.Message):
    __slots__ = ("session_id", "handle")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    session_id: int
    handle: int
    def __init__(self, session_id: _Optional[int] = ..., handle: _Optional[int] = ...) -> None: ...

class HostBufferLookupResponse(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class HostBufferDeleteRequest(_message.Message):
    __slots__ = ("session_id", "handle")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    HANDLE_FIELD_NUMBER: _ClassVar[int]
    session_id: int
    handle: int
    def __init__(self, session_id: _Optional[int] = ..., handle: _Optional[int] = ...) -> None: ...

class HostBufferDeleteResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
