from everstep.wire import channel_pb2 as _channel_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class KillRequest(_message.Message):
    __slots__ = ("worker", "signal")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    worker: str
    signal: int
    def __init__(self, worker: _Optional[str] = ..., signal: _Optional[int] = ...) -> None: ...

class KillReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class EventsRequest(_message.Message):
    __slots__ = ("after", "follow")
    AFTER_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    after: int
    follow: bool
    def __init__(self, after: _Optional[int] = ..., follow: bool = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

class FromProgram(_message.Message):
    __slots__ = ("register", "result")
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    register: Register
    result: Result
    def __init__(self, register: _Optional[_Union[Register, _Mapping]] = ..., result: _Optional[_Union[Result, _Mapping]] = ...) -> None: ...

class Register(_message.Message):
    __slots__ = ("uuid",)
    UUID_FIELD_NUMBER: _ClassVar[int]
    uuid: str
    def __init__(self, uuid: _Optional[str] = ...) -> None: ...

class ToProgram(_message.Message):
    __slots__ = ("registered", "call")
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    registered: Registered
    call: Call
    def __init__(self, registered: _Optional[_Union[Registered, _Mapping]] = ..., call: _Optional[_Union[Call, _Mapping]] = ...) -> None: ...

class Registered(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Call(_message.Message):
    __slots__ = ("call", "callback", "operands")
    CALL_FIELD_NUMBER: _ClassVar[int]
    CALLBACK_FIELD_NUMBER: _ClassVar[int]
    OPERANDS_FIELD_NUMBER: _ClassVar[int]
    call: int
    callback: str
    operands: _containers.RepeatedCompositeFieldContainer[_channel_pb2.HostValue]
    def __init__(self, call: _Optional[int] = ..., callback: _Optional[str] = ..., operands: _Optional[_Iterable[_Union[_channel_pb2.HostValue, _Mapping]]] = ...) -> None: ...

class Result(_message.Message):
    __slots__ = ("call", "values", "error")
    CALL_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    call: int
    values: _containers.RepeatedCompositeFieldContainer[_channel_pb2.HostValue]
    error: _channel_pb2.Error
    def __init__(self, call: _Optional[int] = ..., values: _Optional[_Iterable[_Union[_channel_pb2.HostValue, _Mapping]]] = ..., error: _Optional[_Union[_channel_pb2.Error, _Mapping]] = ...) -> None: ...
