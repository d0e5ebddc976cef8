"""The bulk server and its client, over unix sockets and TCP."""

from __future__ import annotations

import contextlib
import pathlib
import queue
import socket
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from everstep.wire import bulk
from everstep.wire.bulk import protocol
from everstep.wire.credentials import Credentials
from everstep.wire.errors import Code, Failure, invalid

TOKEN = "token"
CONTENT = np.random.default_rng(0).integers(0, 255, 10_000_000, np.uint8).tobytes()


class Place:
    """What a server serves."""

    def __init__(self) -> None:
        self.buffer = bytearray(64)
        self.entered = threading.Event()
        self.release = threading.Event()

    def provide(self, key: str) -> bulk.Buffer | bulk.Lent:
        if key == "slow":
            self.entered.set()
            self.release.wait(30)
            return b"late"
        if key == "missing":
            raise Failure(Code.NOT_FOUND, "there is no such thing")
        if key == "empty":
            return b""
        if key == "two":
            return bulk.Lent((b"one", memoryview(b"two")), lambda: None)
        return CONTENT

    def accept(self, key: str) -> memoryview:
        if key != "buffer":
            raise invalid(f"no {key}")
        return memoryview(self.buffer)


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture(params=["unix", "127.0.0.1", "[::1]"])
def server(request: pytest.FixtureRequest, place: Place, tmp_path: pathlib.Path) -> Iterator[bulk.Server]:
    address = f"unix:{tmp_path}/socket" if request.param == "unix" else f"{request.param}:0"
    try:
        server = bulk.Server(address, Credentials(TOKEN), place.provide, place.accept)
    except OSError:
        pytest.skip("no IPv6 here")
    yield server
    place.release.set()
    server.close()


@pytest.fixture
def client() -> Iterator[bulk.Client]:
    client = bulk.Client(Credentials(TOKEN))
    yield client
    client.close()


def test_get(server: bulk.Server, client: bulk.Client) -> None:
    for _ in range(2):
        assert client.get(server.address, "anything") == CONTENT
    assert client.get(server.address, "empty") == b""
    assert client.get(server.address, "two") == b"onetwo"


def test_put(server: bulk.Server, client: bulk.Client, place: Place) -> None:
    client.put(server.address, "buffer", b"abc", 5, 3)
    assert place.buffer[:10] == b"\0\0\0\0\0abc\0\0"
    client.put(server.address, "buffer", b"ABCDEFGH", 0, 1, [(2, 16), (4, 2)])
    assert place.buffer[0:8:2] == b"ABCD"
    assert place.buffer[16:24:2] == b"EFGH"
    client.put(server.address, "buffer", b"", 0, 0)
    client.put(server.address, "buffer", b"", 0, 4, [(0, 4)])


def test_large_scattered_put(tmp_path: pathlib.Path, client: bulk.Client) -> None:
    target = bytearray(2 * len(CONTENT))
    server = bulk.Server(f"unix:{tmp_path}/socket", Credentials(TOKEN), lambda key: b"", lambda key: memoryview(target))
    client.put(server.address, "", CONTENT, 1, 1, [(len(CONTENT), 2)])
    assert target[1::2] == CONTENT
    server.close()


def test_failures_travel_and_the_connection_goes_on(server: bulk.Server, client: bulk.Client, place: Place) -> None:
    with pytest.raises(Failure, match="no such thing") as missing:
        client.get(server.address, "missing")
    assert missing.value.code is Code.NOT_FOUND
    for arguments in [("nowhere", b"x", 0, 1), ("buffer", b"x" * 65, 0, 65), ("buffer", b"xx", 60, 1, [(2, 4)])]:
        with pytest.raises(Failure) as refused:
            client.put(server.address, *arguments)  # type: ignore[arg-type]
        assert refused.value.code is Code.INVALID_ARGUMENT
    assert client.get(server.address, "two") == b"onetwo"
    assert not any(place.buffer)


def test_wrong_token(server: bulk.Server) -> None:
    stranger = bulk.Client(Credentials("other"))
    with pytest.raises(Failure, match="token") as refused:
        stranger.get(server.address, "anything")
    assert refused.value.code is Code.UNAUTHENTICATED


def test_nobody_there(client: bulk.Client, tmp_path: pathlib.Path) -> None:
    with pytest.raises(Failure) as unreachable:
        client.get(f"unix:{tmp_path}/nothing", "anything")
    assert unreachable.value.code is Code.UNAVAILABLE


