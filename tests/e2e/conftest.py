"""Clusters that live for the whole session, one to a layout: starting one takes a second, and programs must not disturb each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest
from e2e.clusters import Cluster, Layout

GetCluster = Callable[[int, int, int], Cluster]


@pytest.fixture(scope="session")
def cluster(nothing_left_behind: None) -> Iterator[GetCluster]:
    """The cluster of a layout: `cluster(slices, workers_per_slice, devices_per_worker)`."""
    started: list[Cluster] = []

    @functools.cache
    def get(slices: int, workers_per_slice: int, devices_per_worker: int) -> Cluster:
        started.append(Cluster(Layout(slices, workers_per_slice, devices_per_worker)))
        return started[-1]

    yield get
    for one in started:
        one.close()
