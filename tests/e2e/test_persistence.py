"""Workers save and restore arrays themselves (ENABLE_PATHWAYS_PERSISTENCE=1): with Orbax, to S3, with storage that hangs, when they die."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from e2e import clusters
from e2e.conftest import GetCluster
from e2e.faults import run
from processes import Running

from everstep.worker.faults import Fault

_PROGRAMS = pathlib.Path(__file__).with_name("persistence")
_STATE = os.fspath(_PROGRAMS / "orbax_state.py")
_SWITCH = "ENABLE_PATHWAYS_PERSISTENCE"


def test_what_workers_save_orbax_restores_and_the_other_way_round(cluster: GetCluster, tmp_path: pathlib.Path) -> None:
    shared = cluster(2, 1, 2)
    by_workers, by_orbax, database = (os.fspath(tmp_path / name) for name in ("workers", "orbax", "orbax-ocdbt"))

    def on_everstep(*actions: str) -> None:
        assert shared.run(_STATE, *actions, **{_SWITCH: "1"}).stdout == "CloudPathwaysArrayHandler\n"

    on_everstep(f"save={by_workers}", f"restore={by_workers}")
    plain = clusters.run(clusters.plain(), _STATE, f"restore={by_workers}", f"save={by_orbax}", f"save={database}")
    assert plain.stdout == "ArrayHandler\n"
    on_everstep(f"restore={by_orbax}", f"restore={database}")


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a server on loopback, for whatever is started from now on."""
    moto = pytest.importorskip("moto.server")
    server = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    endpoint = f"http://127.0.0.1:{port}"
    for name, value in {"ENDPOINT_URL": endpoint, "ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "key", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/bucket", method="PUT")):
        pass
    yield "s3://bucket"
    server.stop()


def test_s3_and_storage_that_hangs(s3: str, start: Callable[..., Running], tmp_path: pathlib.Path) -> None:
    program = os.fspath(_PROGRAMS / "storage.py")
    running = start("run", "--slices", "2", "--", sys.executable, program, f"{s3}/checkpoints/1", os.fspath(tmp_path))
    code, output, errors = running.finish(seconds=120)
    assert code == 0, f"{output}\n{errors}"
    missing, shape, dtype, bucket, hanging = output.splitlines()
    assert missing == "INVALID_ARGUMENT: restoring biases from s3://bucket/checkpoints/1: there is no such array"
    assert shape.endswith("it is stored as float32[4, 6], not as float32[4, 4]")
    assert dtype.endswith("it is stored as float32[4, 6], not as int32[4, 6]")
    assert bucket == "INVALID_ARGUMENT: saving weights to s3://elsewhere/1: NoSuchBucket: The specified bucket does not exist"
    assert re.fullmatch(rf"UNKNOWN: saving to {tmp_path} has not ended in 1.5 s; still at it: s0w0, s1w0", hanging)


def test_a_worker_that_dies_while_it_saves_or_restores(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Each of its four arrays is one write and one read. The second save is not committed, the first one stays."""
    monkeypatch.setenv(_SWITCH, "1")
    faults = [Fault("s1w0", "write", 4 + 3), Fault("s1w0", "read", 3, incarnation=2)]
    (saving, restoring, last), _ = run(monkeypatch, faults, ("--slices", "2"), "checkpoint.py", os.fspath(tmp_path / "checkpoints"))
    assert re.search(r"DATA_LOSS: worker s1w0 \(slice 1, incarnation 1, pid \d+\) is lost: signal 9 \(SIGKILL\)", saving), saving
    assert re.search(r"DATA_LOSS: worker s1w0 \(slice 1, incarnation 2, pid \d+\) is lost: signal 9 \(SIGKILL\)", restoring), restoring
    assert last == "done"
