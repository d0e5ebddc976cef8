"""Nonsense of all kinds: the client is told, and everybody else goes on."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import grpc
import numpy as np
import pytest
from frontend.doubles import FakeRuntime
from frontend.harness import ONES, Client, compile_request, connected, put_request, serving, single, spec_of, tiled
from frontend.test_programs import doubling
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from everstep.frontend import service
from everstep.wire.errors import Code
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import service_pb2

ROUNDS = 400  # requests in a run
# Answered only when something happens that nonsense doesn't make happen: a buffer arrives.
_MAY_WAIT = ("check_value_ready_request", "check_future_request", "copy_to_host_buffer_request")
_NUMBERS = (0, 1, 2, 3, 7, -1, 1 << 31, (1 << 40) + 16, (1 << 40) + 17, (1 << 63) - 1)
_TEXTS = ("", "device", "pinned_host", "xla::ifrt::HloSharding", "xla::ifrt::SingleDeviceSharding", "xla::ifrt::XlaProgram", "\u2603")


def random_value(chance: random.Random, field: FieldDescriptor) -> Any:
    """Something that the field can hold."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            if field.type == FieldDescriptor.TYPE_STRING:
                return chance.choice(_TEXTS)
            return chance.choice((b"", b"\x08\x01", chance.randbytes(9), single(1).serialized_sharding.data, b"double"))
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return chance.random()
        case FieldDescriptor.CPPTYPE_ENUM:
            return chance.choice(field.enum_type.values).number
        case FieldDescriptor.CPPTYPE_INT32:
            return chance.choice([number for number in _NUMBERS if -(1 << 31) <= number < 1 << 31])
        case FieldDescriptor.CPPTYPE_UINT32 | FieldDescriptor.CPPTYPE_UINT64:
            return chance.choice([number for number in _NUMBERS if 0 <= number < (1 << (32 if "32" in str(field.type) else 31))])
    return chance.choice(_NUMBERS)


