"""TLS streams: both ways at once, and who is let in."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from everstep.cli import certificates
from everstep.wire.credentials import HEAD, WORKER, Credentials
from everstep.wire.stream import Stream, pump

CREDENTIALS = certificates.make()


def pair(server: Credentials, client: Credentials, expected: str) -> tuple[Stream, Stream]:
    one, other = socket.socketpair()
    assert server.server is not None
    assert client.client is not None
    one.settimeout(10)
    other.settimeout(10)
    with ThreadPoolExecutor(1) as threads:
        serving = threads.submit(Stream, one, server.server, None)
        try:
            calling = Stream(other, client.client, expected)
        except OSError:
            other.close()
            assert serving.exception() is not None
            one.close()
            raise
        return serving.result(), calling


def read(stream: Stream, count: int) -> bytes:
    data = bytearray(count)
    view = memoryview(data)
    while view:
        got = stream.recv_into(view)
        assert got
        view = view[got:]
    return bytes(data)


def exchange(one: Stream | socket.socket, other: Stream | socket.socket, content: Callable[[int], bytes]) -> None:
    """Much, both ways at once."""
    with ThreadPoolExecutor(4) as threads:
        work = [threads.submit(one.sendall, content(1)), threads.submit(other.sendall, content(2))]
        arrived = threads.submit(read, one, len(content(2))), threads.submit(read, other, len(content(1)))  # type: ignore[arg-type]
        for each in work:
            each.result(30)
        assert arrived[0].result(30) == content(2)
        assert arrived[1].result(30) == content(1)


def content(seed: int) -> bytes:
    return bytes(range(seed, 256)) * 20_000


def test_reading_and_writing_at_the_same_time() -> None:
    head, worker = CREDENTIALS
    server, client = pair(head, Credentials.parse(str(worker)), HEAD)
    exchange(server, client, content)
    client.shutdown(socket.SHUT_RDWR)
    assert server.recv_into(bytearray(1)) == 0
    server.close()
    client.close()


def test_pump_lets_them_be_silent() -> None:
    """Whatever timeout there was while they were made."""
    near, one = socket.socketpair()
    other, far = socket.socketpair()
    for end in (one, other):
        end.settimeout(10)
    pump(one, other)
    assert (one.gettimeout(), other.gettimeout()) == (None, None)
    near.close()
    assert far.recv(1) == b""
    far.close()


def test_pump_carries_both_ways_and_ends_with_either_end() -> None:
    head, worker = CREDENTIALS
    server, client = pair(head, worker, HEAD)
    near, caller = socket.socketpair()
    far, service = socket.socketpair()
    threads = set(threading.enumerate())
    pump(near, client)
    pump(far, server)
    exchange(caller, service, content)
    caller.close()
    assert service.recv(1) == b""
    service.close()
    for thread in set(threading.enumerate()) - threads:
        thread.join(10)
    assert near.fileno() == far.fileno() == -1


@pytest.mark.parametrize(
    ("server", "client", "expected"),
    [
        pytest.param(CREDENTIALS[0], certificates.make()[1], HEAD, id="a worker of another run"),
        pytest.param(certificates.make()[0], CREDENTIALS[1], HEAD, id="a head of another run"),
        pytest.param(CREDENTIALS[1], CREDENTIALS[1], HEAD, id="a worker that plays the head"),
        pytest.param(CREDENTIALS[0], CREDENTIALS[1], WORKER, id="a head in the place of a worker"),
    ],
)
def test_strangers(server: Credentials, client: Credentials, expected: str) -> None:
    with pytest.raises(ssl.SSLError):
        meet(server, client, expected)


def meet(server: Credentials, client: Credentials, expected: str) -> None:
    serving, calling = pair(server, client, expected)
    serving.close()
    calling.recv_into(bytearray(1))  # in TLS 1.3 a client hears only now that it is refused


def test_credentials_are_kept_out_of_logs() -> None:
    assert repr(CREDENTIALS[0]) == "Credentials()"
