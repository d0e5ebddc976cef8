"""Our .proto files against the schemas embedded in the installed jaxlib: same names, numbers, types, labels."""

from __future__ import annotations

import pytest
from frontend import schemas
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

from everstep.frontend import service
from everstep.wire.ifrt import requests_pb2, service_pb2, shardings_pb2, values_pb2, xla_pb2

Field = descriptor_pb2.FieldDescriptorProto

_SERVICE = "xla/python/ifrt_proxy/common/grpc_ifrt_service.proto"
_REQUESTS = "xla/python/ifrt_proxy/common/ifrt_service.proto"
_TYPES = "xla/python/ifrt_proxy/common/types.proto"
_STATUS = "xla/tsl/protobuf/status.proto"
_XLA = "xla/xla_data.proto"
_DEBUG = "xla/xla.proto"
_OPTIONS = "xla/pjrt/proto/compile_options.proto"
_SHARDINGS = "xla/python/ifrt/sharding_serdes.proto"
_SHAPE = "xla/python/ifrt/shape.proto"
_REMAP = "xla/python/ifrt/remap_plan.proto"

# Our message: the file of jaxlib's, and its full name. Messages of requests.proto and service.proto that are not named here have
# jaxlib's name in the package of the protocol.
_THEIRS = {
    "Serialized": ("xla/python/ifrt/serdes.proto", "xla.ifrt.Serialized"),
    "DType": ("xla/python/ifrt/dtype.proto", "xla.ifrt.DTypeProto"),
    "Shape": (_SHAPE, "xla.ifrt.ShapeProto"),
    "BoundedDynamicShapeTag": (_SHAPE, "xla.ifrt.BoundedDynamicShapeTagProto"),
    "DynamicShape": (_SHAPE, "xla.ifrt.DynamicShapeProto"),
    "Sharding": ("xla/python/ifrt/sharding.proto", "xla.ifrt.ShardingProto"),
    "Layout": ("xla/python/ifrt/layout.proto", "xla.ifrt.LayoutProto"),
    "ArraySpec": ("xla/python/ifrt/array_spec.proto", "xla.ifrt.ArraySpecProto"),
    "ByteStrides": (_TYPES, "xla.ifrt.proto.ByteStrides"),
    "StringArrayContents": ("xla/python/ifrt_proxy/common/array_util.proto", "xla.ifrt.proto.StringArrayContents"),
    "AttributeMap": ("xla/python/ifrt/attribute_map.proto", "xla.ifrt.AttributeMapProto"),
    "Status": (_STATUS, "tensorflow.StatusProto"),
    "DeviceList": ("xla/python/ifrt/device.proto", "xla.ifrt.DeviceListProto"),
    "SingleDeviceSharding": (_SHARDINGS, "xla.ifrt.SingleDeviceShardingProto"),
    "OpaqueSharding": (_SHARDINGS, "xla.ifrt.OpaqueShardingProto"),
    "ConcreteSharding": (_SHARDINGS, "xla.ifrt.ConcreteShardingProto"),
    "ConcreteEvenSharding": (_SHARDINGS, "xla.ifrt.ConcreteEvenShardingProto"),
    "HloSharding": ("xla/python/pjrt_ifrt/xla_sharding.proto", "xla.ifrt.HloShardingProto"),
    "PjRtLayout": ("xla/python/pjrt_ifrt/pjrt_layout_serdes.proto", "xla.ifrt.PjRtLayoutProto"),
    "XlaLayout": (_XLA, "xla.LayoutProto"),
    "CompactLayout": ("xla/python/ifrt/layout_serdes.proto", "xla.ifrt.CompactLayoutProto"),
    "xla.OpSharding": (_XLA, "xla.OpSharding"),
    "xla.NamedSharding": (_XLA, "xla.NamedShardingProto"),
    "xla.Mesh": (_XLA, "xla.MeshProto"),
    "xla.Mesh.Axis": (_XLA, "xla.MeshProto.MeshAxis"),
    "xla.AxisRef": (_XLA, "xla.AxisRefProto"),
    "xla.DeviceAssignment": (_XLA, "xla.DeviceAssignmentProto"),
    "xla.DebugOptions": (_DEBUG, "xla.DebugOptions"),
    "xla.OptionOverride": (_OPTIONS, "xla.OptionOverrideProto"),
    "xla.ExecutableBuildOptions": (_OPTIONS, "xla.ExecutableBuildOptionsProto"),
    "xla.CompileOptions": (_OPTIONS, "xla.CompileOptionsProto"),
    "RemapPlan": (_REMAP, "xla.ifrt.RemapPlanProto"),
    "RemapPlan.Mapping": (_REMAP, "xla.ifrt.RemapPlanProto.MappingProto"),
    "XlaCompileOptions": ("xla/python/pjrt_ifrt/xla_compiler.proto", "xla.ifrt.XlaCompileOptionsProto"),
    "ExecuteOptions": ("xla/python/ifrt/execute_options.proto", "xla.ifrt.ExecuteOptionsProto"),
    "LoadedExecutableDeleteOptions": (_REQUESTS, "xla.ifrt.proxy.LoadedExecutableDeleteOptionsProto"),
    "Version": (_REQUESTS, "xla.ifrt.proxy.IfrtProxyVersion"),
    "SessionMetadata": (_SERVICE, "xla.ifrt.proxy.GrpcIfrtSessionMetadata"),
}

