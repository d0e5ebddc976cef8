"""The gRPC service that JAX's client talks to.

Messages with data are taken apart by hand: a host buffer of a gigabyte is a thousand messages, and each copy counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from everstep.frontend import chunks
from everstep.frontend.codec import attributes
from everstep.frontend.codec.status import reword
from everstep.frontend.session import ProxySession
from everstep.wire.errors import Code, Failure, invalid
from everstep.wire.ifrt import service_pb2 as wire

if TYPE_CHECKING:
    from everstep.head.runtime import Runtime

log = logging.getLogger(__name__)

SERVICE = "xla.ifrt.proxy.GrpcIfrtService"
PROTOCOL_VERSIONS = range(16, 26)
SERDES_VERSIONS = range(7)

# For the gRPC server. A loop of small device_puts opens thousands of calls at once, each for one host buffer; gRPC's own limits would
# cancel some of them, and the client answers that by ending its session.
SERVER_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", (1 << 31) - 1),
    ("grpc.server.max_pending_requests", (1 << 31) - 1),
    ("grpc.server.max_pending_requests_hard_limit", (1 << 31) - 1),
    ("grpc.server_max_unrequested_time_in_server", 24 * 3600),  # seconds
)

_SESSION_METADATA = "ifrt-proxy-grpc-ifrt-session-metadata-bin"
_STORE_METADATA = "ifrt-proxy-grpc-host-buffer-store-metadata-bin"

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


def add_to_server(server: grpc.aio.Server, runtime: Runtime) -> None:
    """Serve the IFRT proxy protocol on `server`, which should have been made with SERVER_OPTIONS."""
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, method_handlers(runtime)),))


def method_handlers(runtime: Runtime) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
    """What answers the service's methods, by their names."""
    service = _Service(runtime)
    raw = None  # bytes in, bytes out
    return {
        "GetVersion": grpc.unary_unary_rpc_method_handler(
            service.get_version, wire.GetVersionRequest.FromString, wire.GetVersionResponse.SerializeToString
        ),
        "IfrtSession": grpc.stream_stream_rpc_method_handler(service.session, raw, raw),
        "HostBufferStore": grpc.stream_unary_rpc_method_handler(service.store, raw, wire.HostBufferStoreResponse.SerializeToString),
        "HostBufferReadFromDisk": grpc.unary_unary_rpc_method_handler(
            service.read_from_disk, wire.HostBufferReadFromDiskRequest.FromString, wire.HostBufferReadFromDiskResponse.SerializeToString
        ),
        "HostBufferLookup": grpc.unary_stream_rpc_method_handler(service.lookup, wire.HostBufferLookupRequest.FromString, raw),
        "HostBufferDelete": grpc.unary_unary_rpc_method_handler(
            service.delete, wire.HostBufferDeleteRequest.FromString, wire.HostBufferDeleteResponse.SerializeToString
        ),
    }


