"""Real workers. Those that a test only uses are shared by the module; those that it harms are its own."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import Artifact, Head, make_artifacts


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Artifact]:
    return make_artifacts(tmp_path_factory.mktemp("artifacts"))


@pytest.fixture
def head(tmp_path: pathlib.Path, artifacts: dict[str, Artifact]) -> Iterator[Head]:
    """A head without workers."""
    head = Head(tmp_path, artifacts)
    yield head
    head.close()


@pytest.fixture(scope="module")
def solo(tmp_path_factory: pytest.TempPathFactory, artifacts: dict[str, Artifact]) -> Iterator[Head]:
    """One worker with two devices, in a world."""
    head = Head(tmp_path_factory.mktemp("solo"), artifacts)
    head.workers(1)
    head.form()
    yield head
    head.close()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, artifacts: dict[str, Artifact]) -> Iterator[Head]:
    """Two workers with two devices each, in a world."""
    head = Head(tmp_path_factory.mktemp("pair"), artifacts)
    head.workers(2)
    head.form()
    yield head
    head.close()
