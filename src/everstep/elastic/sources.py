"""Who tells which slices are up: Everstep's head, a probe, or nobody because there is only one."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Protocol

import jax
import numpy as np


class Tell(Protocol):
    """Takes news."""

    def __call__(self, index: int, up: bool, why: str = "", leaving: bool = False) -> None:
        """index: of a slice. why: it is down, if that is known. leaving: it has been told to go, and will soon be down."""


_PROBE_SECONDS = 1.0  # between probes while somebody waits
_AGAIN_SECONDS = 0.5  # until the head is asked again when its stream of events has broken


class Source(Protocol):
    """Tells of changes."""

    @property
    def pause(self) -> float | None:
        """Seconds after which somebody who waits must ask again. None: he is told."""

    def start(self, tell: Tell) -> None:
        """Tell how things are, and from now on how they change."""

    def refresh(self) -> None:
        """Somebody wants to know."""

    def close(self) -> None:
        """Stop telling."""


def find(slices: Mapping[int, Sequence[jax.Device]]) -> Source:
    """The best there is for these devices."""
    (first, *_), *_ = slices.values()
    target = os.environ.get("JAX_BACKEND_TARGET", "")
    if target.startswith("grpc://") and first.client.runtime_type.startswith("proxy"):
        from everstep.control import client  # imports gRPC
        from everstep.wire.errors import Failure

        try:
            return Head(target.removeprefix("grpc://"), client)
        except Failure:
            pass  # another server of the protocol
    return Probe(slices) if len(slices) > 1 else Nobody()


class Nobody:
    """All are up, always."""

    pause = None

    def start(self, tell: Tell) -> None: ...

    def refresh(self) -> None: ...

    def close(self) -> None: ...


class Head:
    """Everstep's head, by its stream of events."""

    pause = None

    def __init__(self, target: str, client: ModuleType) -> None:
        """target: for gRPC. client: everstep.control.client. Raises Failure if no head of ours answers there."""
        status = client.status(target)
        self._up = {each["slice"]: each["up"] for each in status["slices"]}
        self._target = target
        self._client = client
        self._last = status["last_event"]
        self._events = client.Events(target, after=self._last)
        self._why: dict[int, str] = {}
        self._closed = threading.Event()

    def start(self, tell: Tell) -> None:
        for index, up in self._up.items():
            tell(index, up)
        threading.Thread(target=self._follow, args=(tell,), name="everstep slices", daemon=True).start()

    def refresh(self) -> None: ...

    def close(self) -> None:
        self._closed.set()
        self._events.close()

    def _follow(self, tell: Tell) -> None:
        """For ever: where the stream has broken it goes on with what came after the last event that was heard."""
        while True:
            for event in self._events:
                self._last = event.number
                if event.kind == "lost":
                    self._why[event.slice] = event.message
                elif event.kind == "leaving":
                    tell(event.slice, True, leaving=True)
                elif event.kind in ("slice up", "slice down"):
                    tell(event.slice, event.kind == "slice up", self._why.get(event.slice, ""))
            self._events.close()
            if self._closed.wait(_AGAIN_SECONDS):
                return
            self._events = self._client.Events(self._target, after=self._last)


class Probe:
    """A small computation on a device of each slice."""

    pause = _PROBE_SECONDS

    def __init__(self, slices: Mapping[int, Sequence[jax.Device]]) -> None:
        self._slices = slices
        self._tell: Tell = lambda index, up, why="", leaving=False: None
        self._closed = False

    def start(self, tell: Tell) -> None:
        self._tell = tell

    def refresh(self) -> None:
        if self._closed:
            return
        arrays = {index: [jax.device_put(np.float32(0), device) for device in devices] for index, devices in self._slices.items()}
        for index, asked in arrays.items():  # all are under way before the first is waited for
            try:
                for array in asked:
                    array.block_until_ready()
                self._tell(index, True)
            except jax.errors.JaxRuntimeError as error:
                if "DATA_LOSS" not in str(error):
                    raise
                self._tell(index, False)

    def close(self) -> None:
        self._closed = True
