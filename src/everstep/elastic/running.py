"""Runs a loop, and runs it again when devices are lost."""

from __future__ import annotations

import collections
import dataclasses
import functools
import logging
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

import jax

from everstep.elastic.errors import GaveUpError, SliceLostError, SlicesChanged
from everstep.elastic.policies import Policy, pause_and_resume
from everstep.elastic.slices import Slice, Slices

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """Why an attempt has ended. time: seconds since 1970. slices: those that it used. boundaries: how many it reached."""

    time: float
    error: SliceLostError | SlicesChanged
    slices: tuple[int, ...]
    boundaries: int

    def __str__(self) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(self.time))
        return f"{when}  on slices {', '.join(map(str, self.slices))}, after {self.boundaries} boundaries: {self.error}"


class Attempt:
    """One call of the loop. number: counts from 1. slices: those to use, by index. history: how the attempts before have ended."""

    def __init__(
        self, number: int, slices: tuple[Slice, ...], losses: dict[int, int], history: tuple[Event, ...], watched: Slices, grow: bool
    ) -> None:
        """losses: of each slice when this was decided."""
        self.number = number
        self.slices = slices
        self.history = history
        self.boundaries = 0
        self._watched = watched
        self._grow = grow
        self.losses = {each.index: losses[each.index] for each in slices}

    @property
    def devices(self) -> list[jax.Device]:
        """Those of the slices to use, slice by slice."""
        return [device for each in self.slices for device in each.devices]

    @property
    def leaving(self) -> tuple[Slice, ...]:
        """Those of the slices to use that have been told to go, and will soon be lost."""
        return tuple(each for each in self._watched.leaving if each.index in self.losses)

    def boundary(self) -> None:
        """The loop is between two steps, and could be called again from here.

        Raises SliceLostError if a slice that it uses has been lost, even if its error was swallowed on the way; SlicesChanged if more
        slices are up and the policy is to grow. Let both pass.
        """
        for index, losses in self.losses.items():
            if self._watched.losses(index) > losses:
                raise SliceLostError(self._watched.why(index) or f"slice {index} has been lost since this attempt began")
        self.boundaries += 1
        if self._grow and len(self.slices) < len(self._watched.all) and len(up := self._watched.up) > len(self.slices):
            raise SlicesChanged(f"slices {', '.join(str(each.index) for each in up)} are up")


def run(loop: Callable[[Attempt], T], policy: Policy | None = None, *, slices: Slices | None = None) -> T:
    """Call `loop` with an Attempt; again, as the policy says, when devices are lost or more are there; return what it returns.

    policy: pause and resume if not given. slices: to be watched; all of JAX's if not given.
    Only a loss of devices leads to another call: whatever else the loop raises comes through unchanged. Raises GaveUpError if the policy
    does not allow another call; its cause is the last loss.
    """
    policy = policy or pause_and_resume()
    if slices is None:
        with Slices() as slices:
            return run(loop, policy, slices=slices)
    history: list[Event] = []
    recent: collections.deque[float] = collections.deque()
    fruitless = 0
    while True:
        attempt = _attempt(policy, slices, history)
        try:
            return loop(attempt)
        except SlicesChanged as change:
            _forget_frames(change)
            history.append(_event(change, attempt))
            fruitless = 0
            log.warning("%s: called again, as %s", policy.name, change)
            continue
        except Exception as error:
            lost = SliceLostError.of(error)
            if lost is None:
                raise
            _forget_frames(error)
            _forget_frames(lost)
        if lost.slice in attempt.losses:
            slices.wait_for_loss(lost.slice, attempt.losses[lost.slice])
        history.append(_event(lost, attempt))
        fruitless = 0 if attempt.boundaries else fruitless + 1
        now = time.monotonic()
        recent.append(now)
        while now - recent[0] > policy.window:
            recent.popleft()
        if fruitless > policy.max_without_progress:
            raise GaveUpError(f"gave up: {fruitless} losses in a row without a step between them", history) from lost
        if len(recent) > policy.max_events:
            raise GaveUpError(f"gave up: {len(recent)} losses within {policy.window:.0f} s", history) from lost
        log.warning("%s after a loss of devices: %s", policy.name, lost)


def elastic(policy: Policy | None = None) -> Callable[[Callable[[Attempt], T]], Callable[[], T]]:
    """`run` as a decorator: `@elastic(replica_resize(at_least=2))` over the loop, which is then called without arguments."""

    def decorate(loop: Callable[[Attempt], T]) -> Callable[[], T]:
        @functools.wraps(loop)
        def call() -> T:
            return run(loop, policy)

        return call

    return decorate


def _attempt(policy: Policy, slices: Slices, history: list[Event]) -> Attempt:
    try:
        up, losses = slices.wait_with_losses(policy.at_least, policy.wait_timeout)
    except TimeoutError as error:
        raise GaveUpError(f"gave up: {error}", history) from error
    return Attempt(len(history) + 1, up, losses, tuple(history), slices, policy.grow)


def _forget_frames(error: BaseException | None) -> None:
    """History must not keep alive what the loop had in its variables: the state, above all."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _event(error: SliceLostError | SlicesChanged, attempt: Attempt) -> Event:
    return Event(time.time(), error, tuple(each.index for each in attempt.slices), attempt.boundaries)
