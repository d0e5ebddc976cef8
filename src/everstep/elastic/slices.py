"""Which slices exist, and which are up."""

from __future__ import annotations

import dataclasses
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

import jax

from everstep.elastic import sources

log = logging.getLogger(__name__)

_NEWS_SECONDS = 5.0


@dataclasses.dataclass(frozen=True, slots=True)
class Slice:
    """Devices that are lost and come back together."""

    index: int
    devices: tuple[jax.Device, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A slice has come or gone. up: the indices of those that are up since."""

    slice: int
    came: bool
    up: frozenset[int]


class Slices:
    """The slices of JAX's devices, watched as long as this object is open.

    On Everstep the head tells of each change as it happens; on another backend with several slices they are probed with small computations
    when somebody waits; where there is only one slice it is always up.
    """

    def __init__(self, devices: Sequence[jax.Device] | None = None, source: sources.Source | None = None) -> None:
        """devices: all of JAX's default backend if not given. source: who tells; found by itself if not given."""
        by_index: dict[int, list[jax.Device]] = {}
        for device in jax.devices() if devices is None else devices:
            by_index.setdefault(getattr(device, "slice_index", 0), []).append(device)
        self.all = tuple(Slice(index, tuple(by_index[index])) for index in sorted(by_index))
        self._changed = threading.Condition()
        self._up = frozenset(by_index)
        self._losses = dict.fromkeys(by_index, 0)
        self._why = dict.fromkeys(by_index, "")
        self._leaving: frozenset[int] = frozenset()
        self._callbacks: list[Callable[[Change], None]] = []
        self._source = sources.find({s.index: s.devices for s in self.all}) if source is None else source
        self._source.start(self._tell)

    def __enter__(self) -> Slices:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Watch no longer."""
        self._source.close()

    @property
    def up(self) -> tuple[Slice, ...]:
        """Those that are up, by index."""
        self._source.refresh()
        with self._changed:
            return tuple(each for each in self.all if each.index in self._up)

    @property
    def leaving(self) -> tuple[Slice, ...]:
        """Those of them that have been told to go and will soon be down: now is the time to save what only they hold."""
        with self._changed:
            return tuple(each for each in self.all if each.index in self._leaving)

    def losses(self, index: int) -> int:
        """How often that slice has gone down while it was watched."""
        with self._changed:
            return self._losses[index]

    def why(self, index: int) -> str:
        """Why that slice has gone down last; "" if nobody has said."""
        with self._changed:
            return self._why[index]

    def wait(self, count: int | None = None, timeout: float | None = None) -> tuple[Slice, ...]:
        """Wait until so many slices are up (None: all) and return those that are.

        timeout: seconds. Raises TimeoutError, which tells which slices are missing; ValueError if there are not so many.
        """
        return self.wait_with_losses(count, timeout)[0]

    def wait_with_losses(self, count: int | None = None, timeout: float | None = None) -> tuple[tuple[Slice, ...], dict[int, int]]:
        """`wait`, and how often each slice had gone down at that moment."""
        wanted = len(self.all) if count is None else count
        if not 0 < wanted <= len(self.all):
            raise ValueError(f"there are {len(self.all)} slices: {wanted} can't be waited for")
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._source.refresh()
            with self._changed:
                up, losses = tuple(each for each in self.all if each.index in self._up), dict(self._losses)
            if len(up) >= wanted:
                return up, losses
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                missing = sorted({each.index for each in self.all} - {each.index for each in up})
                raise TimeoutError(f"{len(up)} of {wanted} slices are up after {timeout} s; missing: {', '.join(map(str, missing))}")
            with self._changed:
                if len(self._up) < wanted:
                    pause = self._source.pause
                    self._changed.wait(left if pause is None else pause if left is None else min(left, pause))

    def wait_for_loss(self, index: int, known: int) -> None:
        """An error has told of a loss: wait until the watch knows of it as well, which comes another way. known: losses before."""
        with self._changed:
            self._changed.wait_for(lambda: self._losses[index] > known, _NEWS_SECONDS)

    def on_change(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Call back, in another thread, whenever a slice comes or goes. Returns what ends that."""
        with self._changed:
            self._callbacks.append(callback)

        def remove() -> None:
            with self._changed:
                self._callbacks.remove(callback)

        return remove

    def changes(self) -> Iterator[Change]:
        """Each change from now on, for ever."""
        changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        remove = self.on_change(changes.put)
        try:
            while True:
                yield changes.get()
        finally:
            remove()

    def _tell(self, index: int, up: bool, why: str = "", leaving: bool = False) -> None:
        """The source has news, perhaps old ones. See `sources.Tell`."""
        with self._changed:
            if leaving and index in self._up:
                self._leaving |= {index}
            if index not in self._losses or (index in self._up) == up:
                return
            self._leaving -= {index}
            self._up = self._up | {index} if up else self._up - {index}
            self._losses[index] += not up
            self._why[index] = self._why[index] if up else why
            change = Change(index, up, self._up)
            callbacks = tuple(self._callbacks)
            self._changed.notify_all()
        for callback in callbacks:
            try:
                callback(change)
            except Exception:
                log.exception("%r, called because a slice has %s", callback, "come" if up else "gone")
