"""Programs made before they are needed: for the slices that may be left after a loss, in the background."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

import jax

from everstep.elastic.once import Once
from everstep.elastic.slices import Slice, Slices

log = logging.getLogger(__name__)

T = TypeVar("T")


class Programs(Generic[T]):
    """What a loop needs for given devices (a compiled step, say), made once for each choice of devices.

        programs = elastic.Programs(slices, lambda devices: compile_step(Mesh(np.array(devices), ("data",))))

        def train(attempt):
            step = programs.get(attempt.devices)   # there already, if it was warmed
            ...
            programs.warm()                        # when training is steady

    Making should end in `jax.jit(...).lower(...).compile()`: tracing and compiling are what takes time after a resize.
    """

    def __init__(self, slices: Slices, make: Callable[[list[jax.Device]], T], *, enabled: bool = True, most: int = 16) -> None:
        """make: from devices; may be called in another thread, but in one at a time.

        enabled: False warms nothing. most: so many choices are warmed.
        """
        self._slices = slices
        self._make = make
        self._enabled = enabled
        self._most = most
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._made: Once[T] = Once()
        self._warming: threading.Thread | None = None
        self._closed = False

    def get(self, devices: Sequence[jax.Device]) -> T:
        """For these devices; made now if it has not been. Raises what making raises, and makes it anew the next time."""
        return self._get(list(devices))

    def warm(self, lost: int = 1) -> None:
        """Begin to make what is needed with up to `lost` slices less, one after the other, and return. Nothing if that is under way."""
        with self._lock:
            if not self._enabled or self._closed or (self._warming is not None and self._warming.is_alive()):
                return
            choices = list(itertools.islice(_choices(self._slices.all, lost), self._most))
            self._warming = threading.Thread(target=self._warm, args=(choices,), name="warming programs", daemon=True)
            self._warming.start()

    def wait(self) -> None:
        """Until what was begun is made."""
        if self._warming is not None:
            self._warming.join()

    def close(self) -> None:
        """Begin nothing any more."""
        self._closed = True

    def _warm(self, choices: Iterable[Sequence[Slice]]) -> None:
        for choice in choices:
            if self._closed:
                return
            try:
                self._get([device for each in choice for device in each.devices])
            except Exception as error:  # what is wrong with it is told when it is needed
                log.info("can't be made for slices %s: %s", [each.index for each in choice], error)

    def _get(self, devices: list[jax.Device]) -> T:
        def make() -> T:
            with self._making:
                return self._make(devices)

        return self._made.get(tuple(device.id for device in devices), make)


def _choices(slices: Sequence[Slice], lost: int) -> Iterable[Sequence[Slice]]:
    """All of them, then all but one, all but two..."""
    for less in range(min(lost, len(slices) - 1) + 1):
        yield from itertools.combinations(slices, len(slices) - less)