def fill(chance: random.Random, message: Message, depth: int = 0) -> None:
    """Set some fields at random."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.3 or depth > 5:
            continue
        if field.message_type is not None:
            if field.message_type.GetOptions().map_entry:
                continue
            targets = (
                [getattr(message, field.name).add() for _ in range(chance.randrange(3))]
                if field.is_repeated
                else [getattr(message, field.name)]
            )
            for target in targets:
                target.SetInParent()
                fill(chance, target, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(random_value(chance, field) for _ in range(chance.randrange(4)))
        else:
            setattr(message, field.name, random_value(chance, field))


def random_request(chance: random.Random) -> wire.IfrtRequest:
    request = wire.IfrtRequest()
    field = chance.choice(wire.IfrtRequest.DESCRIPTOR.oneofs_by_name["request"].fields)
    body = getattr(request, field.name)
    body.SetInParent()
    fill(chance, body)
    return request


def sensible_requests() -> list[wire.IfrtRequest]:
    """Requests that work, to be spoilt."""
    array = wire.AssembleArrayFromSingleDeviceArraysRequest(
        shape=spec_of(ONES, single(0)).shape, sharding=tiled((0, 1), 2), single_device_array_handles=[1, 2], copy_semantics=2
    )
    return [
        wire.IfrtRequest(make_array_from_host_buffer_request=put_request(3, ONES, tiled((0, 1)))),
        wire.IfrtRequest(assemble_array_from_single_device_arrays_request=array),
        wire.IfrtRequest(copy_arrays_request=wire.CopyArraysRequest(array_handles=[1, 2], device_ids=[3], copy_semantics=3)),
        wire.IfrtRequest(
            reshard_arrays_request=wire.ReshardArraysRequest(
                array_handles=[1], array_specs=[spec_of(ONES, tiled((0, 1), 2))], copy_semantics=1
            )
        ),
        wire.IfrtRequest(compile_request=compile_request(b"double", 0)),
        wire.IfrtRequest(
            loaded_executable_execute_request=wire.LoadedExecutableExecuteRequest(loaded_executable_handle=(1 << 40) + 16, args_handles=[1])
        ),
        wire.IfrtRequest(delete_array_request=wire.DeleteArrayRequest(array_handle=[1])),
    ]


def spoilt(chance: random.Random, request: wire.IfrtRequest) -> wire.IfrtRequest | None:
    """The same with some bytes changed; None if it is no request any more."""
    data = bytearray(request.SerializeToString())
    for _ in range(chance.randrange(1, 4)):
        match chance.randrange(3):
            case 0:
                data[chance.randrange(len(data))] = chance.randrange(256)
            case 1:
                del data[chance.randrange(len(data)) :]
                data = data or bytearray(b"\x12\x00")
            case 2:
                at = chance.randrange(len(data))
                data[at:at] = data[at : at + chance.randrange(1, 8)]
    try:
        return wire.IfrtRequest.FromString(bytes(data))
    except DecodeError:
        return None


async def check_alive(client: Client) -> None:
    handle = await client.put(ONES)
    np.testing.assert_array_equal(await client.get(handle, "f32", (4,)), ONES)


@pytest.mark.parametrize("seed", range(4))
def test_every_request_is_answered_and_others_go_on(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        runtime = FakeRuntime()
        runtime.programs[b"double"] = doubling()
        async with serving(runtime) as address, connected(address) as good:
            async with connected(address) as client:
                await client.ask(compile_request=compile_request(b"double", 0))
                for _ in range(2):
                    await client.put(ONES)
                answers = {}
                for number in range(ROUNDS):
                    request = spoilt(chance, chance.choice(sensible_requests())) if number % 2 else random_request(chance)
                    if request is not None:
                        kind = request.WhichOneof("request")
                        body = {kind: getattr(request, kind)} if kind else {}
                        answers[number] = (kind, await client.send(**body))
                await asyncio.wait_for(client.init(), 20)
                waiting = [kind for kind, answer in answers.values() if not answer.done()]
                assert set(waiting) <= set(_MAY_WAIT)
                for _, answer in answers.values():
                    if answer.done():
                        code = Code(answer.result().response_metadata.status.code)
                        assert code not in (Code.DATA_LOSS, Code.INTERNAL, Code.NOT_FOUND, Code.DEADLINE_EXCEEDED)
                await check_alive(good)
            await check_alive(good)
            assert runtime.sessions[1].is_closed

    asyncio.run(main())
    assert not [record.getMessage() for record in caplog.records if "bug" in record.getMessage()]


@pytest.mark.parametrize("noise", [b"\xff", b"\x0a\xff\xff\xff\xff\x0f", b"\x12\x7f"])
def test_what_is_no_request_ends_its_session_only(noise: bytes) -> None:
    async def main() -> None:
        runtime = FakeRuntime()
        async with serving(runtime) as address, connected(address) as good:
            async with grpc.aio.insecure_channel(address) as channel:
                client = Client(channel)
                await client.open()
                await client.init()
                await client.stream.write(noise)
                assert await client.stream.code() is grpc.StatusCode.INVALID_ARGUMENT
                await client.close()
            await check_alive(good)

    asyncio.run(main())


def test_clients_that_vanish_free_what_they_had() -> None:
    async def main() -> None:
        runtime = FakeRuntime()
        async with serving(runtime) as address, connected(address) as good:
            async with grpc.aio.insecure_channel(address) as channel:
                client = Client(channel)
                await client.open()
                await client.init()
                handle = client.mint()
                await client.ask(make_array_from_host_buffer_request=put_request(handle, ONES))
                await client.send(check_value_ready_request=wire.CheckValueReadyRequest(value_handles=[handle]))
                half = service_pb2.HostBufferStoreMetadata(session_id=client.session_id, handle=handle, buffer_size=16)
                call = channel.stream_unary(f"/{service.SERVICE}/HostBufferStore")(
                    metadata=(("ifrt-proxy-grpc-host-buffer-store-metadata-bin", half.SerializeToString()),)
                )
                await call.write(service_pb2.HostBufferStoreRequest(data=b"12345678").SerializeToString())
            while not runtime.sessions[1].is_closed:
                await check_alive(good)
            await check_alive(good)

    asyncio.run(main())


@pytest.mark.parametrize(
    "metadata", [(), (("ifrt-proxy-grpc-ifrt-session-metadata-bin", b"\xff"),), (("ifrt-proxy-grpc-ifrt-session-metadata-bin", b""),)]
)
def test_a_session_without_proper_metadata_is_refused(metadata: tuple[tuple[str, bytes], ...]) -> None:
    async def main() -> None:
        async with serving(FakeRuntime()) as address, grpc.aio.insecure_channel(address) as channel:
            stream = channel.stream_stream(f"/{service.SERVICE}/IfrtSession")(metadata=metadata)
            assert await stream.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION)

    asyncio.run(main())
