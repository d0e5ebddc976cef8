"""Which errors lead to another call, with which slices, and when no more. On plain JAX devices; who tells of slices is a double."""

from __future__ import annotations

import dataclasses
import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator

import jax
import pytest

from everstep import elastic
from everstep.elastic import Attempt, GaveUpError, SliceLostError, Slices, SlicesChanged, errors, pause_and_resume, replica_resize
from everstep.elastic.sources import Tell

LOST = "DATA_LOSS: worker s1w0 (slice 1, incarnation 2, pid 7) is lost: signal 9 (SIGKILL), at 12:00:00.000 UTC"


@dataclasses.dataclass(frozen=True)
class FakeDevice:
    id: int
    slice_index: int


class FakeSource:
    """Tells what the test says."""

    pause = None
    tell: Tell

    def start(self, tell: Tell) -> None:
        self.tell = tell

    def refresh(self) -> None: ...

    def close(self) -> None: ...


class Scene:
    def __init__(self, slices: int = 3) -> None:
        self.source = FakeSource()
        devices = [FakeDevice(2 * index + i, index) for index in range(slices) for i in range(2)]
        self.slices = Slices(devices, self.source)  # type: ignore[arg-type]

    def lose(self, index: int = 1) -> None:
        self.source.tell(index, False)
        raise jax.errors.JaxRuntimeError(LOST.replace("s1w0", f"s{index}w0").replace("slice 1", f"slice {index}"))

    def later(self, index: int, up: bool) -> None:
        threading.Timer(0.05, self.source.tell, (index, up)).start()


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.slices.close()


def test_what_the_loop_returns(scene: Scene) -> None:
    def loop(attempt: Attempt) -> tuple[int, list[int]]:
        return attempt.number, [device.id for device in attempt.devices]

    assert elastic.run(loop, slices=scene.slices) == (1, [0, 1, 2, 3, 4, 5])


def test_pause_and_resume(scene: Scene) -> None:
    used: list[list[int]] = []

    def loop(attempt: Attempt) -> str:
        used.append([each.index for each in attempt.slices])
        attempt.boundary()
        if attempt.number == 1:
            scene.later(1, True)
            scene.lose(1)
        assert isinstance(attempt.history[0].error, SliceLostError)
        return "done"

    assert elastic.run(loop, pause_and_resume(), slices=scene.slices) == "done"
    assert used == [[0, 1, 2], [0, 1, 2]]


def test_replica_resize_and_growing_back(scene: Scene) -> None:
    used: list[list[int]] = []

    def loop(attempt: Attempt) -> str:
        used.append([each.index for each in attempt.slices])
        attempt.boundary()
        if attempt.number == 1:
            scene.lose(1)
        if attempt.number == 2:
            scene.source.tell(1, True)
            attempt.boundary()
        return "done"

    assert elastic.run(loop, replica_resize(), slices=scene.slices) == "done"
    assert used == [[0, 1, 2], [0, 2], [0, 1, 2]]


def test_not_growing(scene: Scene) -> None:
    def loop(attempt: Attempt) -> int:
        if attempt.number == 1:
            scene.lose(1)
        scene.source.tell(1, True)
        attempt.boundary()
        return len(attempt.slices)

    assert elastic.run(loop, replica_resize(grow=False), slices=scene.slices) == 2


def test_at_least(scene: Scene) -> None:
    scene.source.tell(0, False)

    def loop(attempt: Attempt) -> list[int]:
        if attempt.number == 1:
            scene.later(0, True)
            scene.lose(1)
        return [each.index for each in attempt.slices]

    assert elastic.run(loop, replica_resize(at_least=2), slices=scene.slices) == [0, 2]


@pytest.mark.parametrize(
    "error", [ValueError("a bug"), jax.errors.JaxRuntimeError("INTERNAL: a bug"), RuntimeError("DATA_LOSS: not JAX's"), KeyboardInterrupt()]
)
def test_whatever_else_comes_through_at_once(scene: Scene, error: BaseException) -> None:
    calls = []

    def loop(attempt: Attempt) -> None:
        calls.append(attempt)
        raise error

    with pytest.raises(type(error)) as raised:
        elastic.run(loop, slices=scene.slices)
    assert raised.value is error
    assert len(calls) == 1


