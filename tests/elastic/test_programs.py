"""Programs made before they are needed."""

from __future__ import annotations

import threading

import pytest
from elastic.test_running import Scene

from everstep.elastic import Programs


def ids(devices: list[object]) -> tuple[int, ...]:
    return tuple(device.id for device in devices)  # type: ignore[attr-defined]


def test_made_once_for_each_choice() -> None:
    scene, made = Scene(), []
    programs = Programs(scene.slices, lambda devices: made.append(ids(devices)) or len(made))
    everything = [device for each in scene.slices.all for device in each.devices]
    assert [programs.get(everything), programs.get(everything[:2]), programs.get(everything)] == [1, 2, 1]
    assert made == [(0, 1, 2, 3, 4, 5), (0, 1)]


def test_warmed_for_what_may_be_left() -> None:
    scene, made = Scene(), []
    programs = Programs(scene.slices, lambda devices: made.append(ids(devices)))
    programs.warm()
    programs.wait()
    assert made == [(0, 1, 2, 3, 4, 5), (0, 1, 2, 3), (0, 1, 4, 5), (2, 3, 4, 5)]
    programs.warm(lost=2)
    programs.wait()
    assert made[4:] == [(0, 1), (2, 3), (4, 5)]


@pytest.mark.parametrize(("options", "count"), [({"enabled": False}, 0), ({"most": 2}, 2)])
def test_bounds(options: dict[str, int], count: int) -> None:
    scene, made = Scene(), []
    programs = Programs(scene.slices, made.append, **options)  # type: ignore[arg-type]
    programs.warm()
    programs.wait()
    assert len(made) == count


def test_who_needs_what_is_being_made_waits_for_it() -> None:
    scene, go, made = Scene(), threading.Event(), []

    def make(devices: list[object]) -> int:
        go.wait(20)
        made.append(ids(devices))
        return len(made)

    programs = Programs(scene.slices, make)  # type: ignore[arg-type]
    programs.warm(lost=0)
    everything = [device for each in scene.slices.all for device in each.devices]
    threading.Timer(0.05, go.set).start()
    assert programs.get(everything) == 1
    programs.wait()
    assert len(made) == 1


def test_what_cannot_be_made_is_told_where_it_is_needed_and_tried_again() -> None:
    scene, calls = Scene(), []

    def make(devices: list[object]) -> str:
        calls.append(devices)
        if len(calls) < 3:
            raise ValueError("too large")
        return "made"

    programs = Programs(scene.slices, make)  # type: ignore[arg-type]
    programs.warm(lost=0)
    programs.wait()
    with pytest.raises(ValueError, match="too large"):
        programs.get(scene.slices.all[0].devices)
    assert programs.get(scene.slices.all[0].devices) == "made"


def test_closed() -> None:
    scene, made = Scene(), []
    programs = Programs(scene.slices, made.append)  # type: ignore[arg-type]
    programs.close()
    programs.warm()
    programs.wait()
    assert made == []
