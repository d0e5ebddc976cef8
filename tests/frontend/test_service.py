"""The gRPC service: versions, and host buffers beside the session stream."""

from __future__ import annotations

import grpc
import numpy as np
import pytest
from frontend.doubles import FakeRuntime
from frontend.harness import ONES, Client, fails, put_request, run

from everstep.wire.errors import Code
from everstep.wire.ifrt import service_pb2


@pytest.mark.parametrize(("low", "high", "chosen"), [((16, 0), (25, 3), (25, 3)), ((16, 2), (25, 6), (25, 6)), ((25, 6), (40, 9), (25, 6))])
def test_the_newest_common_version_is_chosen(low: tuple[int, int], high: tuple[int, int], chosen: tuple[int, int]) -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        request = service_pb2.GetVersionRequest(min_version=_version(low), max_version=_version(high))
        answer = service_pb2.GetVersionResponse.FromString(await client.call("GetVersion", request))
        assert answer.version == _version(chosen)

    run(scenario)


@pytest.mark.parametrize(("low", "high"), [((1, 0), (15, 0)), ((26, 0), (30, 6)), ((16, 7), (25, 9))])
def test_without_a_common_version_both_are_told(low: tuple[int, int], high: tuple[int, int]) -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        request = service_pb2.GetVersionRequest(min_version=_version(low), max_version=_version(high))
        with pytest.raises(grpc.aio.AioRpcError, match="must be updated") as caught:
            await client.call("GetVersion", request)
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION

    run(scenario)


def test_a_buffer_that_does_not_arrive_whole_fails_its_array() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        handle = client.mint()
        await client.ask(make_array_from_host_buffer_request=put_request(handle, ONES))
        with pytest.raises(grpc.aio.AioRpcError):
            await client.store(handle, ONES.tobytes()[:8], size=16)
        await fails(Code.INVALID_ARGUMENT, client.ready(handle))
        with pytest.raises(grpc.aio.AioRpcError):
            await client.store(client.mint(), ONES.tobytes(), size=4)
        with pytest.raises(grpc.aio.AioRpcError):
            await client.store(client.mint(), b"", size=-1)

    run(scenario)


def test_big_buffers_and_empty_ones_travel() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        for size in (0, 1, 127, 128, (1 << 20) - 1, (1 << 22) + 3):
            array = np.arange(size, dtype=np.uint8)
            handle = await client.put(array)
            np.testing.assert_array_equal(await client.get(handle, "u8", (size,)), array)

    run(scenario)


def test_a_file_is_adopted_and_a_deleted_buffer_forgotten() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        metadata = service_pb2.HostBufferStoreMetadata(session_id=client.session_id, handle=77, buffer_size=16)
        await client.call("HostBufferReadFromDisk", service_pb2.HostBufferReadFromDiskRequest(metadata=metadata))
        buffers = runtime.sessions[0].buffers
        assert buffers.adopted == [(77, "lt_77", 16)]
        await client.call("HostBufferDelete", service_pb2.HostBufferDeleteRequest(session_id=client.session_id, handle=77))
        assert not buffers.held
        with pytest.raises(grpc.aio.AioRpcError, match="no such session"):
            await client.call("HostBufferDelete", service_pb2.HostBufferDeleteRequest(session_id=1, handle=77))

    run(scenario)


def _version(numbers: tuple[int, int]) -> service_pb2.Version:
    return service_pb2.Version(protocol_version=numbers[0], ifrt_serdes_version_number=numbers[1])
