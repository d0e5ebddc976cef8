"""Worlds that are broken, and what lives on."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from harness import Failed, Head, within

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code

ONES = np.ones((2, 2), np.float32)


def hang(head: Head) -> tuple[int, list[str]]:
    """A world of two in which the first hangs in a collective because the second has been stopped."""
    head.workers(2)
    endpoints = head.form()
    first, second = head.peers
    devices = [*first.devices, *second.devices]
    program = head.spanning("step4", head.peers, devices)
    array = head.put(dict.fromkeys(devices, ONES))
    (array,) = head.execute(head.peers, program, [array], 1, keep=[0])  # the mesh of connections is there
    os.kill(second.process.pid, signal.SIGSTOP)
    return program, endpoints


def test_broken_while_a_collective_hangs(head: Head) -> None:
    program, endpoints = hang(head)
    first, second = head.peers
    kept = head.put({first.devices[0]: 3 * ONES, first.devices[1]: 4 * ONES})
    argument = head.put(dict.fromkeys(first.devices, ONES))
    sent = [head.start([first], program, [argument], 1, keep=[0])[0]]
    np.testing.assert_array_equal(head.get(kept, first.devices[0]), 3 * ONES)  # the queue goes on
    sent += [head.start([first], program, [argument], 1, keep=[0])[0] for _ in range(4)]
    assert not first.reported(sent[0][0][1])
    with within(1.0):
        first.send(0, break_world=wire.BreakWorld(world=head.world, endpoints=endpoints))
        for each in sent:
            with pytest.raises(Failed, match="broken up") as failed:
                head.reports(each)
            assert failed.value.code == Code.ABORTED
    with pytest.raises(Failed, match="broken up"):
        head.execute([first], program, [argument], 1)

    # Alone, with what it has.
    head.form([first])
    sum2, _ = head.compile(first, "sum2", first.devices)
    doubled, total = head.execute([first], sum2, [kept], 2)
    assert head.get(total, first.devices[0], shape=()) == 28
    np.testing.assert_array_equal(head.get(kept, first.devices[1]), 4 * ONES)

    # The other wakes, breaks too, and joins again.
    os.kill(second.process.pid, signal.SIGCONT)
    second.send(0, break_world=wire.BreakWorld(world=1, endpoints=endpoints))
    head.form()
    devices = [*first.devices, *second.devices]
    step = head.spanning("step4", head.peers, devices)
    array = head.put(dict.fromkeys(devices, ONES))
    (array,) = head.execute(head.peers, step, [array], 1)
    np.testing.assert_array_equal(head.get(array, second.devices[1]), 17 * ONES)
    for world in (1, 2):
        for peer in head.peers:
            peer.send(0, drop_world=wire.DropWorld(world=world))
    np.testing.assert_array_equal(head.get(doubled, first.devices[0]), 6 * ONES)  # of a dropped world


def test_killed_in_a_collective(head: Head) -> None:
    program, endpoints = hang(head)
    first, second = head.peers
    alone, _ = head.compile(first, "sum2", first.devices)
    argument = head.put(dict.fromkeys(first.devices, ONES))
    running, _ = head.start([first], program, [argument], 1)
    second.process.kill()
    cause = wire.Error(code=Code.DATA_LOSS, message="worker s1w0 is lost")
    with within(1.0):
        first.send(0, break_world=wire.BreakWorld(world=head.world, endpoints=endpoints, cause=cause))
        with pytest.raises(Failed, match="worker s1w0 is lost") as failed:
            head.reports(running)
        assert failed.value.code == Code.DATA_LOSS

    # What has nothing to do with the dead but was sent for that world is told the same: not a reason to give up, to a training loop.
    with pytest.raises(Failed, match="worker s1w0 is lost") as failed:
        head.execute([first], alone, [argument], 2)
    assert failed.value.code == Code.DATA_LOSS
    head.workers(1)
    third = head.peers[2]
    head.form([third, first])
    devices = [*third.devices, *first.devices]
    step = head.spanning("step4", [third, first], devices)
    array = head.put(dict.fromkeys(devices, ONES))
    (array,) = head.execute([first, third], step, [array], 1)
    np.testing.assert_array_equal(head.get(array, first.devices[0]), 17 * ONES)


def test_donated_argument_of_a_broken_step(head: Head) -> None:
    """It may be gone, but whoever asks for it is told so."""
    program, endpoints = hang(head)
    first, _ = head.peers
    argument = head.put(dict.fromkeys(first.devices, ONES))
    running, (result,) = head.start([first], program, [argument], 1)
    first.send(0, break_world=wire.BreakWorld(world=head.world, endpoints=endpoints))
    with pytest.raises(Failed):
        head.reports(running)
    with pytest.raises(Failed, match=r"broken up|[Gg]loo"):
        head.get(result, first.devices[0])
    try:
        np.testing.assert_array_equal(head.get(argument, first.devices[0]), ONES)
    except Failed as failed:
        assert "donated" in failed.message  # noqa: PT017 - either is right


def test_broken_while_it_forms(head: Head) -> None:
    head.workers(2)
    from everstep.worker.coordination import Coordination

    first, _ = head.peers
    service = Coordination()
    head.services.append(service)
    head.world += 1
    (connected,) = head.ask([first], connect_world=wire.ConnectWorld(world=head.world, service=service.open()))
    building = head.send([first], build_world=wire.BuildWorld(world=head.world, rank=0, size=2, devices=range(4)))
    with within(3.0):
        first.send(0, break_world=wire.BreakWorld(world=head.world, endpoints=connected.endpoints))
        with pytest.raises(Failed, match="broken up"):
            head.reports(building)
    head.form([first])
    program, _ = head.compile(first, "double", [first.devices[0]])
    array = head.put({first.devices[0]: ONES})
    head.execute([first], program, [array], 1)


def test_broken_while_data_comes_from_another_worker(head: Head) -> None:
    _, endpoints = hang(head)
    first, second = head.peers
    piece = wire.Piece(**{"from": wire.ShardRef(array=1, device=second.devices[0])}, bulk_address=second.hello.bulk_address)
    shards = [wire.BuildShard(device=first.devices[0], shape=[2, 2], pieces=[piece])]
    array = head.number()
    sent = head.send([first], build=wire.Build(array=array, dtype="f32", shards=shards))
    double, _ = head.compile(first, "double", [first.devices[0]])
    running, _ = head.start([first], double, [array], 1)  # the executor waits for it
    with within(1.0):
        cause = wire.Error(code=Code.DATA_LOSS, message="worker s0w1 is lost")
        first.send(0, break_world=wire.BreakWorld(world=head.world, endpoints=endpoints, cause=cause))
        with pytest.raises(Failed, match="worker s0w1 is lost"):
            head.reports(sent)
        with pytest.raises(Failed, match="worker s0w1 is lost"):
            head.reports(running)


def test_broken_while_a_callback_waits(head: Head) -> None:
    head.workers(1)
    head.form()
    (peer,) = head.peers
    program, _ = head.compile(peer, "callback", [peer.devices[0]])
    array = head.put({peer.devices[0]: ONES})
    running, _ = head.start([peer], program, [array], 1)
    peer.message("callback_call")
    with within(1.0):
        peer.send(0, break_world=wire.BreakWorld(world=head.world))
        with pytest.raises(Failed, match="broken up"):
            head.reports(running)


def test_a_callback_that_fails_on_one_device_is_told_while_the_others_wait_for_it(head: Head) -> None:
    head.workers(2)
    endpoints = head.form()
    devices = [device for peer in head.peers for device in peer.devices]
    array = head.put(dict.fromkeys(devices, ONES))
    sent = []
    for peer in head.peers:
        program, _ = head.compile(peer, "callback4", devices)
        sent.append(head.start([peer], program, [array], 1)[0][0])
    first, second = head.peers
    good = wire.HostValue(dtype="f32", shape=[2, 2], data=ONES.tobytes())
    for peer, call in [(peer, peer.message("callback_call")) for peer in (first, second, second)]:
        peer.send(0, callback_result=wire.CallbackResult(call=call.call, values=[good]))
    last = first.message("callback_call")
    first.send(0, callback_result=wire.CallbackResult(call=last.call, error=wire.Error(code=Code.UNKNOWN, message="ValueError: boom")))
    early = first.message("done")
    assert (early.op, early.running, early.error.code) == (sent[0][1], True, Code.UNKNOWN)
    assert early.error.message == "CpuCallback error calling callback: ValueError: boom"
    for peer, _ in sent:
        peer.send(0, break_world=wire.BreakWorld(world=head.world, endpoints=endpoints))
    with within(5.0):
        for each in sent:
            with pytest.raises(Failed, match=r"broken up|boom"):
                head.reports([each])
    head.form()
    _, total = head.execute(head.peers, head.spanning("sum4", head.peers, devices), [array], 2)
    assert head.get(total, second.devices[1], shape=()) == 16


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int8])
def test_adoption(head: Head, dtype: type) -> None:
    """Arrays of an older world are used in a newer one, joined or one by one."""
    head.workers(1)
    head.form()
    (peer,) = head.peers
    contents = {device: np.full((2, 2), index + 1).astype(dtype) for index, device in enumerate(peer.devices)}
    array = head.put(contents)
    head.form()
    apart, both = head.number(), head.number()
    left, right = peer.devices
    head.ask([peer], assemble=wire.Assemble(array=apart, shards=[wire.ShardRef(array=array, device=left)]))
    newer = head.put({right: contents[right]})
    refs = [wire.ShardRef(array=array, device=left), wire.ShardRef(array=newer, device=right)]
    head.ask([peer], assemble=wire.Assemble(array=both, shards=refs))
    if dtype is np.float32:
        program, _ = head.compile(peer, "sum2", peer.devices)
        for argument in (array, both):
            _, total = head.execute([peer], program, [argument], 2)
            assert head.get(total, left, shape=()) == 12
        double, _ = head.compile(peer, "double", [left])
        (result,) = head.execute([peer], double, [apart], 1)
        np.testing.assert_array_equal(head.get(result, left), 2 * ONES)
    from everstep.wire import dtypes

    name = dtypes.from_numpy(np.dtype(dtype))
    np.testing.assert_array_equal(head.get(both, right, name), contents[right])
