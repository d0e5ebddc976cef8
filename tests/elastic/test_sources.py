"""How the head's stream of events becomes news, also when it breaks."""

from __future__ import annotations

import types
from typing import Any

import pytest
from processes import wait_for

from everstep.elastic import sources


def event(number: int, kind: str, message: str = "") -> Any:
    return types.SimpleNamespace(number=number, kind=kind, slice=1, message=message)


def test_a_stream_that_breaks_goes_on_after_what_was_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_AGAIN_SECONDS", 0.001)
    streams = [[event(8, "lost", "worker s1w0 ..."), event(9, "slice down")], [], [event(10, "slice up")]]
    asked: list[int] = []
    told: list[tuple[int, bool, str]] = []

    class Events:
        def __init__(self, target: str, *, after: int) -> None:
            asked.append(after)
            self._events = streams.pop(0) if streams else []

        def __iter__(self) -> Any:
            return iter(self._events)

        def close(self) -> None: ...

    client: Any = types.SimpleNamespace(status=lambda target: {"slices": [{"slice": 1, "up": True}], "last_event": 7}, Events=Events)
    head = sources.Head("target", client)
    head.start(lambda index, up, why="": told.append((index, up, why)))
    wait_for(lambda: len(told) == 3)
    head.close()
    assert told == [(1, True, ""), (1, False, "worker s1w0 ..."), (1, True, "worker s1w0 ...")]
    assert asked[:3] == [7, 9, 9]
