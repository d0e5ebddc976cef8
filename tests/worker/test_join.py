"""How a worker joins and how it ends."""

from __future__ import annotations

import os
import signal

import numpy as np
from harness import TOKEN, Head

from everstep.wire import channel_pb2 as wire
from everstep.wire import frames

ONES = np.ones((2, 2), np.float32)


def refuse(head: Head, welcome: wire.Welcome) -> str:
    """Spawn a worker, answer its hello so, and return what it says at its end."""
    peer = head.spawn()
    sock, hello = head.accept()
    assert hello.version == frames.VERSION
    sock.sendall(frames.encode(wire.ToWorker(welcome=welcome).SerializeToString()))
    assert peer.ended() == 1
    sock.close()
    return peer.output.read_text()


def test_hello(head: Head) -> None:
    head.workers(1, devices=3, slice_=4)
    hello = head.peers[0].hello
    assert (hello.name, hello.slice, hello.worker, hello.incarnation) == ("s4w0", 4, 0, 0)  # 0: the head counts
    assert (hello.token, hello.pid, hello.shares_directory) == (TOKEN, head.peers[0].process.pid, True)
    assert len(hello.devices) == 3  # whatever the environment says
    assert hello.devices[0].platform == "cpu"
    assert list(hello.devices[0].memory_kinds) == ["device", "pinned_host", "unpinned_host"]
    assert hello.devices[0].default_memory_kind == "device"
    assert hello.jaxlib
    assert hello.platform_version


def test_refused(head: Head) -> None:
    output = refuse(head, wire.Welcome(version=frames.VERSION, refused="the token is not that of this run"))
    assert "does not take it: the token is not that of this run" in output
    assert "Traceback" not in output


def test_other_version(head: Head) -> None:
    output = refuse(head, wire.Welcome(version=frames.VERSION + 1))
    assert f"the head speaks version {frames.VERSION + 1} of the channel" in output
    assert "Traceback" not in output


def test_no_head(head: Head) -> None:
    head._listener.close()
    peer = head.spawn()
    assert peer.ended() == 1
    assert "can't be reached" in peer.output.read_text()


def busy(head: Head) -> None:
    """A worker with its executor waiting for a buffer that never comes, and a callback that is never answered."""
    head.workers(1)
    head.form()
    (peer,) = head.peers
    device = peer.devices[0]
    callback, _ = head.compile(peer, "callback", [device])
    program, _ = head.compile(peer, "double", [device])
    head.start([peer], callback, [head.put({device: ONES})], 1)
    peer.message("callback_call")
    array = head.number()
    shard = wire.HostShard(devices=[device], buffer=head.number())
    peer.send(0, put=wire.Put(array=array, dtype="f32", shape=[2, 2], shards=[shard]))
    head.start([peer], program, [array], 1)


def test_stop_in_the_middle(head: Head) -> None:
    busy(head)
    (peer,) = head.peers
    peer.send(0, stop=wire.Stop(reason="it is over"))
    assert peer.ended() == 0
    assert "it is over" in peer.output.read_text()
    assert not list(head.shared.iterdir())


def test_the_head_goes(head: Head) -> None:
    busy(head)
    (peer,) = head.peers
    peer.close()
    assert peer.ended() == 1  # it was not told to stop
    assert not list(head.shared.iterdir())


def test_the_head_goes_before_the_welcome(head: Head) -> None:
    peer = head.spawn()
    sock, _ = head.accept()
    sock.close()
    assert peer.ended() == 1
    assert "closed the connection" in peer.output.read_text()


def test_interrupt_is_not_for_workers(head: Head) -> None:
    head.workers(1)
    (peer,) = head.peers
    os.kill(peer.process.pid, signal.SIGINT)
    head.form()
    assert peer.process.poll() is None


def test_a_wrong_token_gets_no_data(head: Head) -> None:
    import pytest

    from everstep.wire import bulk
    from everstep.wire.credentials import Credentials
    from everstep.wire.errors import Code, Failure

    head.workers(1, shared=False)
    address = head.peers[0].hello.bulk_address
    assert address.startswith("127.0.0.1:")
    with pytest.raises(Failure) as refused:
        bulk.Client(Credentials("another token")).get(address, "blob/1")
    assert refused.value.code == Code.UNAUTHENTICATED
    client = bulk.Client(Credentials(TOKEN))
    with pytest.raises(Failure) as missing:
        client.get(address, "blob/1")
    client.close()
    assert missing.value.code == Code.NOT_FOUND
