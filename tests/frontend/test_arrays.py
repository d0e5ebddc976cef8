"""Requests that make, move and read arrays."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.doubles import FakeRuntime
from frontend.harness import ONES, Client, put_request, run, shape_of, single, spec_of, tiled

from everstep.wire.ifrt import requests_pb2 as wire


def test_data_goes_there_and_back() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        array = np.arange(12, dtype=np.int32).reshape(3, 4)
        handle = await client.put(array, tiled((0, 1)))
        np.testing.assert_array_equal(await client.get(handle, "s32", (3, 4)), array)

    run(scenario)


def test_a_request_may_come_before_its_buffer_and_a_buffer_before_its_request() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        early, late = client.mint(), client.mint()
        await client.store(early, ONES.tobytes())
        for handle in (early, late):
            await client.ask(make_array_from_host_buffer_request=put_request(handle, ONES))
        waiting = await client.send(check_value_ready_request=wire.CheckValueReadyRequest(value_handles=[late]))
        await client.ready(early)
        assert not waiting.done()
        await client.store(late, ONES.tobytes())
        await waiting
        assert not runtime.sessions[0].buffers.held

    run(scenario)


def test_strides_of_every_sign_reach_the_data() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        base = np.arange(24, dtype=np.int16).reshape(4, 6)
        for view in (base.T, base[::2, ::3], base[::-1], base[:, ::-1], base[::-2, ::-3], np.broadcast_to(base[0], (3, 6)), base[:0]):
            low, high = np.lib.array_utils.byte_bounds(view) if view.size else (0, 0)
            start = low - np.lib.array_utils.byte_bounds(base)[0] if view.size else 0
            region = base.tobytes()[start : start + high - low]
            handle = client.mint()
            request = put_request(handle, view)
            request.byte_strides.strides.extend(view.strides)
            await client.ask(make_array_from_host_buffer_request=request)
            await client.store(handle, region)
            if view.size:
                np.testing.assert_array_equal(await client.get(handle, "s16", view.shape), view)

    run(scenario)


def test_shards_from_host_buffers_become_one_array() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        array = np.arange(8, dtype=np.float32)
        first, second = client.mint(), client.mint()
        request = wire.MakeArraysFromHostBufferShardsRequest(array_handles=[first])
        spec = request.specs.add(array_spec=spec_of(array, tiled((3, 1), 2)))
        for index, handle in enumerate((first, second)):
            spec.addressable_shard_indices.add(indices=[index])
            spec.host_buffers.add(dtype=spec.array_spec.dtype, shape=shape_of(4), host_buffer_handle=handle)
        await client.ask(make_arrays_from_host_buffer_shards_request=request)
        await client.store(first, array[:4].tobytes())
        await client.store(second, array[4:].tobytes())
        np.testing.assert_array_equal(await client.get(first, "f32", (8,)), array)

    run(scenario)


def test_arrays_are_taken_apart_moved_and_put_together() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        array = np.arange(8, dtype=np.float32)
        parts = []
        for device in (0, 1):
            parts.append(await client.put(array[4 * device :][:4], single(device)))
        whole = client.mint()
        assemble = wire.AssembleArrayFromSingleDeviceArraysRequest(
            shape=shape_of(8), sharding=tiled((0, 1), 2), single_device_array_handles=parts, copy_semantics=2, result_handle=whole
        )
        await client.ask(assemble_array_from_single_device_arrays_request=assemble)
        moved = client.mint()
        copy = wire.CopyArraysRequest(array_handles=[whole], device_ids=[2, 3], memory_kind="", copy_semantics=1, result_handles=[moved])
        await client.ask(copy_arrays_request=copy)
        apart = wire.DisassembleIntoSingleDeviceArraysRequest(
            array_handle=moved, copy_semantics=2, result_handles=[client.mint(), client.mint()]
        )
        await client.ask(disassemble_into_single_device_arrays_request=apart)
        np.testing.assert_array_equal(await client.get(apart.result_handles[1], "f32", (4,)), array[4:])
        resharded = client.mint()
        reshard = wire.ReshardArraysRequest(
            array_handles=[moved], array_specs=[spec_of(array, tiled((0, 1)))], copy_semantics=1, result_handles=[resharded]
        )
        await client.ask(reshard_arrays_request=reshard)
        first = await client.ask(fully_replicated_shard_request=wire.FullyReplicatedShardRequest(array_handle=resharded, copy_semantics=2))
        assert first.array_handle >= 1 << 40
        np.testing.assert_array_equal(await client.get(first.array_handle, "f32", (8,)), array)
        bits = client.mint()
        bitcast = wire.BitcastArraysRequest(
            array_handles=[resharded], array_specs=[spec_of(array.view(np.int32), tiled((0, 1)))], copy_semantics=3, result_handles=[bits]
        )
        await client.ask(bitcast_arrays_request=bitcast)
        np.testing.assert_array_equal(await client.get(bits, "s32", (8,)), array.view(np.int32))
        gone = await client.ask(is_array_deleted_request=wire.IsArrayDeletedRequest(array_handle=resharded))
        assert gone.deleted

    run(scenario)


@pytest.mark.parametrize("by_numbers", [True, False])
def test_remap_plans_of_old_and_new_clients(by_numbers: bool) -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        array = np.arange(8, dtype=np.float32)
        one, other = [await client.put(array[4 * n :][:4], single(n)) for n in (0, 1)]
        plan = wire.RemapPlan(
            version_number=0 if by_numbers else 6,
            input_specs=[spec_of(array[:4], single(0)), spec_of(array[4:], single(1))],
            output_specs=[spec_of(array, tiled((1, 0), 2))],
        )
        if by_numbers:
            for source, place in ((0, 1), (1, 0)):
                plan.mappings.add(
                    in_array=source, from_start=[0], from_end=[1], from_step=[1], to_start=[place], to_end=[place + 1], to_step=[1]
                )
        entry = plan.input_devices_for_output.add()
        for source in (0, 1):
            entry.input_devices.add(in_array=source).device_list.device_ids.append(source)
        result = client.mint()
        request = wire.RemapArraysRequest(plan=plan, array_handles=[one, other], copy_semantics=3, result_handles=[result])
        await client.ask(remap_arrays_request=request)
        np.testing.assert_array_equal(await client.get(result, "f32", (8,)), np.roll(array, 4))

    run(scenario)
