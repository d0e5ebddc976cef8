"""The matrix: every case of programs/ returns on Everstep what it returns on plain CPU JAX with as many devices."""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from e2e import outcomes
from e2e.clusters import Layout, plain
from e2e.conftest import GetCluster

_ONE_WORKER = Layout(1, 1, 4)
_LAYOUTS = [_ONE_WORKER, Layout(1, 2, 2), Layout(1, 4, 1)]
_CASES = [(file.stem, case) for file in sorted(outcomes.PROGRAMS.glob("*.py")) for case in outcomes.cases(file.stem)]
_AT_ONCE = 2  # program files that run at the same time

# Across workers, sums may be taken in another order. Relative to the largest element of an array.
_TOLERANCE = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-5, np.dtype(np.float16): 4e-3, np.dtype(ml_dtypes.bfloat16): 3e-2}

Outcome = dict[str, Any]
GetOutcomes = Callable[[Layout | None, str], dict[str, Outcome]]


@pytest.fixture(scope="session")
def collected(request: pytest.FixtureRequest, cluster: GetCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GetOutcomes]:
    """The outcomes of a program file on a layout (None: plain JAX). All that the session needs are set going at once."""

    def collect(layout: Layout | None, program: str) -> dict[str, Outcome]:
        environment = plain() if layout is None else cluster(layout.slices, layout.workers_per_slice, layout.devices_per_worker).environment
        return outcomes.collect(program, environment, tmp_path_factory.mktemp(f"{layout}-{program}"))

    wanted = [
        item.callspec.params
        for item in request.session.items
        if hasattr(item, "callspec") and {"program", "layout"} <= item.callspec.params.keys()
    ]
    for layout in dict.fromkeys(params["layout"] for params in wanted):
        cluster(layout.slices, layout.workers_per_slice, layout.devices_per_worker)  # here: threads must not start two
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        submit = functools.cache(lambda layout, program: pool.submit(collect, layout, program))
        for params in wanted:
            submit(None, params["program"])
            submit(params["layout"], params["program"])
        yield lambda layout, program: submit(layout, program).result()
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("layout", _LAYOUTS, ids=str)
@pytest.mark.parametrize(("program", "case"), _CASES, ids=[f"{program}.{case}" for program, case in _CASES])
@pytest.mark.timeout(600)  # the first test of a file waits for it, and for those before it
def test_same_as_plain_jax(program: str, case: str, layout: Layout, collected: GetOutcomes) -> None:
    expected, got = collected(None, program)[case], collected(layout, program)[case]
    assert expected["error"] is None, f"on plain JAX: {expected['error']}"
    assert got["error"] is None, got["error"]
    assert list(got["leaves"]) == list(expected["leaves"])
    different = [
        f"{path}: {difference}" for path, leaf in got["leaves"].items() if (difference := _compare(leaf, expected["leaves"][path], layout))
    ]
    assert not different, "\n".join(different)


def _compare(got: Any, expected: Any, layout: Layout) -> str:
    """How they differ, "" if they don't, beyond what this layout may round differently."""
    if not isinstance(expected, np.ndarray | np.generic):
        return "" if type(got) is type(expected) and got == expected else f"{got!r} is not {expected!r}"
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} is not {expected.dtype}{list(expected.shape)}"
    if _bits(got) == _bits(expected):
        return ""
    real = expected.real.dtype
    if layout == _ONE_WORKER or real not in _TOLERANCE:
        return f"other bits:\n{got}\nis not\n{expected}"
    wide = np.complex128 if np.iscomplexobj(expected) else np.float64
    got, expected = got.astype(wide), expected.astype(wide)
    limit = _TOLERANCE[real] * np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
    return "" if np.allclose(got, expected, rtol=0, atol=limit, equal_nan=True) else f"{got}\nis not close to\n{expected}"


def _bits(array: np.ndarray) -> bytes:
    if array.dtype.name in ("int2", "int4", "uint2", "uint4"):  # a byte each, of which the upper bits mean nothing
        array = array.astype(np.int8)
    return array.tobytes()
