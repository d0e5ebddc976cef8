"""The head's messages to people never hold it up."""

from __future__ import annotations

import logging
import os
import re
import threading

from everstep.cli.screen import Screen

COUNT = 5000


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("everstep", logging.WARNING, "", 0, text, None, None)


def test_a_pipe_that_nobody_reads() -> None:
    """Whoever writes goes on; what waits is written once somebody reads; what is too much is left out, and told."""
    reading, writing = os.pipe()
    screen = Screen(writing)
    for number in range(COUNT):
        screen.handle(record(f"{number} {'x' * 200}"))
    lines: list[str] = []
    enough = threading.Event()

    def read() -> None:
        with os.fdopen(reading) as stream:
            for line in stream:
                lines.append(line)
                if line.startswith("everstep: 999 "):
                    enough.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert enough.wait(30)
    screen.handle(record("the last"))
    screen.close()
    os.close(writing)
    reader.join()
    numbers = [int(found[1]) for line in lines if (found := re.match(r"everstep: (\d+) x", line))]
    left_out = [int(found[1]) for line in lines if (found := re.match(r"everstep: (\d+) messages are left out here", line))]
    assert numbers == sorted(numbers)
    assert sum(left_out) > 0
    assert len(numbers) + sum(left_out) == COUNT
    assert lines[-1] == "everstep: the last\n"


def test_its_end_does_not_wait_for_a_reader() -> None:
    reading, writing = os.pipe()
    screen = Screen(writing)
    for _ in range(1000):
        screen.handle(record("x" * 200))
    screen.close()
    assert screen._thread.is_alive()
    os.close(reading)  # now its writes fail
    screen._thread.join()
    os.close(writing)


def test_nobody_is_there_any_more() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    screen = Screen(writing)
    screen.handle(record("hello"))
    screen.close()
    assert not screen._thread.is_alive()
    os.close(writing)