def test_a_bug_while_a_loss_is_handled_is_a_bug(scene: Scene) -> None:
    def loop(attempt: Attempt) -> None:
        try:
            scene.lose(1)
        except jax.errors.JaxRuntimeError:
            {}["nothing"]

    with pytest.raises(KeyError):
        elastic.run(loop, slices=scene.slices)


def test_a_loss_that_a_library_has_wrapped(scene: Scene) -> None:
    def loop(attempt: Attempt) -> int:
        if attempt.number == 1:
            try:
                scene.lose(1)
            except jax.errors.JaxRuntimeError as error:
                raise OSError("the save has failed") from error
        return attempt.number

    assert elastic.run(loop, replica_resize(), slices=scene.slices) == 2


def test_a_loss_whose_error_was_swallowed_is_found_at_the_boundary(scene: Scene) -> None:
    def loop(attempt: Attempt) -> int:
        if attempt.number == 1:
            with pytest.raises(jax.errors.JaxRuntimeError):
                scene.lose(1)
            scene.source.tell(1, True)  # and it is even back
            attempt.boundary()
        return attempt.number

    assert elastic.run(loop, slices=scene.slices) == 2


def test_a_loss_found_at_the_boundary_tells_what_the_source_has_told(scene: Scene) -> None:
    def loop(attempt: Attempt) -> SliceLostError | SlicesChanged:
        if attempt.number == 1:
            scene.source.tell(1, False, LOST)
            scene.later(1, True)
            attempt.boundary()
        return attempt.history[0].error

    error = elastic.run(loop, slices=scene.slices)
    assert isinstance(error, SliceLostError)
    assert (error.worker, error.cause) == ("s1w0", "signal 9 (SIGKILL), at 12:00:00.000 UTC")


def test_no_progress_ends_it_with_the_history(scene: Scene) -> None:
    def loop(attempt: Attempt) -> None:
        if attempt.number == 1:
            attempt.boundary()
        scene.source.tell(1, True)
        scene.lose(2 if attempt.number % 2 else 0)

    with pytest.raises(GaveUpError, match=r"gave up: 3 losses in a row without a step between them\n") as raised:
        elastic.run(loop, replica_resize(max_without_progress=2), slices=scene.slices)
    assert [event.boundaries for event in raised.value.history] == [1, 0, 0, 0][: len(raised.value.history)]
    assert isinstance(raised.value.__cause__, SliceLostError)
    assert isinstance(raised.value.__cause__.__cause__, jax.errors.JaxRuntimeError)


def test_too_often_within_the_window(scene: Scene) -> None:
    def loop(attempt: Attempt) -> None:
        attempt.boundary()
        scene.later(1, True)
        scene.lose(1)

    with pytest.raises(GaveUpError, match="gave up: 3 losses within 60 s") as raised:
        elastic.run(loop, pause_and_resume(max_events=2, window=60), slices=scene.slices)
    assert len(raised.value.history) == 3


def test_slices_that_do_not_come_back(scene: Scene) -> None:
    def loop(attempt: Attempt) -> None:
        scene.lose(1)

    with pytest.raises(GaveUpError, match=r"2 of 3 slices are up after 0.1 s; missing: 1") as raised:
        elastic.run(loop, pause_and_resume(wait_timeout=0.1), slices=scene.slices)
    assert len(raised.value.history) == 1


def test_what_a_loop_held_is_let_go(scene: Scene) -> None:
    """The state of an attempt must not live on in the history: it would stay in the workers' memory."""
    held: list[weakref.ref[set[int]]] = []

    def loop(attempt: Attempt) -> int:
        gc.collect()
        assert [reference() for reference in held] == [None] * len(held)
        state = {attempt.number}
        held.append(weakref.ref(state))
        attempt.boundary()
        if attempt.number == 1:
            scene.lose(1)
        if attempt.number == 2:
            scene.source.tell(1, True)
            attempt.boundary()
        return len(attempt.history)

    assert elastic.run(loop, replica_resize(), slices=scene.slices) == 2


