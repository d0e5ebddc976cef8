"""Run directories: private, held by one head, removed whoever dies."""

from __future__ import annotations

import contextlib
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from everstep.cli import rundirectory
from everstep.cli.errors import UsageError
from everstep.cli.rundirectory import RunDirectory


@pytest.fixture(autouse=True)
def root(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "everstep"


def hold_and_die(name: str) -> pathlib.Path:
    """Have another process claim the name and be killed. Its shared directory."""
    script = f"""
import os, pathlib, signal
from everstep.cli.rundirectory import RunDirectory
directory = RunDirectory.of({name!r})
with directory.claim():
    print(directory.make_shared(None), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    output = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False).stdout
    return pathlib.Path(output.strip())


def test_it_is_private_and_gone_in_the_end(root: pathlib.Path) -> None:
    directory = RunDirectory.of("a")
    with directory.claim():
        shared = directory.make_shared(None)
        for path in (root, directory.path, shared):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        (shared / "lt_1").write_bytes(b"data")
    assert not directory.path.exists()
    assert not shared.exists()


def test_it_is_gone_after_an_error_too() -> None:
    directory = RunDirectory.of("a")
    with contextlib.suppress(ZeroDivisionError), directory.claim():
        raise ZeroDivisionError
    assert not directory.path.exists()


def test_a_name_is_held_by_one_head() -> None:
    with RunDirectory.of("a").claim():
        with pytest.raises(UsageError, match="in use"), RunDirectory.of("a").claim():
            pass
        with RunDirectory.of("b").claim():
            assert [directory.name for directory in rundirectory.running()] == ["a", "b"]
    assert rundirectory.running() == []


def test_what_a_killed_head_leaves_is_found_and_removed() -> None:
    shared = hold_and_die("a")
    directory = RunDirectory.of("a")
    assert directory.path.exists()
    assert shared.exists()
    assert not directory.is_running
    assert rundirectory.remove_if_stale(directory.path)
    assert not directory.path.exists()
    assert not shared.exists()


def test_the_next_head_removes_what_any_killed_one_has_left() -> None:
    shared = hold_and_die("a")
    with RunDirectory.of("b").claim():
        assert not RunDirectory.of("a").path.exists()
        assert not shared.exists()


def test_the_directory_of_a_running_head_is_not_removed() -> None:
    directory = RunDirectory.of("a")
    with directory.claim():
        assert not rundirectory.remove_if_stale(directory.path)
        assert directory.path.exists()


def test_nothing_there_is_as_good_as_removed() -> None:
    assert rundirectory.remove_if_stale(RunDirectory.of("never").path)


def test_a_path_too_long_for_a_socket_is_told(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(UsageError, match="107 are possible"), RunDirectory.of("a").claim():
        pass
    assert list(deep.iterdir()) == []


def test_a_place_that_is_not_private_is_refused(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root.symlink_to(elsewhere)
    with pytest.raises(UsageError, match="not a directory of yours"), RunDirectory.of("a").claim():
        pass


def test_open_permissions_are_taken_back(root: pathlib.Path) -> None:
    root.mkdir()
    root.chmod(0o777)
    with RunDirectory.of("a").claim():
        assert stat.S_IMODE(root.stat().st_mode) == 0o700


def test_a_shared_directory_elsewhere(tmp_path: pathlib.Path) -> None:
    directory = RunDirectory.of("a")
    with directory.claim():
        assert directory.make_shared(tmp_path).parent == tmp_path
    assert not [path for path in tmp_path.iterdir() if path.name != "everstep"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_shared_directory_where_none_can_be() -> None:
    directory = RunDirectory.of("a")
    with directory.claim(), pytest.raises(UsageError, match="no shared directory can be made"):
        directory.make_shared(pathlib.Path("/"))


def test_without_a_runtime_directory_it_is_below_temp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert rundirectory.root().name == f"everstep-{os.getuid()}"
