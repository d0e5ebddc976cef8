"""Clusters that live for the whole session, one to a layout: starting one takes a second, and programs must not disturb each other."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pytest
from e2e import faults
from e2e.clusters import Cluster, Layout
from e2e.raycluster import RayCluster

GetCluster = Callable[[int, int, int], Cluster]
Options = tuple[str, ...]
Run = Callable[..., tuple[list[str], str]]


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


@pytest.fixture(scope="session")
def launcher(request: pytest.FixtureRequest, nothing_left_behind: None) -> Iterator[Options]:
    """The options of `everstep run` for the launcher that this session tests (pytest --launcher): on Ray two nodes for all tests."""
    if request.config.getoption("launcher") == "local":
        yield ()
        return
    nodes = RayCluster(nodes=2, cpus=4)
    yield ("--launcher", "ray", "--ray-address", nodes.address)
    nodes.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, launcher: Options) -> Run:
    """Run a program on workers that are let die: `run(faults, options, program, *arguments)`, as faults.run."""
    return lambda script, options, *program: faults.run(monkeypatch, script, (*launcher, *options), *program)
