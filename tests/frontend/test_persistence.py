"""Plugin programs that save and restore arrays, as pathwaysutils writes them."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from frontend.doubles import FakeRuntime, topology
from frontend.harness import Client, fails, run, tiled

from everstep.frontend import persistence
from everstep.frontend.codec.shardings import Specs
from everstep.head.persistence import StorageProgram
from everstep.wire.errors import Code, Failure
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import shardings_pb2
from everstep.wire.ifrt import values_pb2 as values

VALUE = np.arange(8, dtype=np.float32).reshape(4, 2)


def text(plain: str) -> str:
    return base64.b64encode(plain.encode()).decode()


def request(*tiles: int, saves: bool, name: str = "layer.kernel") -> dict[str, Any]:
    """An array of 4 x 2 floats, cut into these tiles on devices 2 and 0."""
    op = shardings_pb2.HloSharding.FromString(tiled((2, 0), *tiles).serialized_sharding.data).xla_op_sharding
    return {
        "b64_location": text("/checkpoints/1"),
        "b64_name": text(name),
        "b64_hlo_sharding_string": base64.b64encode(op).decode(),
        "shape": [4, 2] if saves else {"xla_primitive_type_str": "F32", "dimensions": [4, 2]},
        "devices": {"device_ids": [2, 0]},
        "timeout": {"seconds": 2, "nanos": 500_000_000},
    }


def serialized(program: object) -> bytes:
    return b"__serialized_plugin_program " + json.dumps(program).encode()


def decode(program: object) -> StorageProgram:
    return persistence.decode(serialized(program), Specs(topology().devices))


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ({"persistenceWriteRequest": request(2, 1, saves=True)}, ["layer.kernel"]),
        ({"persistenceReadRequest": request(2, 1, saves=False)}, ["layer.kernel"]),
        ({"bulk_persistence_write_request": {"write_requests": [request(2, 1, saves=True, name=name) for name in "ab"]}}, ["a", "b"]),
        ({"bulk_persistence_read_request": {"read_requests": [request(2, 1, saves=False, name=name) for name in "ab"]}}, ["a", "b"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_one_and_several(program: dict[str, Any], names: list[str]) -> None:
    decoded = decode(program)
    assert decoded.saves == ("rite" in next(iter(program)))
    assert decoded.timeout == 2.5
    assert [stored.name for stored in decoded.arrays] == names
    for stored in decoded.arrays:
        assert stored.location == "/checkpoints/1"
        assert (stored.spec.dtype, stored.spec.shape) == ("" if decoded.saves else "f32", (4, 2))
        assert stored.spec.sharding.devices == decoded.devices == (2, 0)
        assert [box.start for box in stored.spec.sharding.boxes((4, 2))] == [(0, 0), (2, 0)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"b64_location": text("checkpoints")}, Code.INVALID_ARGUMENT),
        ({"b64_location": text("file:///checkpoints")}, Code.INVALID_ARGUMENT),
        ({"b64_location": "no base 64"}, Code.INVALID_ARGUMENT),
        ({"b64_name": ""}, Code.INVALID_ARGUMENT),
        ({"devices": {"device_ids": [2, 9]}}, Code.INVALID_ARGUMENT),
        ({"devices": None}, Code.INVALID_ARGUMENT),
        ({"shape": {"xla_primitive_type_str": "TOKEN", "dimensions": []}}, Code.INVALID_ARGUMENT),
        ({"shape": {"xla_primitive_type_str": "F32", "dimensions": [-1, 2]}}, Code.INVALID_ARGUMENT),
        ({"timeout": "soon"}, Code.INVALID_ARGUMENT),
    ],
)
def test_nonsense(change: dict[str, Any], code: Code) -> None:
    with pytest.raises(Failure) as caught:
        decode({"persistenceReadRequest": request(saves=False) | change})
    assert caught.value.code is code


@pytest.mark.parametrize("program", [{"profileRequest": {}}, [], {"bulk_persistence_read_request": {}}])
def test_what_else_plugins_do(program: object) -> None:
    with pytest.raises(Failure, match="only those that save and restore") as caught:
        decode(program)
    assert caught.value.code is Code.UNIMPLEMENTED


def compile_request(program: object) -> wire.CompileRequest:
    kind = values.Serialized(type_name=persistence.PROGRAM, data=serialized(program))
    return wire.CompileRequest(program=kind, compile_options=values.Serialized(type_name="xla::ifrt::PluginCompileOptions"))


def test_save_and_restore() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        async def execute(program: object, *arguments: int) -> tuple[Any, Any]:
            compiled = await client.ask(compile_request=compile_request(program))
            handle = compiled.loaded_executable_handle
            assert list(compiled.device_ids) == [2, 0]
            await client.ask(loaded_executable_metadata_request=wire.LoadedExecutableMetadataRequest(loaded_executable_handle=handle))
            asked = wire.LoadedExecutableExecuteRequest(loaded_executable_handle=handle, args_handles=arguments)
            asked.execute_options.fill_status = True
            executed = await client.ask(loaded_executable_execute_request=asked)
            cost = wire.LoadedExecutableCostAnalysisRequest(loaded_executable_handle=handle)
            await fails(Code.UNIMPLEMENTED, client.ask(loaded_executable_cost_analysis_request=cost), "no code")
            await client.ask(loaded_executable_destruct_request=wire.LoadedExecutableDestructRequest(loaded_executable_handle=handle))
            fetch = wire.LoadedExecutableFetchExecuteResultRequest(result_status_handle=executed.status_handle)
            return executed, client.ask(loaded_executable_fetch_execute_result_request=fetch)

        array = await client.put(VALUE, tiled((2, 0)))
        saved, status = await execute({"persistenceWriteRequest": request(saves=True)}, array)
        await status
        assert not saved.outputs
        restored, status = await execute({"persistenceReadRequest": request(saves=False)})
        await status
        (output,) = restored.outputs
        assert (output.dtype.kind, list(output.shape.dims)) == (values.DType.KIND_F32, [4, 2])
        assert output.sharding.serialized_sharding.type_name == "xla::ifrt::HloSharding"
        np.testing.assert_array_equal(await client.get(output.array_handle, "f32", (4, 2)), VALUE)
        _, status = await execute({"persistenceReadRequest": request(saves=False, name="bias")})
        await fails(Code.INVALID_ARGUMENT, status, "no such array")  # the word NOT_FOUND is for the loss of devices

    run(scenario)
