"""Single values, both ways."""

from __future__ import annotations

import jax
import ml_dtypes
import numpy as np
import pytest
from frontend.doubles import topology
from frontend.harness import serialized, single, tiled
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st
from jaxlib import xla_client

from everstep.frontend import chunks
from everstep.frontend.codec import attributes, dtypes, layouts, shardings, status
from everstep.head.specs import Sharding
from everstep.wire import dtypes as names
from everstep.wire.errors import Code, Failure
from everstep.wire.ifrt import service_pb2, shardings_pb2, xla_pb2
from everstep.wire.ifrt import values_pb2 as values

SPECS = shardings.Specs(topology(2, 2).devices)
RESERVED = ("DATA_LOSS", "DEADLINE_EXCEEDED", "NOT_FOUND", "INTERNAL")


# ---------------------------------------------------------------------- statuses


@given(st.sampled_from(Code), st.text(), st.sampled_from((*RESERVED, "")), st.text())
def test_only_data_loss_carries_the_words_that_elastic_loops_look_for(code: Code, before: str, word: str, after: str) -> None:
    message = status.encode(Failure(code, f"{before} {word} {after}"))
    told = f"{Code(message.code).name}: {message.message}"
    if code is Code.DATA_LOSS:
        assert told.startswith("DATA_LOSS: ")
    else:
        assert not any(f" {reserved} " in f" {told} ".replace(":", " ") for reserved in RESERVED)


def test_statuses_of_the_program_are_read() -> None:
    assert status.decode(values.Status(code=10, message="so")).code is Code.ABORTED
    assert status.decode(values.Status(code=99)).code is Code.UNKNOWN
    assert status.decode(values.Status()).code is Code.UNKNOWN


# ---------------------------------------------------------------------- element types


def test_every_kind_of_element_is_known_or_refused() -> None:
    for name, kind in values.DType.Kind.items():
        message = values.DType(kind=kind)
        if name in ("KIND_UNSPECIFIED", "KIND_OPAQUE"):
            with pytest.raises(Failure):
                dtypes.decode(message)
        elif name not in ("KIND_S1", "KIND_U1") or hasattr(ml_dtypes, "int1"):
            assert dtypes.encode(dtypes.decode(message)) == message
            assert f"KIND_{dtypes.decode(message).upper()}" == name
    with pytest.raises(Failure):
        dtypes.decode(values.DType(kind=1234))  # type: ignore[arg-type]


# ---------------------------------------------------------------------- layouts


@pytest.mark.parametrize("dtype", ["f32", "s4", "u2", "f4e2m1fn", "pred", "bf16", "c128", "f8e5m2"])
@pytest.mark.parametrize("rank", [0, 1, 3])
def test_default_layouts_are_those_of_the_cpu_backend(dtype: str, rank: int) -> None:
    device = jax.devices("cpu")[0]
    theirs = str(device.client.get_default_layout(names.to_numpy(dtype), (2,) * rank, device))
    packed = jax.__version_info__ >= (0, 11)
    assert layouts.default_text(dtype, rank, packed=packed).decode() == theirs


def test_only_row_major_layouts_are_taken() -> None:
    def compact(*order: int) -> values.Layout:
        data = shardings_pb2.CompactLayout(major_to_minor=order).SerializeToString()
        return values.Layout(serialized_layout=values.Serialized(type_name="xla::ifrt::CompactLayout", data=data))

    def pjrt(*order: int) -> values.Layout:
        data = shardings_pb2.PjRtLayout(xla_layout=shardings_pb2.XlaLayout(minor_to_major=order)).SerializeToString()
        return values.Layout(serialized_layout=values.Serialized(type_name="xla::ifrt::PjRtLayout", data=data))

    layouts.check_default(compact(0, 1), 2)
    layouts.check_default(pjrt(1, 0), 2)
    for text in (b"{1,0}", b"{1,0:E(4)}", b"{1,0:T(8,128)}"):
        layouts.check_default_text(text, 2)
    layouts.check_default_text(b"{}", 0)
    for layout in (compact(1, 0), pjrt(0, 1), pjrt(0), values.Layout()):
        with pytest.raises(Failure):
            layouts.check_default(layout, 2)
    for text in (b"{0,1}", b"{1}", b"", b"nonsense"):
        with pytest.raises(Failure):
            layouts.check_default_text(text, 2)


# ---------------------------------------------------------------------- attributes


def test_attributes() -> None:
    message = attributes.encode({"flops": 2.0, "slice_index": 3, "flag": True, "worker": "s0w0"})
    kinds = {name: value.WhichOneof("value") for name, value in message.attributes.items()}
    assert kinds == {"flops": "float_value", "slice_index": "int64_value", "flag": "bool_value", "worker": "string_value"}
    assert attributes.decode_strings(message) == {"worker": "s0w0"}


# ---------------------------------------------------------------------- shardings


def _devices(*ids: int) -> shardings_pb2.DeviceList:
    return shardings_pb2.DeviceList(device_ids=ids)


def _shape(*dims: int) -> values.Shape:
    return values.Shape(dims=dims)


