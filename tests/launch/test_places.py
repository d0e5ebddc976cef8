"""Where workers go on a cluster, and how it is told what is missing."""

from __future__ import annotations

import dataclasses

import pytest

from everstep.launch.places import Place, Places, lacking, resources
from everstep.launch.seam import WorkerSpec

GPU = {"CPU": 1.0, "GPU": 8.0}


def spec(slice_index: int, worker: int = 0) -> WorkerSpec:
    return WorkerSpec(f"s{slice_index}w{worker}", slice_index, worker, 1, 1, "host:1", "token")


SPARE = dataclasses.replace(spec(0), name="spare1", incarnation=0, spare=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("GPU=8", GPU), ("CPU=0.5", {"CPU": 0.5}), ("CPU=0,TPU=4", {"TPU": 4}), ("memory=1e9", {"CPU": 1, "memory": 1e9})],
)
def test_resources(text: str, expected: dict[str, float]) -> None:
    assert resources(text) == expected


@pytest.mark.parametrize("text", ["", "GPU", "GPU=", "GPU=eight", "GPU=-1", "=3", "GPU=nan", "GPU=inf", "CPU=0"])
def test_no_resources(text: str) -> None:
    with pytest.raises(ValueError):
        resources(text)


def test_each_has_its_place_and_comes_back_to_it() -> None:
    places = Places(slices=2, workers_per_slice=2, spares=1)
    assert places.groups == [2, 2, 1]
    assert [places.take(spec(index, worker)) for index in range(2) for worker in range(2)] == [
        Place(0, 0),
        Place(0, 1),
        Place(1, 0),
        Place(1, 1),
    ]
    assert places.take(SPARE) == Place(2, 0)
    places.free(Place(1, 0))
    assert places.take(spec(1, 0)) == Place(1, 0)


def test_a_spare_gets_the_place_of_the_worker_that_a_spare_has_replaced() -> None:
    places = Places(slices=2, workers_per_slice=1, spares=1)
    taken = [places.take(spec(0)), places.take(spec(1)), places.take(SPARE)]
    places.free(taken[0])  # it has died, and the spare is s0w0 now
    assert places.take(SPARE) == Place(0, 0)
    places.free(taken[2])  # the former spare has died: its own place is taken
    assert places.take(spec(0)) == Place(2, 0)
    with pytest.raises(OSError, match="more processes than places"):
        places.take(spec(1))


@pytest.mark.parametrize(
    ("count", "placement", "nodes", "free", "expected"),
    [
        (1, "pack", [{"CPU": 4, "GPU": 4}], {"CPU": 4, "GPU": 4}, "GPU=8 on one node; the nodes have 4"),
        (1, "pack", [], {}, "CPU=1 on one node; the nodes have none and GPU=8 on one node; the nodes have none"),
        (2, "pack", [GPU | {"CPU": 9}] * 2, {"CPU": 18, "GPU": 8}, "GPU=16; 8 of 16 are free"),
        (2, "strict_pack", [GPU | {"CPU": 9}] * 2, {"CPU": 18, "GPU": 16}, "GPU=16 on one node; the nodes have 8, 8"),
        (2, "strict_spread", [GPU, {"CPU": 9}], {"CPU": 10, "GPU": 8}, "GPU=8 on each of 2 nodes; the nodes have 8, 0"),
        (1, "spread", [GPU] * 2, {"CPU": 2, "GPU": 8}, "CPU=1, GPU=8 on one node; so much is free, but not together"),
    ],
)
def test_what_is_missing(count: int, placement: str, nodes: list[dict[str, float]], free: dict[str, float], expected: str) -> None:
    assert lacking(GPU, count, placement, nodes, free) == expected
