"""Every test runs with run directories of its own, and the session must leave nothing behind."""

from __future__ import annotations

import pathlib
import re
import shutil
import signal
import tempfile
import uuid
from collections.abc import Callable, Iterator

import psutil
import pytest
from processes import SESSION_MARK, Running, living, wait_for

_SHARED_MEMORY = pathlib.Path("/dev/shm")

# Marked `once`: one version of Python and JAX is enough for what does not depend on it, or costs much and depends on it little.
_ONCE = re.compile(
    r"tests/(cli|control|launch|observe|train)/|test_pathwaysutils|e2e/test_persistence|test_storage|test_examples|test_the_trainer|1x4x1\]"
    r"|test_failures.*(put|get|assemble|delete|successor|another one|starts|several workers)|whichever.*resize"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--launcher", choices=("local", "ray"), default="local", help="who starts the workers in the tests of failures")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _ONCE.search(item.nodeid):
            item.add_marker("once")


@pytest.fixture(scope="session", autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fails the session if it leaves a process, a socket, a run directory or a shared-memory file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored when started in the background, and children inherit that
    runtime = pathlib.Path(tempfile.mkdtemp(prefix="evt-"))  # short: paths of sockets must be
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        patch.setenv(SESSION_MARK, uuid.uuid4().hex)
        before = _shared_memory()
        yield
        found = wait_for(lambda: _leftovers(runtime, before), until=lambda found: not found)
    shutil.rmtree(runtime)
    assert not found, f"left behind: {found}"


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Start `everstep COMMAND ARGUMENTS` in the background: `start("run", "--slices", "2", "--", "python", ...)`."""
    started: list[Running] = []

    def start(command: str, *arguments: str, head: str | None = None) -> Running:
        started.append(Running(command, *arguments, head=head))
        return started[-1]

    yield start
    for running in started:
        running.close()


def _leftovers(runtime: pathlib.Path, before: set[str]) -> list[str]:
    return [
        *(f"process {pid}: {line}" for pid, line in living().items()),
        *(str(path) for path in runtime.rglob("*") if path != runtime / "everstep"),
        *(name for name in _shared_memory() - before if not _is_of_another_session(name)),
    ]


def _shared_memory() -> set[str]:
    return {path.name for path in _SHARED_MEMORY.glob("everstep-*")} if _SHARED_MEMORY.is_dir() else set()


def _is_of_another_session(name: str) -> bool:
    """Whether a head lives that could have made that directory: it carries the head's name. Ours are all gone by now."""
    head = name.removeprefix("everstep-").rpartition("-")[0]
    return any(head in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))