def test_server_that_was_replaced(client: bulk.Client, tmp_path: pathlib.Path, place: Place) -> None:
    """An idle connection that has gone stale is not the caller's trouble."""
    path = tmp_path / "socket"
    for _ in range(2):
        server = bulk.Server(f"unix:{path}", Credentials(TOKEN), place.provide)
        assert client.get(f"unix:{path}", "two") == b"onetwo"
        server.close()
        path.unlink()


def test_abandon(server: bulk.Server, client: bulk.Client, place: Place) -> None:
    caught: list[Failure] = []

    def ask() -> None:
        try:
            client.get(server.address, "slow")
        except Failure as failure:
            caught.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    assert place.entered.wait(10)
    client.abandon(Failure(Code.ABORTED, "never mind"))
    thread.join(10)
    assert [failure.message for failure in caught] == ["never mind"]
    place.release.set()
    assert client.get(server.address, "two") == b"onetwo"


@pytest.mark.parametrize("size", [3, 50_000_000])
def test_what_is_lent_is_given_back_when_it_is_sent_or_nobody_wants_it(tmp_path: pathlib.Path, size: int) -> None:
    content = np.ones(size, np.uint8)
    references = sys.getrefcount(content)
    back: queue.SimpleQueue[int] = queue.SimpleQueue()

    def provide(_: str) -> bulk.Lent:
        return bulk.Lent((content.data,), lambda: back.put(sys.getrefcount(content)))

    server = bulk.Server(f"unix:{tmp_path}/socket", Credentials(TOKEN), provide)
    client = bulk.Client(Credentials(TOKEN))
    assert len(client.get(server.address, "x")) == size
    assert back.get(timeout=30) == references
    with socket.socket(socket.AF_UNIX) as sock:  # one that hangs up instead of reading
        sock.connect(f"{tmp_path}/socket")
        sock.sendall(protocol.MAGIC + protocol.TOKEN.pack(len(TOKEN)) + TOKEN.encode() + protocol.REQUEST.pack(protocol.GET, 1) + b"x")
        assert protocol.read_answer(sock) == 0
    assert back.get(timeout=30) == references
    client.close()
    server.close()


def test_requests_that_wait_for_their_turn(tmp_path: pathlib.Path) -> None:
    """However many threads ask, the server has no more than so many connections."""
    at_once, count, total = 0, 0, 0
    lock, full, release = threading.Lock(), threading.Event(), threading.Event()

    def provide(_: str) -> bulk.Buffer:
        nonlocal at_once, count, total
        with lock:
            at_once, total = at_once + 1, total + 1
            count = max(count, at_once)
            if at_once == 3:
                full.set()
        release.wait(30)
        with lock:
            at_once -= 1
        return CONTENT

    server = bulk.Server(f"unix:{tmp_path}/socket", Credentials(TOKEN), provide)
    client = bulk.Client(Credentials(TOKEN), at_once=3)
    threads = [threading.Thread(target=client.get, args=(server.address, "x")) for _ in range(20)]
    for thread in threads:
        thread.start()
    assert full.wait(30)
    release.set()
    for thread in threads:
        thread.join()
    assert (count, total) == (3, 20)
    client.close()
    server.close()


def test_server_closes_in_the_middle(server: bulk.Server, client: bulk.Client, place: Place) -> None:
    caught: list[Failure] = []

    def ask() -> None:
        try:
            client.get(server.address, "slow")
        except Failure as failure:
            caught.append(failure)

    thread = threading.Thread(target=ask)
    thread.start()
    assert place.entered.wait(10)
    server.close()
    thread.join(10)
    assert [failure.code for failure in caught] == [Code.UNAVAILABLE]


@pytest.mark.parametrize("junk", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64])
def test_strangers(server: bulk.Server, client: bulk.Client, junk: bytes) -> None:
    if server.address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(server.address.removeprefix("unix:"))
    else:
        host, _, port = server.address.rpartition(":")
        sock = socket.create_connection((host.strip("[]"), int(port)))
    with sock:
        sock.sendall(junk)
        with contextlib.suppress(OSError):  # it may have been cut by now
            sock.shutdown(socket.SHUT_WR)
            assert sock.recv(100) == b""
    assert client.get(server.address, "two") == b"onetwo"
