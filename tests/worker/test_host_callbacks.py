"""One worker of two devices: programs that call back."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Failed, Head

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code

ONES = np.ones((2, 2), np.float32)


def _answer(solo: Head, factor: float, *, tokens: bool = False) -> wire.CallbackCall:
    peer = solo.peers[0]
    call = peer.message("callback_call")
    assert [operand.dtype for operand in call.operands] == (["token", "f32"] if tokens else ["f32"])
    operand = np.frombuffer(call.operands[-1].data, np.float32)
    value = wire.HostValue(dtype="f32", shape=[2, 2], data=(operand * factor).astype(np.float32).tobytes())
    values = [wire.HostValue(dtype="token"), value] if tokens else [value]
    peer.send(0, callback_result=wire.CallbackResult(call=call.call, values=values))
    return call  # type: ignore[no-any-return]


def test_callback(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "callback", [device])
    assert list(compiled.callbacks) == ["process/7"]
    array = solo.put({device: ONES})
    running, (result,) = solo.start([peer], program, [array], 1)
    call = _answer(solo, 5)
    assert call.callback == "process/7"
    assert (call.operands[0].dtype, list(call.operands[0].shape)) == ("f32", [2, 2])
    solo.reports(running)
    np.testing.assert_array_equal(solo.get(result, device), 6 * ONES)


def test_a_callback_may_use_the_worker(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device])
    double, _ = solo.compile(peer, "double", [device])
    array = solo.put({device: ONES})
    running, _ = solo.start([peer], program, [array], 1)
    solo.execute([peer], double, [array], 1)
    nested, _ = solo.start([peer], program, [array], 1)
    first = peer.message("callback_call")
    _answer(solo, 1)
    solo.reports(nested)
    value = first.operands[0]
    peer.send(0, callback_result=wire.CallbackResult(call=first.call, values=[value]))
    solo.reports(running)


def test_ordered_callbacks(solo: Head) -> None:
    """Their tokens travel as values without data."""
    peer = solo.peers[0]
    device = peer.devices[0]
    program, compiled = solo.compile(peer, "ordered", [device])
    assert [(output.dtype, list(output.shape)) for output in compiled.outputs] == [("token", []), ("f32", [2, 2])]
    token = solo.put({device: np.empty((0,), np.bool_)})  # so JAX begins
    array = solo.put({device: ONES})
    running, (token, result) = solo.start([peer], program, [token, array], 2)
    again, (token, last) = solo.start([peer], program, [token, result], 2)
    for callback in ("process/1", "process/2", "process/1", "process/2"):
        assert _answer(solo, 3, tokens=True).callback == callback
    solo.reports(running)
    solo.reports(again)
    np.testing.assert_array_equal(solo.get(last, device), 81 * ONES)
    # A token can be moved, put together and waited for like any array.
    other, moved, apart = peer.devices[1], solo.number(), solo.number()
    piece = wire.Piece(**{"from": wire.ShardRef(array=token, device=device)})
    build = wire.Build(array=moved, dtype="token", shards=[wire.BuildShard(device=other, shape=[], pieces=[piece])])
    solo.ask([peer], build=build)
    solo.ask([peer], assemble=wire.Assemble(array=apart, shards=[wire.ShardRef(array=moved, device=other)]))
    assert solo.ask([peer], get=wire.Get(array=apart, pieces=[wire.GetPiece(device=other)]))[0].data == b""
    assert solo.ask([peer], get=wire.Get(array=token, pieces=[wire.GetPiece(device=device)]))[0].data == b""
    elsewhere, _ = solo.compile(peer, "ordered", [other])
    running, _ = solo.start([peer], elsewhere, [apart, solo.put({other: ONES})], 2)
    _answer(solo, 1, tokens=True)
    _answer(solo, 1, tokens=True)
    solo.reports(running)


def test_what_waits_for_a_callback_does_not_stop_the_worker(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    callback, _ = solo.compile(peer, "callback", [device])
    double, _ = solo.compile(peer, "double", [device])
    array = solo.put({device: ONES})
    running, (result,) = solo.start([peer], callback, [array], 1)
    after, (last,) = solo.start([peer], double, [result], 1)
    for _ in range(1200):  # a chain longer than Python would recurse
        each, (last,) = solo.start([peer], double, [result], 1)
        after += each
    (other,) = solo.execute([peer], double, [array], 1)  # as the callback itself may do
    np.testing.assert_array_equal(solo.get(other, device), 2 * ONES)
    _answer(solo, 1)
    solo.reports(running)
    solo.reports(after)
    np.testing.assert_array_equal(solo.get(last, device), 4 * ONES)


def test_failing_callback(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device])
    array = solo.put({device: ONES})
    running, (result,) = solo.start([peer], program, [array], 1)
    call = peer.message("callback_call")
    error = wire.Error(code=Code.INTERNAL, message="ValueError: boom")
    peer.send(0, callback_result=wire.CallbackResult(call=call.call, error=error))
    with pytest.raises(Failed, match="boom"):
        solo.reports(running)
    with pytest.raises(Failed, match="boom"):
        solo.get(result, device)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [wire.HostValue(dtype="f32", shape=[2, 2], data=bytes(16))] * 2,
        [wire.HostValue(dtype="f32", shape=[2], data=bytes(8))],
        [wire.HostValue(dtype="f32", shape=[4], data=bytes(16))],
        [wire.HostValue(dtype="s32", shape=[2, 2], data=bytes(16))],
        [wire.HostValue(dtype="f64", shape=[2, 2], data=bytes(32))],
        [wire.HostValue(dtype="f32", shape=[2, 2], data=bytes(8))],
        [wire.HostValue(dtype="token")],
        [wire.HostValue(dtype="nonsense", shape=[2, 2], data=bytes(16))],
    ],
    ids=["none", "two", "short", "flat", "integers", "doubles", "too few bytes", "token", "unknown dtype"],
)
def test_what_a_callback_returns_must_be_what_the_program_expects(solo: Head, values: list[wire.HostValue]) -> None:
    """XLA would read it from memory that is not there."""
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device])
    running, _ = solo.start([peer], program, [solo.put({device: ONES})], 1)
    call = peer.message("callback_call")
    peer.send(0, callback_result=wire.CallbackResult(call=call.call, values=values))
    with pytest.raises(Failed, match=r"host callback process/7 returned .*, but the program expects \(f32\[2, 2\]\)$") as caught:
        solo.reports(running)
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_program_with_callback_is_loaded(solo: Head) -> None:
    peer = solo.peers[0]
    device = peer.devices[0]
    program, _ = solo.compile(peer, "callback", [device], blob_path=str(solo.directory / "called"))
    ready = peer.message("blob_ready", lambda m: m.program == program)
    if ready.HasField("error"):
        return  # others must compile it, and are told so
    loaded = solo.number()
    load = wire.Load(
        program=loaded,
        world=solo.world,
        blob=wire.Source(path=str(solo.directory / "called"), size=ready.size),
        options=solo.artifacts["callback"].options,
        devices=[device],
        replicas=1,
        partitions=1,
        outputs=[wire.ShardInfo(dtype="f32", shape=[2, 2], memory_kind="device")],
        callbacks=["process/8"],
    )
    solo.ask([peer], load=load)
    running, (result,) = solo.start([peer], loaded, [solo.put({device: ONES})], 1)
    assert _answer(solo, 2).callback == "process/8"
    solo.reports(running)
    np.testing.assert_array_equal(solo.get(result, device), 3 * ONES)
