"""What a program's client can rely on: errors in handles, order, and its privacy."""

from __future__ import annotations

import asyncio

import numpy as np
from frontend.doubles import FakeRuntime
from frontend.harness import ONES, Client, compile_request, connected, fails, put_request, run, serving, single, spec_of

from everstep.wire.errors import Code, Failure
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import values_pb2 as values


def test_a_failed_request_leaves_its_error_in_the_handles_that_the_client_minted() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        bad, worse, lost = client.mint(), client.mint(), client.mint()
        await fails(
            Code.INVALID_ARGUMENT, client.ask(make_array_from_host_buffer_request=put_request(bad, ONES, single(99))), "no device 99"
        )
        copy = wire.CopyArraysRequest(array_handles=[bad], device_ids=[1], copy_semantics=1, result_handles=[worse])
        for answer in (
            client.ready(bad),
            client.ask(copy_arrays_request=copy),
            client.ready(worse),
            client.ask(is_array_deleted_request=wire.IsArrayDeletedRequest(array_handle=worse)),
        ):
            await fails(Code.INVALID_ARGUMENT, answer, "no device 99")
        await client.ask(delete_array_request=wire.DeleteArrayRequest(array_handle=[bad]))
        await client.ask(destruct_array_request=wire.DestructArrayRequest(array_handle=[bad, worse]))
        await fails(Code.INVALID_ARGUMENT, client.ready(bad), "no array with handle")
        await fails(Code.INVALID_ARGUMENT, client.ready(lost), "no array with handle")

    run(scenario)


def test_a_handle_in_use_is_not_taken_away() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        handle = await client.put(ONES)
        await fails(Code.INVALID_ARGUMENT, client.ask(make_array_from_host_buffer_request=put_request(handle, ONES * 2)), "must be new")
        np.testing.assert_array_equal(await client.get(handle, "f32", (4,)), ONES)

    run(scenario)


def test_an_error_made_by_the_program_is_told_when_waited_for() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        handle = client.mint()
        request = wire.MakeErrorArraysRequest(
            error=values.Status(code=Code.ABORTED, message="enough"), array_specs=[spec_of(ONES, single(0))], array_handles=[handle]
        )
        await client.ask(make_error_arrays_request=request)
        await fails(Code.ABORTED, client.ready(handle), "enough")

    run(scenario)


def test_only_lost_devices_are_data_loss() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        runtime.lost[1] = Failure(Code.DATA_LOSS, "worker s0w0 is lost")
        handle = await client.put(ONES, single(1))
        await fails(Code.DATA_LOSS, client.ready(handle), "s0w0")
        await client.ask(delete_array_request=wire.DeleteArrayRequest(array_handle=[handle]))
        await client.ask(destruct_array_request=wire.DestructArrayRequest(array_handle=[handle]))
        failure = await fails(Code.UNKNOWN, client.ask(compile_request=compile_request(b"unheard of", 0)))
        assert "INTERNAL" not in str(failure)

    run(scenario)


def test_two_programs_do_not_see_each_other() -> None:
    async def main() -> None:
        runtime = FakeRuntime()
        async with serving(runtime) as address, connected(address) as one:
            handle = await one.put(ONES)
            async with connected(address) as two:
                assert one.session_id != two.session_id
                await fails(Code.INVALID_ARGUMENT, two.ready(handle))
                await two.put(ONES * 2)
                theirs = await two.get(handle, "f32", (4,))  # the same number, another array
                np.testing.assert_array_equal(theirs, ONES * 2)
            np.testing.assert_array_equal(await one.get(handle, "f32", (4,)), ONES)
            assert [session.is_closed for session in runtime.sessions] == [False, True]
        assert all(session.is_closed for session in runtime.sessions)

    asyncio.run(main())


def test_waiting_holds_up_nothing_and_answers_overtake() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        slow, fast = client.mint(), client.mint()
        for handle in (slow, fast):
            await client.ask(make_array_from_host_buffer_request=put_request(handle, ONES))
        asked = await client.send(check_value_ready_request=wire.CheckValueReadyRequest(value_handles=[slow, fast]))
        got = await client.send(
            copy_to_host_buffer_request=wire.CopyToHostBufferRequest(array_handle=slow, host_buffer_handle=client.mint())
        )
        await client.store(fast, ONES.tobytes())
        await client.ready(fast)
        assert not asked.done()
        assert not got.done()
        await client.store(slow, ONES.tobytes())
        await asyncio.gather(asked, got)
        assert max(client.order[-2:]) < client.order[-3]

    run(scenario)


def test_tracebacks_are_released_once_and_without_gaps() -> None:
    async def scenario(runtime: FakeRuntime, client: Client) -> None:
        released, numbers = [], []
        handle = await client.put(ONES)
        missing = wire.IsArrayDeletedRequest(array_handle=12345)
        for context, body in (
            (7, {"check_value_ready_request": wire.CheckValueReadyRequest(value_handles=[handle])}),
            (8, {"is_array_deleted_request": missing}),  # an error: no number, its traceback goes with the next
            (0, {"delete_array_request": wire.DeleteArrayRequest(array_handle=[handle])}),  # sent in batches: no number
            (7, {"is_array_deleted_request": wire.IsArrayDeletedRequest(array_handle=handle)}),
        ):
            metadata = (await (await client.send(context, **body))).response_metadata
            released.append(list(metadata.destroyed_user_context_ids))
            numbers.append(metadata.seq_num)
        assert released == [[7], [], [], [8, 7]]
        assert numbers == [2, 0, 0, 3]  # after those of Init and the put

    run(scenario)