# Messages that we only pass on, as the bytes that they are on the wire; and a number that we keep as a number.
_AS_BYTES = {
    ("HloSharding", "xla_op_sharding"),
    ("XlaCompileOptions", "compile_options"),
    ("LoadedExecutableMetadataResponse.ShardingList", "shardings"),
    ("LoadedExecutableMetadataResponse.LayoutList", "layouts"),
    ("LoadedExecutableMetadataResponse", "compiled_memory_stats"),
}
_AS_NUMBER = {("Status", "code")}

# What the oldest jaxlib that we support lacks.
_NEWER_FIELDS = {("XlaCompileOptions", "outputs_bundle_slice_sizes"), ("XlaCompileOptions", "version_number")}
_NEWER_VALUES = {"KIND_F6E2M3FN", "KIND_F6E3M2FN"}

# Messages of which we know a part; of all others we must know every field.
_PARTLY_KNOWN = {
    "xla.OpSharding",
    "xla.NamedSharding",
    "xla.DebugOptions",
    "xla.OptionOverride",
    "xla.ExecutableBuildOptions",
    "xla.CompileOptions",
    "XlaLayout",
    "IfrtResponse",  # no responses of programs made of several programs
    "RequestMetadata",
    "CompileResponse",
    "LoadedExecutableMetadataResponse",
}


def _ours(file: FileDescriptor) -> dict[str, descriptor_pb2.DescriptorProto]:
    """Our messages by their names in everstep.ifrt, nested ones too, without the entries of maps."""
    schema = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(schema)
    prefix = schema.package.removeprefix("everstep.ifrt").lstrip(".")
    found: dict[str, descriptor_pb2.DescriptorProto] = {}

    def walk(path: str, message: descriptor_pb2.DescriptorProto) -> None:
        name = f"{path}.{message.name}" if path else message.name
        found[name] = message
        for nested in message.nested_type:
            walk(name, nested)

    for message in schema.message_type:
        walk(prefix, message)
    return found


_OURS = {
    name: message
    for module in (values_pb2, shardings_pb2, xla_pb2, requests_pb2, service_pb2)
    for name, message in _ours(module.DESCRIPTOR).items()
}


def _their_name(name: str) -> tuple[str, str]:
    """The file and the full name of jaxlib's message for one of ours."""
    if name in _THEIRS:
        return _THEIRS[name]
    outer, _, inner = name.rpartition(".")
    if outer:
        file, theirs = _their_name(outer)
        return file, f"{theirs}.{inner}"
    for file, prefix in ((_REQUESTS, "xla.ifrt.proxy."), (_SERVICE, "xla.ifrt.proxy.Grpc")):
        if prefix + name in schemas.messages(file):
            return file, prefix + name
    raise AssertionError(f"nobody knows what {name} is in jaxlib")


def _oneof(message: descriptor_pb2.DescriptorProto, field: Field) -> str:
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return message.oneof_decl[field.oneof_index].name


@pytest.mark.parametrize("name", _OURS)
def test_every_message_is_what_jaxlib_has(name: str) -> None:
    ours = _OURS[name]
    file, their_name = _their_name(name)
    theirs = schemas.messages(file)[their_name]
    fields = {field.number: field for field in theirs.field}
    for field in ours.field:
        if field.number not in fields and (name, field.name) in _NEWER_FIELDS:
            continue
        other = fields.pop(field.number)
        where = f"{name}.{field.name}"
        assert other.name == field.name, where
        assert other.label == field.label, where
        assert other.proto3_optional == field.proto3_optional, where
        assert _oneof(theirs, other) == _oneof(ours, field), where
        if (name, field.name) in _AS_BYTES:
            assert (field.type, other.type) == (Field.TYPE_BYTES, Field.TYPE_MESSAGE), where
        elif (name, field.name) in _AS_NUMBER:
            assert (field.type, other.type) == (Field.TYPE_INT32, Field.TYPE_ENUM), where
        else:
            assert other.type == field.type, where
        if field.type == Field.TYPE_MESSAGE:
            assert "." + _their_name(field.type_name.removeprefix(".everstep.ifrt."))[1] == other.type_name, where
    if name not in _PARTLY_KNOWN:
        assert not [field.name for field in fields.values()], f"jaxlib's {their_name} has more fields"


@pytest.mark.parametrize(
    ("ours", "file", "theirs"),
    [
        (values_pb2.DType.Kind, "xla/python/ifrt/dtype.proto", "xla.ifrt.DTypeProto.Kind"),
        (values_pb2.ArrayCopySemantics, _TYPES, "xla.ifrt.proto.ArrayCopySemantics"),
        (values_pb2.SingleDeviceShardSemantics, _TYPES, "xla.ifrt.proto.SingleDeviceShardSemantics"),
        (xla_pb2.OpSharding.Type, _XLA, "xla.OpSharding.Type"),
    ],
)
def test_every_enum_is_what_jaxlib_has(ours: object, file: str, theirs: str) -> None:
    known = schemas.enums(file)[theirs]
    assert {name: number for name, number in ours.items() if name in known or name not in _NEWER_VALUES} == known  # type: ignore[attr-defined]


def test_the_service_has_every_method() -> None:
    (theirs,) = schemas.file(_SERVICE).service
    assert f"xla.ifrt.proxy.{theirs.name}" == service.SERVICE
    handlers = service.method_handlers(None)  # type: ignore[arg-type]  # nothing is called
    assert {method.name: (method.client_streaming, method.server_streaming) for method in theirs.method} == {
        name: (handler.request_streaming, handler.response_streaming) for name, handler in handlers.items()
    }
