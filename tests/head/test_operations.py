"""What waits for what, and how failures travel."""

import asyncio

import pytest

from everstep.head.arrays import Array, Placement, all_ready
from everstep.head.operations import Operation
from everstep.head.specs import ArraySpec, Sharding
from everstep.wire.errors import Code, Failure

SLOT_OF = {0: "a", 1: "a", 2: "b", 3: "b"}
LOST = Failure(Code.DATA_LOSS, "worker b is lost")


def array(operation: Operation | None, devices: tuple[int, ...] = (0, 1, 2, 3)) -> Array:
    result = Array(1, ArraySpec("f32", (4,), Sharding.replicated(devices)), Placement(devices, SLOT_OF), (operation,) if operation else ())
    if operation:
        operation.feed(result)
    return result


def test_ready_when_all_have_reported() -> None:
    async def scenario() -> None:
        operation = Operation(1, "step", "ab", spanning=True)
        waiting = asyncio.ensure_future(array(operation).ready())
        operation.report("a", None)
        await asyncio.sleep(0)
        assert not waiting.done()
        operation.report("b", None)
        await waiting

    asyncio.run(scenario())


def test_a_spanning_operation_fails_as_a_whole_and_at_once() -> None:
    async def scenario() -> None:
        operation = Operation(1, "step", "ab", spanning=True)
        result = array(operation)
        waiting = asyncio.ensure_future(result.ready())
        await asyncio.sleep(0)
        operation.lose("b", LOST)  # "a" has not reported and perhaps never will
        with pytest.raises(Failure, match="DATA_LOSS"):
            await waiting
        assert result.failures is not None
        assert set(result.failures) == {0, 1, 2, 3}

    asyncio.run(scenario())


def test_separate_shards_fail_one_by_one() -> None:
    operation = Operation(1, "put", "ab")
    result = array(operation)
    operation.lose("b", LOST)
    assert result.failures is not None
    assert set(result.failures) == {2, 3}


def test_the_loss_of_a_source_fails_the_reader() -> None:
    operation = Operation(1, "copy", "a", sources="b")
    result = array(operation, (0, 1))
    operation.lose("b", LOST)
    assert result.failure is LOST


def test_a_failure_reaches_all_that_follows_however_long_the_chain() -> None:
    operations = [Operation(0, "first", "a")]
    first = last = array(operations[0], (0,))
    for number in range(1, 5000):
        operation = Operation(number, "next", "a")
        operation.follow(last)
        last = array(operation, (0,))
        operations.append(operation)
    operations[0].fail(LOST)
    assert first.failure is LOST
    assert last.failure is LOST
    assert all(operation.failure is LOST for operation in operations)


def test_the_first_failure_stays() -> None:
    operation = Operation(1, "step", "ab", spanning=True)
    result = array(operation)
    operation.report("a", Failure(Code.UNKNOWN, "connection reset"))
    operation.lose("b", LOST)
    assert result.failure is not None
    assert result.failure.code is Code.UNKNOWN


def test_waiting_for_many_ends_with_the_first_failure() -> None:
    async def scenario() -> None:
        never, broken = Operation(1, "never", "a"), Operation(2, "broken", "b")
        waiting = asyncio.ensure_future(all_ready([array(never, (0,)), array(broken, (2,))]))
        await asyncio.sleep(0)
        broken.report("b", LOST)
        with pytest.raises(Failure, match="DATA_LOSS"):
            await waiting

    asyncio.run(scenario())


def test_drained_callbacks_run_once_when_all_are_in_or_gone() -> None:
    operation = Operation(1, "copy", "ab")
    calls: list[str] = []
    operation.on_drained(lambda: calls.append("drained"))
    operation.report("a", None)
    assert calls == []
    operation.lose("b", LOST)
    operation.on_drained(lambda: calls.append("at once"))
    assert calls == ["drained", "at once"]
