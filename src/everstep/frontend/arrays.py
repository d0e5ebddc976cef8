"""Requests that make, move, read and drop arrays."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from everstep.frontend import remapping
from everstep.frontend.codec import dtypes, layouts, shardings, status
from everstep.frontend.codec.shardings import Specs
from everstep.frontend.handles import DELETED, HandleTable
from everstep.frontend.requests import Handler, OnFailure
from everstep.head.specs import ArraySpec, CopySemantics, HostShard
from everstep.wire.errors import Failure, invalid, unimplemented
from everstep.wire.ifrt import requests_pb2 as wire

if TYPE_CHECKING:
    from everstep.head.arrays import Array
    from everstep.head.sessions import Session

# The field with the handles that the client mints for results, by kind of request.
_RESULTS = {
    "make_array_from_host_buffer_request": "array_handle",
    "make_arrays_from_host_buffer_shards_request": "array_handles",
    "make_error_arrays_request": "array_handles",
    "assemble_array_from_single_device_arrays_request": "result_handle",
    "disassemble_into_single_device_arrays_request": "result_handles",
    "fully_replicated_shard_request": "result_handle",
    "copy_arrays_request": "result_handles",
    "remap_arrays_request": "result_handles",
    "reshard_arrays_request": "result_handles",
    "bitcast_arrays_request": "result_handles",
}


class ArrayRequests:
    """Dispatches to the head's session; nothing here waits but the copy to a host buffer."""

    def __init__(self, session: Session, arrays: HandleTable[Array], specs: Specs) -> None:
        self._session = session
        self._arrays = arrays
        self._specs = specs
        self.handlers: Mapping[str, Handler] = {
            "make_array_from_host_buffer_request": self._make_from_host_buffer,
            "make_arrays_from_host_buffer_shards_request": self._make_from_host_buffer_shards,
            "make_error_arrays_request": self._make_errors,
            "assemble_array_from_single_device_arrays_request": self._assemble,
            "disassemble_into_single_device_arrays_request": self._disassemble,
            "fully_replicated_shard_request": self._first_shard,
            "copy_arrays_request": self._copy,
            "remap_arrays_request": self._remap,
            "reshard_arrays_request": self._reshard,
            "bitcast_arrays_request": self._bitcast,
            "copy_to_host_buffer_request": self._copy_to_host_buffer,
            "delete_array_request": self._delete,
            "is_array_deleted_request": self._is_deleted,
            "destruct_array_request": self._destruct,
        }
        self.on_failure: Mapping[str, OnFailure] = {name: functools.partial(self._fail, field) for name, field in _RESULTS.items()}

    def _fail(self, field: str, request: Any, failure: Failure) -> None:
        handles = getattr(request, field)
        self._arrays.fail([handles] if isinstance(handles, int) else handles, failure)

    # ------------------------------------------------------------------ from the program's data

    def _make_from_host_buffer(self, request: wire.MakeArrayFromHostBufferRequest) -> wire.IfrtResponse:
        try:
            (handle,) = self._arrays.reserve([request.array_handle], 1)
            spec = self._specs.spec(request.dtype, request.shape, request.sharding)
            if request.HasField("layout"):
                layouts.check_default(request.layout, len(spec.shape))
            devices = spec.sharding.devices
            if not spec.sharding.is_fully_replicated:
                raise unimplemented(f"one host buffer can't fill {len(devices)} shards that differ")
            strides = shardings.byte_strides(request.byte_strides, len(spec.shape)) if request.HasField("byte_strides") else None
        except Failure:
            self._consume(request.host_buffer_handle)
            raise
        shard = HostShard(tuple(range(len(devices))), spec.shape, strides, request.host_buffer_handle)
        self._arrays.put([handle], [self._session.put(spec, [shard])])
        body = wire.MakeArrayFromHostBufferResponse(array_handle=handle)
        return wire.IfrtResponse(make_array_from_host_buffer_response=body)

    def _make_from_host_buffer_shards(self, request: wire.MakeArraysFromHostBufferShardsRequest) -> wire.IfrtResponse:
        made: list[Array] = []
        try:
            handles = self._arrays.reserve(request.array_handles, len(request.specs))
            wanted = [self._spec_and_shards(spec) for spec in request.specs]
            for spec, shards in wanted:
                made.append(self._session.put(spec, shards))
        except Failure:
            self._session.release(made)
            for message in request.specs[len(made) :]:
                for buffer in message.host_buffers:
                    self._consume(buffer.host_buffer_handle)
            raise
        self._arrays.put(handles, made)
        body = wire.MakeArraysFromHostBufferShardsResponse(array_handles=handles)
        return wire.IfrtResponse(make_arrays_from_host_buffer_shards_response=body)

    def _spec_and_shards(
        self, message: wire.MakeArraysFromHostBufferShardsRequest.MakeArraysFromHostBufferShardsSpec
    ) -> tuple[ArraySpec, list[HostShard]]:
        spec = self._specs.array_spec(message.array_spec)
        shapes = spec.sharding.shapes(spec.shape)
        if len(message.addressable_shard_indices) != len(message.host_buffers):
            raise invalid(f"{len(message.host_buffers)} host buffers for {len(message.addressable_shard_indices)} lists of shards")
        shards = []
        for places, buffer in zip(message.addressable_shard_indices, message.host_buffers, strict=True):
            shape = shardings.shape(buffer.shape)
            indices = tuple(places.indices)
            if dtypes.decode(buffer.dtype) != spec.dtype:
                raise invalid(f"a host buffer of {dtypes.decode(buffer.dtype)} for an array of {spec.dtype}")
            for index in indices:
                if not 0 <= index < len(shapes):
                    raise invalid(f"an array of {len(shapes)} shards has no shard {index}")
                if shape != shapes[index]:
                    raise invalid(f"a host buffer of shape {shape} for a shard of shape {shapes[index]}")
            strides = shardings.byte_strides(buffer.byte_strides, len(shape)) if buffer.HasField("byte_strides") else None
            shards.append(HostShard(indices, shape, strides, buffer.host_buffer_handle))
        return spec, shards

    def _consume(self, handle: int) -> None:
        """A request that fails consumes its host buffers too, even those that have yet to come."""
        buffer = self._session.buffers.take(handle)
        buffer.when_settled(buffer.let_go)

    def _make_errors(self, request: wire.MakeErrorArraysRequest) -> wire.IfrtResponse:
        handles = self._arrays.reserve(request.array_handles, len(request.array_specs))
        specs = [self._specs.array_spec(spec) for spec in request.array_specs]
        failure = status.decode(request.error)
        self._arrays.put(handles, [self._session.error_array(spec, failure) for spec in specs])
        return wire.IfrtResponse(make_error_arrays_response=wire.MakeErrorArraysResponse(array_handles=handles))

    # ------------------------------------------------------------------ from other arrays

    def _assemble(self, request: wire.AssembleArrayFromSingleDeviceArraysRequest) -> wire.IfrtResponse:
        (handle,) = self._arrays.reserve([request.result_handle], 1)
        parts = self._arrays.get_all(request.single_device_array_handles)
        if not parts:
            raise invalid("an array can't be assembled from nothing")
        shape = shardings.shape(request.shape)
        dtype = dtypes.decode(request.dtype) if request.HasField("dtype") else parts[0].spec.dtype
        if any(part.spec.dtype != dtype for part in parts):
            raise invalid(f"an array of {dtype} can't be assembled from arrays of {sorted({part.spec.dtype for part in parts})}")
        spec = ArraySpec(dtype, shape, self._specs.sharding(request.sharding, shape))
        self._arrays.put([handle], [self._session.assemble(spec, parts, _copy_semantics(request.copy_semantics))])
        body = wire.AssembleArrayFromSingleDeviceArraysResponse(array_handle=handle)
        return wire.IfrtResponse(assemble_array_from_single_device_arrays_response=body)

    def _disassemble(self, request: wire.DisassembleIntoSingleDeviceArraysRequest) -> wire.IfrtResponse:
        array = self._arrays.get(request.array_handle)
        handles = self._arrays.reserve(request.result_handles, len(array.spec.sharding.devices))
        self._arrays.put(handles, self._session.disassemble(array))
        body = wire.DisassembleIntoSingleDeviceArraysResponse(array_handles=handles)
        return wire.IfrtResponse(disassemble_into_single_device_arrays_response=body)

    def _first_shard(self, request: wire.FullyReplicatedShardRequest) -> wire.IfrtResponse:
        (handle,) = self._arrays.reserve([request.result_handle], 1)
        self._arrays.put([handle], [self._session.first_shard(self._arrays.get(request.array_handle))])
        return wire.IfrtResponse(fully_replicated_shard_response=wire.FullyReplicatedShardResponse(array_handle=handle))

    def _copy(self, request: wire.CopyArraysRequest) -> wire.IfrtResponse:
        handles = self._arrays.reserve(request.result_handles, len(request.array_handles))
        arrays = self._arrays.get_all(request.array_handles)
        devices = tuple(request.device_ids) or None
        memory_kind: str | None = None
        for array in arrays:
            kind = request.memory_kind if request.HasField("memory_kind") else array.spec.sharding.memory_kind
            kind = self._specs.memory_kind(devices or array.spec.sharding.devices, kind)
            memory_kind = kind if request.HasField("memory_kind") else None
        self._arrays.put(handles, self._session.copy(arrays, devices, memory_kind, _copy_semantics(request.copy_semantics)))
        return wire.IfrtResponse(copy_arrays_response=wire.CopyArraysResponse(array_handles=handles))

    def _remap(self, request: wire.RemapArraysRequest) -> wire.IfrtResponse:
        plan = request.plan
        handles = self._arrays.reserve(request.result_handles, len(plan.output_specs))
        arrays = self._arrays.get_all(request.array_handles)
        specs = [self._specs.array_spec(spec) for spec in plan.output_specs]
        sources = remapping.sources(plan, [array.spec for array in arrays], specs)
        self._arrays.put(handles, self._session.remap(arrays, specs, sources, _copy_semantics(request.copy_semantics)))
        return wire.IfrtResponse(remap_arrays_response=wire.RemapArraysResponse(array_handles=handles))

    def _reshard(self, request: wire.ReshardArraysRequest) -> wire.IfrtResponse:
        handles = self._transform(request, self._session.reshard)
        return wire.IfrtResponse(reshard_arrays_response=wire.ReshardArraysResponse(array_handles=handles))

    def _bitcast(self, request: wire.BitcastArraysRequest) -> wire.IfrtResponse:
        handles = self._transform(request, self._session.bitcast)
        return wire.IfrtResponse(bitcast_arrays_response=wire.BitcastArraysResponse(array_handles=handles))

    def _transform(
        self,
        request: wire.ReshardArraysRequest | wire.BitcastArraysRequest,
        transform: Callable[[Sequence[Array], Sequence[ArraySpec], CopySemantics], list[Array]],
    ) -> list[int]:
        handles = self._arrays.reserve(request.result_handles, len(request.array_handles))
        arrays = self._arrays.get_all(request.array_handles)
        if len(request.array_specs) != len(arrays):
            raise invalid(f"{len(request.array_specs)} specs for {len(arrays)} arrays")
        specs = [self._specs.array_spec(spec) for spec in request.array_specs]
        self._arrays.put(handles, transform(arrays, specs, _copy_semantics(request.copy_semantics)))
        return handles

    # ------------------------------------------------------------------ back to the program

    def _copy_to_host_buffer(self, request: wire.CopyToHostBufferRequest) -> Awaitable[wire.IfrtResponse]:
        array = self._arrays.get(request.array_handle)
        strides = None
        if request.HasField("byte_strides"):
            strides = shardings.byte_strides(request.byte_strides, len(array.spec.shape))
        arrival = self._session.get(array, request.host_buffer_handle, strides)

        async def answer() -> wire.IfrtResponse:
            await arrival
            return wire.IfrtResponse(copy_to_host_buffer_response=wire.CopyToHostBufferResponse())

        return answer()

    # ------------------------------------------------------------------ the end of arrays

    def _delete(self, request: wire.DeleteArrayRequest) -> wire.IfrtResponse:
        arrays = [self._arrays.look(handle) for handle in request.array_handle]
        self._session.delete(array for array in arrays if not isinstance(array, Failure))
        body = wire.DeleteArrayResponse(deletion_future_handle=DELETED)
        return wire.IfrtResponse(delete_array_response=body)

    def _is_deleted(self, request: wire.IsArrayDeletedRequest) -> wire.IfrtResponse:
        array = self._arrays.get(request.array_handle)
        return wire.IfrtResponse(is_array_deleted_response=wire.IsArrayDeletedResponse(deleted=array.is_deleted))

    def _destruct(self, request: wire.DestructArrayRequest) -> wire.IfrtResponse:
        arrays, unknown = [], 0
        for handle in request.array_handle:
            if handle not in self._arrays:
                unknown += 1
            elif not isinstance(array := self._arrays.pop(handle), Failure):
                arrays.append(array)
        self._session.release(arrays)
        if unknown:
            raise invalid(f"{unknown} of {len(request.array_handle)} array handles to destruct are unknown; the others are gone")
        return wire.IfrtResponse(destruct_array_response=wire.DestructArrayResponse())


def _copy_semantics(number: int) -> CopySemantics:
    try:
        return CopySemantics(number)  # the same numbers
    except ValueError:
        raise invalid(f"{number} is no way to treat the input of a copy") from None