class _Service:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._sessions: dict[int, ProxySession] = {}

    async def get_version(self, request: wire.GetVersionRequest, context: Context) -> wire.GetVersionResponse:
        low, high = request.min_version, request.max_version
        try:
            version = wire.Version(
                protocol_version=_choose("protocol", PROTOCOL_VERSIONS, low.protocol_version, high.protocol_version),
                ifrt_serdes_version_number=_choose(
                    "serialization", SERDES_VERSIONS, low.ifrt_serdes_version_number, high.ifrt_serdes_version_number
                ),
            )
        except Failure as failure:
            await _abort(context, failure)
        return wire.GetVersionResponse(version=version)

    # ------------------------------------------------------------------ the session stream

    async def session(self, requests: object, context: Context) -> None:
        try:
            metadata = _metadata(context, _SESSION_METADATA, wire.SessionMetadata())
            _check_version(metadata.version)
        except Failure as failure:
            await _abort(context, failure)
        await self._runtime.started()
        name = attributes.decode_strings(metadata.initialization_data).get("name") or context.peer()
        session = ProxySession(self._runtime, metadata.version, "local program" if name.startswith("unix:") else name)
        self._sessions[session.id] = session
        writer = asyncio.ensure_future(_write(session, context))
        try:
            while (data := await context.read()) is not grpc.aio.EOF:
                session.receive(data)
        except Failure as failure:
            await _abort(context, failure)
        finally:
            del self._sessions[session.id]
            session.close()
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError, grpc.aio.AioRpcError, grpc.aio.UsageError):
                await writer

    # ------------------------------------------------------------------ host buffers

    async def store(self, requests: object, context: Context) -> wire.HostBufferStoreResponse:
        try:
            metadata = _metadata(context, _STORE_METADATA, wire.HostBufferStoreMetadata())
            buffers = self._session(metadata.session_id).owned.buffers
            if metadata.buffer_size < 0:
                raise invalid("a host buffer of negative size")
            writer = buffers.begin(metadata.handle, metadata.buffer_size)
            try:
                while (data := await context.read()) is not grpc.aio.EOF:
                    writer.write(chunks.decode(data))
                writer.finish()
            except Failure as failure:
                writer.abort(failure)
                raise
            except BaseException as error:
                writer.abort(Failure(Code.CANCELLED, f"a host buffer did not arrive whole: {type(error).__name__}"))
                raise
        except Failure as failure:
            await _abort(context, failure)
        return wire.HostBufferStoreResponse()

    async def read_from_disk(self, request: wire.HostBufferReadFromDiskRequest, context: Context) -> wire.HostBufferReadFromDiskResponse:
        metadata = request.metadata
        try:
            buffers = self._session(metadata.session_id).owned.buffers
            buffers.adopt_file(metadata.handle, f"lt_{metadata.handle}", metadata.buffer_size)
        except Failure as failure:
            await _abort(context, failure)
        return wire.HostBufferReadFromDiskResponse()

    async def lookup(self, request: wire.HostBufferLookupRequest, context: Context) -> AsyncIterator[bytes]:
        try:
            data = await self._session(request.session_id).owned.buffers.read(request.handle)
        except Failure as failure:
            await _abort(context, failure)
        for chunk in chunks.encode(data):
            yield chunk

    async def delete(self, request: wire.HostBufferDeleteRequest, context: Context) -> wire.HostBufferDeleteResponse:
        try:
            self._session(request.session_id).owned.buffers.delete(request.handle)
        except Failure as failure:
            await _abort(context, failure)
        return wire.HostBufferDeleteResponse()

    def _session(self, number: int) -> ProxySession:
        try:
            return self._sessions[number]
        except KeyError:
            raise invalid("there is no such session") from None


async def _write(session: ProxySession, context: Context) -> None:
    while True:
        await context.write(await session.outbox.get())


def _metadata(context: Context, key: str, message: Any) -> Any:
    """The message in a metadata entry. Raises Failure (INVALID_ARGUMENT) if it is missing or no such message."""
    for name, value in context.invocation_metadata() or ():
        if name == key:
            try:
                message.ParseFromString(value)
            except DecodeError as error:
                raise invalid(f"the metadata {key} are no {message.DESCRIPTOR.name}") from error
            return message
    raise invalid(f"the metadata lack {key}")


def _choose(what: str, ours: range, low: int, high: int) -> int:
    """The newest version that both sides speak. Raises Failure (FAILED_PRECONDITION) if there is none."""
    newest = min(ours[-1], high)
    if newest < max(ours[0], low):
        raise Failure(
            Code.FAILED_PRECONDITION,
            f"this everstep speaks {what} versions {ours[0]} to {ours[-1]}, the program's jaxlib {low} to {high}: "
            "one of the two must be updated",
        )
    return newest


def _check_version(version: wire.Version) -> None:
    if version.protocol_version not in PROTOCOL_VERSIONS or version.ifrt_serdes_version_number not in SERDES_VERSIONS:
        raise Failure(
            Code.FAILED_PRECONDITION, f"not a version that was agreed: {version.protocol_version}, {version.ifrt_serdes_version_number}"
        )


async def _abort(context: Context, failure: Failure) -> NoReturn:
    """End the call with the failure as its status."""
    await context.abort(_GRPC_CODES.get(failure.code, grpc.StatusCode.UNKNOWN), reword(failure.message))
    raise AssertionError("abort raises")


_GRPC_CODES = {code: status for status in grpc.StatusCode for code in Code if status.value[0] == code}
