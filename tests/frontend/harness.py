"""A server on a socket of its own, and a client that speaks the protocol one request at a time, as jaxlib's would."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import pathlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import numpy as np
import pytest
from frontend.doubles import FakeRuntime

from everstep.frontend import service
from everstep.frontend.codec import dtypes as dtype_codec
from everstep.wire import dtypes
from everstep.wire.errors import Code, Failure
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import service_pb2, shardings_pb2, xla_pb2
from everstep.wire.ifrt import values_pb2 as values

WAIT = 20.0  # seconds until a test gives up
ONES = np.ones(4, np.float32)


class Client:
    """handle: the number of the last handle that the client has minted."""

    def __init__(self, channel: grpc.aio.Channel, version: service_pb2.Version | None = None) -> None:
        self.session_id = 0
        self._channel = channel
        self._version = version or service_pb2.Version(protocol_version=25, ifrt_serdes_version_number=6)
        self._ops = itertools.count(1)
        self._handles = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[wire.IfrtResponse]] = {}
        self.order: list[int] = []  # op ids as they were answered

    async def open(self) -> None:
        metadata = service_pb2.SessionMetadata(version=self._version).SerializeToString()
        self.stream = self._channel.stream_stream(f"/{service.SERVICE}/IfrtSession")(
            metadata=(("ifrt-proxy-grpc-ifrt-session-metadata-bin", metadata),)
        )
        self._reader = asyncio.ensure_future(self._read())

    async def close(self) -> None:
        await self.stream.done_writing()
        await self._reader

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError):
            while (data := await self.stream.read()) is not grpc.aio.EOF:
                response = wire.IfrtResponse.FromString(data)
                op_id = response.response_metadata.op_id
                self.order.append(op_id)
                self._waiting.pop(op_id).set_result(response)

    def mint(self) -> int:
        return next(self._handles)

    async def send(self, context: int = 0, **body: Any) -> asyncio.Future[wire.IfrtResponse]:
        """Send a request; the response comes later."""
        op_id = next(self._ops)
        request = wire.IfrtRequest(request_metadata=wire.RequestMetadata(op_id=op_id, user_context_id=context), **body)
        future = self._waiting[op_id] = asyncio.get_running_loop().create_future()
        await self.stream.write(request.SerializeToString())
        return future

    async def ask(self, **body: Any) -> Any:
        """Send a request and wait: the body of the response. Raises Failure."""
        response = await asyncio.wait_for(await self.send(**body), WAIT)
        return body_of(response)

    async def init(self) -> wire.InitResponse:
        response: wire.InitResponse = await self.ask(init_request=wire.InitRequest())
        self.session_id = response.session_id
        return response

    # ------------------------------------------------------------------ host buffers

    async def store(self, handle: int, data: bytes, *, size: int | None = None, chunk: int = 1 << 20) -> None:
        metadata = service_pb2.HostBufferStoreMetadata(
            session_id=self.session_id, handle=handle, buffer_size=len(data) if size is None else size
        )
        call = self._channel.stream_unary(f"/{service.SERVICE}/HostBufferStore")(
            metadata=(("ifrt-proxy-grpc-host-buffer-store-metadata-bin", metadata.SerializeToString()),)
        )
        for start in range(0, len(data), chunk):
            await call.write(service_pb2.HostBufferStoreRequest(data=data[start : start + chunk]).SerializeToString())
        await call.done_writing()
        await asyncio.wait_for(call, WAIT)

    async def lookup(self, handle: int) -> bytes:
        request = service_pb2.HostBufferLookupRequest(session_id=self.session_id, handle=handle).SerializeToString()
        call = self._channel.unary_stream(f"/{service.SERVICE}/HostBufferLookup")(request)
        parts = [service_pb2.HostBufferLookupResponse.FromString(part).data async for part in call]
        assert parts, "at least one message, even for no data"
        return b"".join(parts)

    async def call(self, method: str, request: Any) -> bytes:
        return bytes(await self._channel.unary_unary(f"/{service.SERVICE}/{method}")(request.SerializeToString()))

    # ------------------------------------------------------------------ arrays

    async def put(self, array: np.ndarray, sharding: values.Sharding | None = None) -> int:
        """A new array on device 0, or as the sharding says. Its handle, as the client mints it."""
        handle = self.mint()
        await self.ask(make_array_from_host_buffer_request=put_request(handle, array, sharding))
        await self.store(handle, array.tobytes())
        return handle

    async def get(self, handle: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        buffer = self.mint()
        await self.ask(copy_to_host_buffer_request=wire.CopyToHostBufferRequest(array_handle=handle, host_buffer_handle=buffer))
        return np.frombuffer(await self.lookup(buffer), dtypes.to_numpy(dtype)).reshape(shape)

    async def ready(self, *handles: int) -> None:
        await self.ask(check_value_ready_request=wire.CheckValueReadyRequest(value_handles=handles))


@contextlib.asynccontextmanager
async def serving(runtime: FakeRuntime) -> AsyncIterator[str]:
    """The address of a server for this runtime."""
    with tempfile.TemporaryDirectory(prefix="evt-") as directory:
        address = f"unix:{pathlib.Path(directory) / 'head'}"
        server = grpc.aio.server(options=service.SERVER_OPTIONS)
        service.add_to_server(server, runtime)  # type: ignore[arg-type]
        server.add_insecure_port(address)
        await server.start()
        try:
            yield address
        finally:
            await server.stop(None)


@contextlib.asynccontextmanager
async def connected(address: str, version: service_pb2.Version | None = None) -> AsyncIterator[Client]:
    """A client with an open session."""
    async with grpc.aio.insecure_channel(address) as channel:
        client = Client(channel, version)
        await client.open()
        await client.init()
        yield client
        await client.close()


def body_of(response: wire.IfrtResponse) -> Any:
    """The body of a response. Raises the Failure in its status."""
    status = response.response_metadata.status
    kind = response.WhichOneof("response")
    if status.code:
        assert kind is None, "an error has no body"
        raise Failure(Code(status.code), status.message)
    assert kind is not None, "a response without an error has a body"
    return getattr(response, kind)


def run(scenario: Callable[[FakeRuntime, Client], Awaitable[None]]) -> None:
    """One program against a fresh runtime of two slices with two devices each."""

    async def main() -> None:
        runtime = FakeRuntime()
        async with serving(runtime) as address, connected(address) as client:
            await scenario(runtime, client)

    asyncio.run(main())


async def fails(code: Code, answer: Awaitable[object], words: str | None = None) -> Failure:
    with pytest.raises(Failure, match=words) as caught:
        await answer
    assert caught.value.code is code, caught.value
    return caught.value


# ---------------------------------------------------------------------- messages


def dtype_of(array: np.ndarray) -> values.DType:
    return dtype_codec.encode(dtypes.from_numpy(array.dtype))


def shape_of(*dims: int) -> values.Shape:
    return values.Shape(dims=dims)


def serialized(kind: str, message: Any) -> values.Sharding:
    return values.Sharding(serialized_sharding=values.Serialized(type_name=f"xla::ifrt::{kind}", data=message.SerializeToString()))


def single(device: int, memory_kind: str | None = None) -> values.Sharding:
    return serialized("SingleDeviceSharding", shardings_pb2.SingleDeviceSharding(device_id=device, memory_kind=memory_kind))


def tiled(devices: tuple[int, ...], *tiles: int) -> values.Sharding:
    """Cut into tiles, in row-major order of the devices; without tiles: replicated."""
    op = xla_pb2.OpSharding(type=xla_pb2.OpSharding.OTHER, tile_assignment_dimensions=tiles, tile_assignment_devices=range(len(devices)))
    if not tiles:
        op = xla_pb2.OpSharding(type=xla_pb2.OpSharding.REPLICATED)
    return serialized(
        "HloSharding",
        shardings_pb2.HloSharding(devices=shardings_pb2.DeviceList(device_ids=devices), xla_op_sharding=op.SerializeToString()),
    )


def spec_of(array: np.ndarray, sharding: values.Sharding) -> values.ArraySpec:
    return values.ArraySpec(dtype=dtype_of(array), shape=shape_of(*array.shape), sharding=sharding)


def put_request(handle: int, array: np.ndarray, sharding: values.Sharding | None = None) -> wire.MakeArrayFromHostBufferRequest:
    """Array and host buffer share a handle, as in jaxlib's client."""
    return wire.MakeArrayFromHostBufferRequest(
        dtype=dtype_of(array), shape=shape_of(*array.shape), sharding=sharding or single(0), host_buffer_handle=handle, array_handle=handle
    )


def compile_request(module: bytes, *devices: int) -> wire.CompileRequest:
    assignment = xla_pb2.DeviceAssignment(
        replica_count=1,
        computation_count=len(devices),
        computation_devices=[xla_pb2.DeviceAssignment.ComputationDevice(replica_device_ids=[device]) for device in devices],
    )
    build = xla_pb2.ExecutableBuildOptions(num_replicas=1, num_partitions=len(devices), device_assignment=assignment)
    options = wire.XlaCompileOptions(compile_options=xla_pb2.CompileOptions(executable_build_options=build).SerializeToString())
    return wire.CompileRequest(
        program=values.Serialized(type_name="xla::ifrt::XlaProgram", data=module),
        compile_options=values.Serialized(type_name="xla::ifrt::XlaCompileOptions", data=options.SerializeToString()),
    )
