"""Worlds beside each other: another is formed while programs still run in the one before."""

from __future__ import annotations

import numpy as np
import pytest
from harness import Head, Peer

from everstep.wire import channel_pb2 as wire
from everstep.wire import values

ONES = np.ones((2, 2), np.float32)


@pytest.fixture
def peers(head: Head) -> list[Peer]:
    """Two workers with two devices each, in a world."""
    head.workers(2)
    head.form()
    return list(head.peers)


def devices(peers: list[Peer]) -> list[int]:
    return [device for peer in peers for device in peer.devices]


def test_what_still_runs_in_the_old_world_is_an_argument_in_the_new(head: Head, peers: list[Peer]) -> None:
    peer, _ = peers
    device = peer.devices[0]
    program, _ = head.compile(peer, "callback", [device])
    array = head.put({device: ONES})
    running, (result,) = head.start([peer], program, [array], 1)  # until its callback is answered
    call = peer.message("callback_call")
    head.form()
    double, _ = head.compile(peer, "double", [device])
    waiting, (doubled,) = head.start([peer], double, [result], 1)
    (other,) = head.execute([peer], double, [head.put({device: 2 * ONES})], 1)  # does not wait for it
    np.testing.assert_array_equal(head.get(other, device), 4 * ONES)
    assert not peer.reported(waiting[0][1])
    peer.send(callback_result=wire.CallbackResult(call=call.call, values=[values.encode(5 * ONES)]))
    head.reports(running + waiting)
    np.testing.assert_array_equal(head.get(doubled, device), 12 * ONES)


def test_a_step_of_the_old_world_goes_on_in_the_new(head: Head, peers: list[Peer]) -> None:
    step = head.spanning("step4", peers, devices(peers))
    array = head.put({device: np.full((2, 2), 2.0**-40, np.float32) for device in devices(peers)})
    sent = []
    for turn in range(20):
        if turn == 10:
            head.form()
            step = head.spanning("step4", peers, devices(peers))
        more, (array,) = head.start(peers, step, [array], 1)
        sent += more
    head.reports(sent)
    assert head.get(array, devices(peers)[0])[0, 0] == np.float32(17.0**20 * 2.0**-40)


def test_an_old_world_is_dropped_and_its_arrays_stay(head: Head, peers: list[Peer]) -> None:
    step = head.spanning("step4", peers, devices(peers))
    (array,) = head.execute(peers, step, [head.put(dict.fromkeys(devices(peers), ONES))], 1)
    head.form()
    for peer in peers:
        peer.send(drop_world=wire.DropWorld(world=1))
    step = head.spanning("step4", peers, devices(peers))
    (array,) = head.execute(peers, step, [array], 1)
    np.testing.assert_array_equal(head.get(array, devices(peers)[-1]), 17 * 17 * ONES)


def test_compiled_for_workers_that_are_away(head: Head, peers: list[Peer]) -> None:
    """By one that has none of the devices; then loaded where these are."""
    head.world = 0
    (compiler,) = head.workers(1)
    away = devices(peers)
    blob = head.directory / "away"
    program, compiled = head.compile(compiler, "twosums4", away, blob_path=str(blob), spans_workers=True)
    ready = compiler.message("blob_ready", lambda message: message.program == program)
    artifact = head.artifacts["twosums4"]
    load = wire.Load(
        program=program,
        world=1,
        blob=wire.Source(path=str(blob), size=ready.size),
        options=artifact.options,
        devices=away,
        replicas=1,
        partitions=4,
        outputs=[wire.ShardInfo(dtype=o.dtype, shape=o.shard_shape, memory_kind=o.memory_kind) for o in compiled.outputs],
    )
    head.ask(peers, load=load)
    described = head.ask(peers[:1], describe=wire.Describe(program=program, hlo_text=True))[0]
    assert described.hlo_text.count(" all-reduce(") == 2  # not combined: the compiler knew that it would span workers
    arrays = [head.put({device: index * ONES for index, device in enumerate(away)}) for _ in range(2)]
    sums = head.execute(peers, program, arrays, 2)
    np.testing.assert_array_equal(head.get(sums[0], away[-1]), 6 * ONES)


def test_a_world_that_was_given_up_before_it_was_used(head: Head, peers: list[Peer]) -> None:
    """A successor has died while it joined: everything goes on in the world there was, transfers between the others too."""
    step = head.spanning("step4", peers, devices(peers))
    endpoints = head.form()
    for peer in peers:
        peer.send(break_world=wire.BreakWorld(world=head.world, endpoints=endpoints))
        peer.send(drop_world=wire.DropWorld(world=head.world))
    head.world -= 1
    array = head.put(dict.fromkeys(devices(peers), ONES))
    (array,) = head.execute(peers, step, [array], 1)
    np.testing.assert_array_equal(head.get(array, devices(peers)[-1]), 17 * ONES)
