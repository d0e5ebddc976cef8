"""The end of a coordination service does not end who has met there."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import threading, time
from everstep.worker import coordination
coordination._QUIET_SECONDS = 2.0
service = coordination.Coordination()
address = service.open()
if {immunised}:
    coordination.join(address)
    service.immunise()
agent = coordination.join(address)  # listens last
time.sleep(0.2)  # it begins to listen in a thread of its own, and nothing tells when
service.close()
for thread in threading.enumerate():
    if isinstance(thread, threading.Timer):
        thread.join()  # it stops the service
time.sleep(2)  # so long it would take to hear of the end, and to die of it
print("alive")
"""


@pytest.mark.parametrize("immunised", [True, False])
def test_whoever_listens_last(immunised: bool) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(immunised=immunised)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stdout) == (0, "alive\n"), result.stderr[-2000:]


_GREEDY = """
import socket, threading
from everstep.worker import coordination

grabbed = []
real = coordination._jax.get_distributed_runtime_service

def started_late(address, **options):
    \"\"\"Somebody wants that port just before it is there, and all others too.\"\"\"
    host, port = address.split(":")
    for number in (int(port), *[0] * 100):
        other = socket.socket()
        try:
            other.bind((host, number))
        except OSError:
            continue
        grabbed.append(other)
    return real(address, **options)

coordination._jax.get_distributed_runtime_service = started_late
services = [coordination.Coordination() for _ in range(10)]
assert len({service.open() for service in services}) == len(services)
for service in services:
    service.close()
print(len(grabbed))
"""


def test_nobody_else_gets_the_port_before_it_listens() -> None:
    result = subprocess.run([sys.executable, "-c", _GREEDY], capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stdout) == (0, "1000\n"), result.stderr[-2000:]


_MANY = """
import threading
from everstep.worker import coordination

coordination._QUIET_SECONDS = 2.0

def begin_and_end():
    for _ in range(40):
        service = coordination.Coordination()
        service.open()
        service.immunise()
        service.close()

threads = [threading.Thread(target=begin_and_end) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for thread in threading.enumerate():
    if isinstance(thread, threading.Timer):
        thread.join()
print("alive")
"""


def test_services_that_end_while_they_answer_do_not_end_the_process() -> None:
    result = subprocess.run([sys.executable, "-c", _MANY], capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stdout) == (0, "alive\n"), result.stderr[-2000:]