def test_a_callback_that_fails_does_not_end_the_watch(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.slices.on_change(lambda change: {}["nothing"])
    scene.source.tell(0, False)
    scene.source.tell(0, True)
    assert len(scene.slices.up) == 3
    assert "called because a slice has gone" in caplog.text


def test_what_a_loss_tells() -> None:
    error = SliceLostError.of(jax.errors.JaxRuntimeError(LOST))
    assert error is not None
    assert (error.slice, error.worker, error.incarnation) == (1, "s1w0", 2)
    assert error.cause == "signal 9 (SIGKILL), at 12:00:00.000 UTC"
    other = SliceLostError.of(jax.errors.JaxRuntimeError("DATA_LOSS: something else"))
    assert other is not None
    assert (other.slice, other.worker, other.incarnation, other.since) == (None, None, None, None)


@pytest.mark.parametrize(
    ("now", "cause", "since"),
    [
        ("12:00:01", "signal 9 (SIGKILL), at 12:00:00.250 UTC", "12:00:00.250"),
        ("12:00:01", "no heartbeat for 10.5 s, at 12:00:00.500 UTC", "11:59:50.000"),
        ("23:59:59", "connection closed, at 00:00:00.100 UTC", "+1 00:00:00.100"),  # that host's clock is a little ahead
        ("00:00:01", "connection closed, at 23:59:59.900 UTC", "-1 23:59:59.900"),
    ],
)
def test_since_when(monkeypatch: pytest.MonkeyPatch, now: str, cause: str, since: str) -> None:
    def seconds(text: str) -> float:
        day, _, clock = text.rpartition(" ")
        hours, minutes, rest = clock.split(":")
        return (20_000 + int(day or 0)) * 86_400 + int(hours) * 3600 + int(minutes) * 60 + float(rest)

    monkeypatch.setattr(errors.time, "time", lambda: seconds(now))
    assert SliceLostError(LOST.partition("signal")[0] + cause).since == pytest.approx(seconds(since), abs=1e-3)


@pytest.mark.parametrize(("options", "message"), [({"at_least": 0}, "at_least is 0"), ({"max_events": -1}, "max_events is -1")])
def test_policies_that_make_no_sense(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replica_resize(**options)


def test_waiting_for_more_than_there_are(scene: Scene) -> None:
    with pytest.raises(ValueError, match="there are 3 slices: 4 can't be waited for"):
        scene.slices.wait(4)


def test_changes_are_told(scene: Scene) -> None:
    told: list[tuple[int, bool, set[int]]] = []
    remove = scene.slices.on_change(lambda change: told.append((change.slice, change.came, set(change.up))))
    for up in (False, False, True):
        scene.source.tell(1, up)
    remove()
    scene.source.tell(0, False)
    assert told == [(1, False, {0, 2}), (1, True, {0, 1, 2})]
    changes = scene.slices.changes()
    scene.later(0, True)
    assert next(changes).slice == 0


def test_the_decorator(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    @elastic.elastic(replica_resize())
    def train(attempt: Attempt) -> int:
        """Trains."""
        return len(attempt.devices)

    assert train.__doc__ == "Trains."


def test_on_plain_jax_nothing_is_ever_lost() -> None:
    script = """
from everstep import elastic
def loop(attempt):
    attempt.boundary()
    return [d.id for d in attempt.devices], [s.index for s in attempt.slices]
print(elastic.run(loop, elastic.replica_resize()))
import sys
assert "grpc" not in sys.modules and "everstep.control" not in sys.modules
"""
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    result = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout == "([0, 1], [0])\n"


def test_everything_public_is_exported() -> None:
    public = {name for name, value in vars(elastic).items() if not name.startswith("_") and not isinstance(value, type(elastic))}
    assert public == set(elastic.__all__)


def test_slices_changed_is_for_the_runner() -> None:
    assert issubclass(SlicesChanged, elastic.ElasticError)
