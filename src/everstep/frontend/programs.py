"""Requests about programs: compile, describe, execute, drop."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from everstep.frontend import compiling, persistence
from everstep.frontend.codec import attributes, dtypes, shardings, status
from everstep.frontend.codec.shardings import Specs
from everstep.frontend.handles import COMPILED, HandleTable
from everstep.frontend.requests import Handler, OnFailure
from everstep.head.persistence import StorageProgram
from everstep.head.specs import ArraySpec
from everstep.wire.errors import Failure, invalid, unimplemented
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import values_pb2 as values

if TYPE_CHECKING:
    from everstep.head.arrays import Array
    from everstep.head.operations import Execution
    from everstep.head.programs import Output, Program
    from everstep.head.sessions import Session

_NO_MPMD = "programs made of several programs (MPMD) are not supported"
_NO_CALLBACKS = "host callbacks don't travel by this protocol here: everstep's JAX plugin carries them; is it installed with the program?"


@dataclasses.dataclass(slots=True)
class _Loaded:
    """A program behind a handle. outputs: specs of its results; described: the same as the first execution tells them."""

    program: Program | StorageProgram
    outputs: list[ArraySpec]
    described: list[wire.LoadedExecutableExecuteResponse.Output]
    is_deleted: bool = False


class ProgramRequests:
    """executions: where the status handles of executions go. fresh: handles minted by the server."""

    def __init__(
        self, session: Session, arrays: HandleTable[Array], executions: HandleTable[Execution], specs: Specs, fresh: Iterator[int]
    ) -> None:
        self._session = session
        self._arrays = arrays
        self._executions = executions
        self._specs = specs
        self._programs: HandleTable[_Loaded] = HandleTable("program", fresh)
        self.handlers: Mapping[str, Handler] = {
            "compile_request": self._compile,
            "loaded_executable_metadata_request": self._metadata,
            "loaded_executable_execute_request": self._execute,
            "loaded_executable_cost_analysis_request": self._cost_analysis,
            "loaded_executable_human_readable_program_text_request": self._text,
            "loaded_executable_delete_request": self._delete,
            "loaded_executable_is_deleted_request": self._is_deleted,
            "loaded_executable_destruct_request": self._destruct,
            "loaded_executable_mpmd_metadata_request": _refuse(_NO_MPMD),
            "loaded_executable_mpmd_cost_analysis_request": _refuse(_NO_MPMD),
            "loaded_host_callback_poll_request": _refuse(_NO_CALLBACKS),
            "loaded_host_callback_return_request": _refuse(_NO_CALLBACKS),
        }
        self.on_failure: Mapping[str, OnFailure] = {"loaded_executable_execute_request": self._execution_failed}

    # ------------------------------------------------------------------ compile

    async def _compile(self, request: wire.CompileRequest) -> wire.IfrtResponse:
        if request.host_callbacks:
            raise unimplemented(_NO_CALLBACKS)
        if request.program.type_name == persistence.PROGRAM:
            storage = persistence.decode(request.program.data, self._specs)
            return self._compiled(_Loaded(storage, storage.results, [persistence.describe(spec) for spec in storage.results]), b"")
        program = await self._session.compile(compiling.decode(request, self._specs))
        try:
            outputs = [self._output_spec(program, number) for number in range(len(program.outputs))]
            described = [_describe(program, number) for number in range(len(program.outputs))]
        except Failure:
            self._session.release_program(program)
            raise
        return self._compiled(_Loaded(program, outputs, described), program.fingerprint)

    def _compiled(self, loaded: _Loaded, fingerprint: bytes) -> wire.IfrtResponse:
        devices = loaded.program.devices
        body = wire.CompileResponse(
            loaded_executable_handle=self._programs.add(loaded),
            name=loaded.program.name,
            num_devices=len(devices),
            device_ids=devices,
            addressable_device_ids=devices,
            fingerprint_value=fingerprint,
            ready_future_handle=COMPILED,
        )
        return wire.IfrtResponse(compile_response=body)

    def _output_spec(self, program: Program, number: int) -> ArraySpec:
        output = program.outputs[number]
        kind = output.memory_kind or None
        if program.output_shardings is not None:
            sharding = self._specs.cut(program.output_shardings[number], program.devices, kind, output.shape)
        else:
            sharding = self._specs.even(output.shape, output.shard_shape, program.devices, kind)
        if sharding.tiles is None:
            sharding = dataclasses.replace(sharding, shard_shapes=(output.shard_shape,) * len(program.devices))
        return ArraySpec(output.dtype, output.shape, sharding)

    # ------------------------------------------------------------------ what a program is

    def _metadata(self, request: wire.LoadedExecutableMetadataRequest) -> wire.IfrtResponse:
        program = self._programs.get(request.loaded_executable_handle).program
        if isinstance(program, StorageProgram):
            return wire.IfrtResponse(loaded_executable_metadata_response=persistence.metadata(program))
        body = wire.LoadedExecutableMetadataResponse(size_of_generated_code_in_bytes=program.code_size)
        if program.parameter_shardings is not None:
            body.parameter_shardings.shardings.extend(program.parameter_shardings)
        if program.output_shardings is not None:
            body.output_shardings.shardings.extend(program.output_shardings)
        if program.layouts_error is not None:
            body.parameter_layouts_error.CopyFrom(status.encode(program.layouts_error))
            body.output_layouts_error.CopyFrom(status.encode(program.layouts_error))
        else:
            body.parameter_layouts_list.layouts.extend(program.parameter_layouts)
            body.output_layouts_list.layouts.extend(program.output_layouts)
        body.output_memory_kinds.memory_kind_lists.add(memory_kinds=[output.memory_kind for output in program.outputs])
        body.donated_input_indices.donated_input_indices.extend(program.donated)
        if program.memory_stats_error is not None:
            body.compiled_memory_stats_error.CopyFrom(status.encode(program.memory_stats_error))
        else:
            body.compiled_memory_stats = program.memory_stats
        return wire.IfrtResponse(loaded_executable_metadata_response=body)

    async def _cost_analysis(self, request: wire.LoadedExecutableCostAnalysisRequest) -> wire.IfrtResponse:
        description = await self._session.describe(self._code(request.loaded_executable_handle))
        body = wire.LoadedExecutableCostAnalysisResponse()
        if isinstance(description.cost_analysis, Failure):
            body.status.CopyFrom(status.encode(description.cost_analysis))
        else:
            body.attributes.CopyFrom(attributes.encode(description.cost_analysis))
        return wire.IfrtResponse(loaded_executable_cost_analysis_response=body)

    async def _text(self, request: wire.LoadedExecutableHumanReadableProgramTextRequest) -> wire.IfrtResponse:
        description = await self._session.describe(self._code(request.loaded_executable_handle))
        body = wire.LoadedExecutableHumanReadableProgramTextResponse(human_readable_program_text=description.hlo_text)
        return wire.IfrtResponse(loaded_executable_human_readable_program_text_response=body)

    def _code(self, handle: int) -> Program:
        program = self._programs.get(handle).program
        if isinstance(program, StorageProgram):
            raise persistence.refuse(program)
        return program

    # ------------------------------------------------------------------ execute

    def _execute(self, request: wire.LoadedExecutableExecuteRequest) -> wire.IfrtResponse:
        loaded = self._programs.get(request.loaded_executable_handle)
        options = request.execute_options
        if loaded.is_deleted:
            raise invalid(f"program {loaded.program.name} has been deleted")
        if request.device_ids and tuple(request.device_ids) != loaded.program.devices:
            raise unimplemented("a program can only be executed on the devices for which it was compiled")
        if request.result_status_handle and not options.fill_status:
            raise invalid("a handle for a status that is not asked for")
        handles = self._arrays.reserve(request.result_array_handle, len(loaded.outputs))
        body = wire.LoadedExecutableExecuteResponse()
        if options.fill_status:
            (body.status_handle,) = self._executions.reserve([request.result_status_handle], 1)
        results, execution = self._run(loaded, request.args_handles, options)
        self._arrays.put(handles, results)
        if options.fill_status:
            if isinstance(execution, Failure):
                self._executions.fail([body.status_handle], execution)
            else:
                self._executions.put([body.status_handle], [execution])
        if not request.result_array_handle:  # the first time, the client learns what the results are
            for handle, described in zip(handles, loaded.described, strict=True):
                described.array_handle = handle
                body.outputs.append(described)
        return wire.IfrtResponse(loaded_executable_execute_response=body)

    def _run(self, loaded: _Loaded, handles: Sequence[int], options: wire.ExecuteOptions) -> tuple[list[Array], Execution | Failure]:
        """The results, and what to ask for how it went."""
        arguments = []
        for handle in handles:
            argument = self._arrays.look(handle)
            if isinstance(argument, Failure):  # an error is passed on in the results, as it is from arrays that hold one
                return [self._session.error_array(spec, argument) for spec in loaded.outputs], argument
            arguments.append(argument)
        if isinstance(loaded.program, StorageProgram):
            transfer = self._session.transfer(loaded.program, arguments)
            return transfer.results, transfer
        keep = frozenset(options.non_donatable_input_indices)
        execution = self._session.execute(loaded.program, arguments, loaded.outputs, keep=keep, launch=options.launch_id)
        return execution.results, execution

    def _execution_failed(self, request: wire.LoadedExecutableExecuteRequest, failure: Failure) -> None:
        self._arrays.fail(request.result_array_handle, failure)
        self._executions.fail([request.result_status_handle], failure)

    # ------------------------------------------------------------------ the end of programs

    def _delete(self, request: wire.LoadedExecutableDeleteRequest) -> wire.IfrtResponse:
        self._programs.get(request.loaded_executable_handle).is_deleted = True
        body = wire.LoadedExecutableDeleteResponse(future_handle=COMPILED)
        return wire.IfrtResponse(loaded_executable_delete_response=body)

    def _is_deleted(self, request: wire.LoadedExecutableIsDeletedRequest) -> wire.IfrtResponse:
        is_deleted = self._programs.get(request.loaded_executable_handle).is_deleted
        return wire.IfrtResponse(loaded_executable_is_deleted_response=wire.LoadedExecutableIsDeletedResponse(is_deleted=is_deleted))

    def _destruct(self, request: wire.LoadedExecutableDestructRequest) -> wire.IfrtResponse:
        loaded = self._programs.pop(request.loaded_executable_handle)
        if not isinstance(loaded, Failure) and not isinstance(loaded.program, StorageProgram):
            self._session.release_program(loaded.program)
        return wire.IfrtResponse(loaded_executable_destruct_response=wire.LoadedExecutableDestructResponse())


def _describe(program: Program, number: int) -> wire.LoadedExecutableExecuteResponse.Output:
    output = program.outputs[number]
    return wire.LoadedExecutableExecuteResponse.Output(
        dtype=dtypes.encode(output.dtype), shape=values.Shape(dims=output.shape), sharding=_sharding(program, number, output)
    )


def _sharding(program: Program, number: int, output: Output) -> values.Sharding:
    if len(program.devices) == 1:
        return shardings.encode_single(program.devices[0], output.memory_kind)
    if program.output_shardings is not None:
        return shardings.encode_cut(program.output_shardings[number], program.devices, output.memory_kind)
    return shardings.encode_even(output.shape, output.shard_shape, program.devices, output.memory_kind)


def _refuse(why: str) -> Handler:
    def refuse(request: object) -> Awaitable[wire.IfrtResponse]:
        raise unimplemented(why)

    return refuse