def test_every_kind_of_sharding() -> None:
    assert SPECS.sharding(single(1), (4,)) == Sharding.single(1, "device")
    assert SPECS.sharding(single(1, "pinned_host"), (4,)) == Sharding.single(1, "pinned_host")
    assert SPECS.sharding(tiled((2, 3), 2), (4,)) == Sharding((2, 3), "device", (2,), (0, 1))
    assert SPECS.sharding(tiled((2, 3)), (4,)).is_fully_replicated
    opaque = serialized("OpaqueSharding", shardings_pb2.OpaqueSharding(devices=_devices(0, 1)))
    assert SPECS.sharding(opaque, (4,)) == Sharding((0, 1), "device")
    even = shardings_pb2.ConcreteEvenSharding(devices=_devices(0, 1), shape=_shape(4), shard_shape=_shape(2))
    assert SPECS.sharding(serialized("ConcreteEvenSharding", even), (4,)).shapes((4,)) == [(2,), (2,)]
    whole = shardings_pb2.ConcreteEvenSharding(devices=_devices(0, 1), shape=_shape(4), shard_shape=_shape(4), is_fully_replicated=True)
    assert SPECS.sharding(serialized("ConcreteEvenSharding", whole), (4,)).is_fully_replicated
    uneven = shardings_pb2.ConcreteSharding(devices=_devices(3, 0), shape=_shape(5), shard_shapes=[_shape(2), _shape(3)])
    assert SPECS.sharding(serialized("ConcreteSharding", uneven), (5,)).shapes((5,)) == [(2,), (3,)]


def test_shards_that_differ_though_they_lie_in_one_place_are_only_known_by_their_shapes() -> None:
    op = xla_pb2.OpSharding(
        type=xla_pb2.OpSharding.OTHER,
        tile_assignment_dimensions=[2, 2],
        tile_assignment_devices=[0, 1, 2, 3],
        last_tile_dims=[xla_pb2.OpSharding.UNREDUCED],
    )
    sharding = SPECS.cut(op.SerializeToString(), (0, 1, 2, 3), None, (8,))
    assert sharding.tiles is None
    assert sharding.shapes((8,)) == [(4,)] * 4


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("SingleDeviceSharding", shardings_pb2.SingleDeviceSharding(device_id=4)),
        ("SingleDeviceSharding", shardings_pb2.SingleDeviceSharding(device_id=-1)),
        ("SingleDeviceSharding", shardings_pb2.SingleDeviceSharding(device_id=0, memory_kind="attic")),
        ("OpaqueSharding", shardings_pb2.OpaqueSharding()),
        ("OpaqueSharding", shardings_pb2.OpaqueSharding(devices=_devices(1, 1))),
        ("ConcreteSharding", shardings_pb2.ConcreteSharding(devices=_devices(0, 1), shape=_shape(4), shard_shapes=[_shape(4)])),
        ("ConcreteSharding", shardings_pb2.ConcreteSharding(devices=_devices(0))),
        ("ConcreteEvenSharding", shardings_pb2.ConcreteEvenSharding(devices=_devices(0), shape=_shape(5), shard_shape=_shape(5))),
        ("HloSharding", shardings_pb2.HloSharding(devices=_devices(0, 1), xla_op_sharding=b"\xff")),
        ("HloSharding", shardings_pb2.HloSharding(devices=_devices(0, 1), xla_op_sharding=b"\x08\x03\x1a\x01\x03")),
        ("ShardingOfAnotherKind", shardings_pb2.OpaqueSharding(devices=_devices(1))),
    ],
)
def test_shardings_that_make_no_sense(kind: str, message: Message) -> None:
    with pytest.raises(Failure):
        SPECS.sharding(serialized(kind, message), (4,))


def test_shardings_are_told_so_that_jaxlib_reads_them() -> None:
    op = xla_client.HloSharding.iota_tile((2, 1)).to_proto().SerializeToString()
    told = shardings.encode_cut(op, (0, 3), "device")
    assert SPECS.sharding(told, (4, 2)) == Sharding((0, 3), "device", (2, 1), (0, 1))
    assert SPECS.sharding(shardings.encode_single(2, "pinned_host"), ()) == Sharding.single(2, "pinned_host")
    even = SPECS.sharding(shardings.encode_even((4,), (2,), (0, 1), "device"), (4,))
    assert even.shapes((4,)) == [(2,), (2,)]


# ---------------------------------------------------------------------- chunks


@given(st.binary(max_size=300))
def test_chunks_are_what_protobuf_would_make_of_them(data: bytes) -> None:
    message = service_pb2.HostBufferStoreRequest(data=data).SerializeToString()
    assert bytes(chunks.decode(message)) == data
    (answer,) = chunks.encode(memoryview(data))
    assert service_pb2.HostBufferLookupResponse.FromString(answer).data == data


@given(st.binary(max_size=40))
def test_chunks_of_nonsense_are_read_as_protobuf_reads_them(message: bytes) -> None:
    try:
        expected = service_pb2.HostBufferStoreRequest.FromString(message).data
    except Exception:
        with pytest.raises(Failure):
            chunks.decode(message)
    else:
        assert bytes(chunks.decode(message)) == expected


def test_long_data_is_sent_in_parts() -> None:
    data = np.arange(3 * chunks.CHUNK // 8 + 1).tobytes()
    parts = [service_pb2.HostBufferLookupResponse.FromString(part).data for part in chunks.encode(memoryview(data))]
    assert len(parts) == 4
    assert b"".join(parts) == data
