"""Requests to compile, describe and execute programs."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from frontend.doubles import FakeProgram, FakeRuntime, topology
from frontend.harness import ONES, Client, compile_request, fails, put_request, run, shape_of, single, spec_of, tiled

from everstep.frontend import compiling
from everstep.frontend.codec.shardings import Specs
from everstep.head.programs import CompileRequest, Output
from everstep.wire.errors import Code
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import values_pb2 as values
from everstep.wire.ifrt import xla_pb2


def doubling(**options: object) -> FakeProgram:
    return FakeProgram([Output("f32", (4,), (4,), "device")], lambda x: [x * 2], **options)  # type: ignore[arg-type]


def test_the_first_execution_tells_what_the_results_are() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        runtime.programs[b"double"] = doubling(donated=(0,))
        compiled = await client.ask(compile_request=compile_request(b"double", 2))
        assert list(compiled.device_ids) == list(compiled.addressable_device_ids) == [2]
        await client.ask(check_future_request=wire.CheckFutureRequest(future_handle=compiled.ready_future_handle))
        argument = await client.put(ONES, single(2))
        execute = wire.LoadedExecutableExecuteRequest(loaded_executable_handle=compiled.loaded_executable_handle, args_handles=[argument])
        execute.execute_options.non_donatable_input_indices.append(0)
        first = await client.ask(loaded_executable_execute_request=execute)
        assert first.status_handle == 0
        (output,) = first.outputs
        assert (output.dtype.kind, list(output.shape.dims)) == (values.DType.KIND_F32, [4])
        assert output.sharding.serialized_sharding.type_name == "xla::ifrt::SingleDeviceSharding"
        execute.result_array_handle.append(client.mint())
        execute.execute_options.fill_status = True
        execute.result_status_handle = client.mint()
        del execute.execute_options.non_donatable_input_indices[:]
        second = await client.ask(loaded_executable_execute_request=execute)
        assert not second.outputs
        fetch = wire.LoadedExecutableFetchExecuteResultRequest(result_status_handle=execute.result_status_handle)
        await client.ask(loaded_executable_fetch_execute_result_request=fetch)
        await fails(Code.INVALID_ARGUMENT, client.ask(loaded_executable_fetch_execute_result_request=fetch), "no future")
        for handle in (output.array_handle, execute.result_array_handle[0]):
            np.testing.assert_array_equal(await client.get(handle, "f32", (4,)), ONES * 2)
        gone = await client.ask(is_array_deleted_request=wire.IsArrayDeletedRequest(array_handle=argument))
        assert gone.deleted
        await client.ask(
            loaded_executable_destruct_request=wire.LoadedExecutableDestructRequest(
                loaded_executable_handle=compiled.loaded_executable_handle
            )
        )
        await fails(Code.INVALID_ARGUMENT, client.ask(loaded_executable_execute_request=execute), "no program")

    run(scenario)


def test_an_execution_is_asked_about_with_either_request_of_old_and_new_protocols() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        runtime.programs[b"double"] = program = doubling()
        program.gate = asyncio.Event()
        compiled = await client.ask(compile_request=compile_request(b"double", 0))
        argument = await client.put(ONES)
        execute = wire.LoadedExecutableExecuteRequest(loaded_executable_handle=compiled.loaded_executable_handle, args_handles=[argument])
        execute.execute_options.fill_status = True
        first = await client.ask(loaded_executable_execute_request=execute)
        assert first.status_handle
        waiting = await client.send(check_future_request=wire.CheckFutureRequest(future_handle=first.status_handle))
        await client.ready(argument)
        assert not waiting.done()
        program.gate.set()
        await waiting

    run(scenario)


def test_an_error_in_an_argument_is_passed_on_to_the_results() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        runtime.programs[b"double"] = doubling()
        compiled = await client.ask(compile_request=compile_request(b"double", 0))
        bad = client.mint()
        await fails(Code.INVALID_ARGUMENT, client.ask(make_array_from_host_buffer_request=put_request(bad, ONES, single(99))))
        execute = wire.LoadedExecutableExecuteRequest(loaded_executable_handle=compiled.loaded_executable_handle, args_handles=[bad])
        execute.execute_options.fill_status = True
        first = await client.ask(loaded_executable_execute_request=execute)  # dispatch succeeds, waiting tells
        await fails(Code.INVALID_ARGUMENT, client.ready(first.outputs[0].array_handle), "no device 99")
        check = wire.CheckFutureRequest(future_handle=first.status_handle)
        await fails(Code.INVALID_ARGUMENT, client.ask(check_future_request=check), "no device 99")
        unknown = wire.LoadedExecutableExecuteRequest(
            loaded_executable_handle=compiled.loaded_executable_handle, args_handles=[4711], result_array_handle=[client.mint()]
        )
        await fails(Code.INVALID_ARGUMENT, client.ask(loaded_executable_execute_request=unknown), "4711")
        await fails(Code.INVALID_ARGUMENT, client.ready(unknown.result_array_handle[0]), "4711")

    run(scenario)


def test_a_sharded_program_describes_its_results_as_xla_cut_them() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        cut = xla_pb2.OpSharding(type=xla_pb2.OpSharding.OTHER, tile_assignment_dimensions=[2], tile_assignment_devices=[0, 1])
        program = FakeProgram([Output("f32", (8,), (4,), "device")], lambda x: [x * 2], output_shardings=[cut.SerializeToString()])
        runtime.programs[b"sharded"] = program
        compiled = await client.ask(compile_request=compile_request(b"sharded", 1, 3))
        array = np.arange(8, dtype=np.float32)
        argument = client.mint()
        spec = wire.MakeArraysFromHostBufferShardsRequest.MakeArraysFromHostBufferShardsSpec(array_spec=spec_of(array, tiled((1, 3), 2)))
        buffers = [argument, client.mint()]
        for index, buffer in enumerate(buffers):
            spec.addressable_shard_indices.add(indices=[index])
            spec.host_buffers.add(dtype=spec.array_spec.dtype, shape=shape_of(4), host_buffer_handle=buffer)
            await client.store(buffer, array[4 * index :][:4].tobytes())
        request = wire.MakeArraysFromHostBufferShardsRequest(specs=[spec], array_handles=[argument])
        await client.ask(make_arrays_from_host_buffer_shards_request=request)
        execute = wire.LoadedExecutableExecuteRequest(loaded_executable_handle=compiled.loaded_executable_handle, args_handles=[argument])
        (output,) = (await client.ask(loaded_executable_execute_request=execute)).outputs
        assert output.sharding.serialized_sharding.type_name == "xla::ifrt::HloSharding"
        np.testing.assert_array_equal(await client.get(output.array_handle, "f32", (8,)), array * 2)
        metadata = await client.ask(
            loaded_executable_metadata_request=wire.LoadedExecutableMetadataRequest(
                loaded_executable_handle=compiled.loaded_executable_handle
            )
        )
        assert list(metadata.output_shardings.shardings) == [cut.SerializeToString()]
        assert not metadata.HasField("parameter_shardings")
        assert [list(kinds.memory_kinds) for kinds in metadata.output_memory_kinds.memory_kind_lists] == [["device"]]

    run(scenario)


def test_what_is_asked_about_a_program_is_told() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        runtime.programs[b"double"] = doubling()
        handle = (await client.ask(compile_request=compile_request(b"double", 0))).loaded_executable_handle
        cost = await client.ask(
            loaded_executable_cost_analysis_request=wire.LoadedExecutableCostAnalysisRequest(loaded_executable_handle=handle)
        )
        assert cost.attributes.attributes["flops"].float_value == 8
        text = await client.ask(
            loaded_executable_human_readable_program_text_request=wire.LoadedExecutableHumanReadableProgramTextRequest(
                loaded_executable_handle=handle
            )
        )
        assert text.human_readable_program_text == "HloModule f"

    run(scenario)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"program": values.Serialized(type_name="xla::ifrt::PluginProgram", data=b"{}")}, "plugin programs"),
        ({"program": values.Serialized(type_name="xla::ifrt::CustomCallProgram")}, "colocated"),
        ({"program": values.Serialized(type_name="xla::ifrt::IfrtIRProgram")}, "MPMD"),
        ({"host_callbacks": [b"callback"]}, "plugin"),
    ],
)
def test_what_is_not_supported_says_so(change: dict[str, object], words: str) -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        request = compile_request(b"double", 0)
        request.MergeFrom(wire.CompileRequest(**change))  # type: ignore[arg-type]
        await fails(Code.UNIMPLEMENTED, client.ask(compile_request=request), words)
        for body in (
            {"loaded_executable_mpmd_metadata_request": wire.LoadedExecutableMpmdMetadataRequest()},
            {"loaded_host_callback_poll_request": wire.LoadedHostCallbackPollRequest()},
            {"loaded_host_callback_return_request": wire.LoadedHostCallbackReturnRequest()},
            {},
        ):
            await fails(Code.UNIMPLEMENTED, client.ask(**body))

    run(scenario)


def test_the_same_options_are_the_same_bytes() -> None:
    """Whatever the devices, and in whatever order the client writes maps: by these bytes the head knows what is compiled already."""

    def decoded(device: int, *entries: tuple[str, str]) -> CompileRequest:
        request = compile_request(b"double", device)
        for key, value in entries:  # messages one after another are one message
            debug = xla_pb2.DebugOptions(xla_backend_extra_options={key: value})
            build = xla_pb2.ExecutableBuildOptions(debug_options=debug)
            more = wire.XlaCompileOptions.FromString(request.compile_options.data)
            more.compile_options += xla_pb2.CompileOptions(executable_build_options=build).SerializeToString()
            request.compile_options.data = more.SerializeToString()
        return compiling.decode(request, Specs(topology(2, 1).devices))

    entries = [(f"option {number}", str(number)) for number in range(20)]
    forward, backward, other = decoded(0, *entries), decoded(1, *reversed(entries)), decoded(0, *entries[1:])
    assert (forward.devices, backward.devices) == ((0,), (1,))
    assert forward.options == backward.options != other.options
    options = xla_pb2.CompileOptions.FromString(forward.options).executable_build_options
    assert dict(options.debug_options.xla_backend_extra_options) == dict(entries)
    assert options.num_partitions == 1
