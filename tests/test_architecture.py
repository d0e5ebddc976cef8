"""The house rules that can be checked: arrows between rooms, sizes and names of files, what is public."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import pytest

import everstep

SOURCE = pathlib.Path(everstep.__file__).parent
LONGEST_FILE = 400  # lines
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "tools", "stuff"}

# Which rooms a room may import from. `cli` puts everything together.
ARROWS: dict[str, set[str]] = {
    "cli": {"control", "elastic", "frontend", "head", "launch", "train", "worker", "wire"},
    "control": {"observe", "wire"},
    "elastic": {"control", "wire"},  # for the program; only where it runs on a head
    "frontend": {"head", "wire"},
    "head": {"observe", "wire"},
    "jax_plugin": {"wire"},
    "launch": {"wire"},
    "observe": set(),
    "train": {"elastic"},
    "wire": set(),
    "worker": {"wire"},
}

# Only these may import these packages. Type hints count too: they tell what a room knows.
KEEPERS = {
    "jax": {"elastic", "jax_plugin", "train", "worker"},
    "jaxlib": {"jax_plugin", "worker"},
    "tensorstore": {"worker"},
    "grpc": {"cli", "control", "frontend", "jax_plugin"},
    "ray": {"launch"},
}

FILES = sorted(path for path in SOURCE.rglob("*.py"))
WRITTEN = [path for path in FILES if not path.name.endswith("_pb2.py")]


def room(path: pathlib.Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else ""


def imports(path: pathlib.Path) -> Iterator[str]:
    """All modules that a file imports, wherever in it, as dotted names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def name(path: pathlib.Path) -> str:
    return str(path.relative_to(SOURCE))


def test_every_room_has_its_arrows() -> None:
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    assert rooms == set(ARROWS)


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_arrows(path: pathlib.Path) -> None:
    ours = [module.split(".") for module in imports(path) if module.split(".")[0] == "everstep"]
    targets = {parts[1] for parts in ours if len(parts) > 1 and parts[1] in ARROWS}
    here = room(path)
    if here:
        assert targets - {here} <= ARROWS[here]
    else:
        assert targets <= {"cli"}
        assert not targets or path.name == "__main__.py"


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_keepers(path: pathlib.Path) -> None:
    for package in {module.split(".")[0] for module in imports(path)} & set(KEEPERS):
        assert room(path) in KEEPERS[package]


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_no_file_is_long(path: pathlib.Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


def test_nor_is_one_beside_the_source() -> None:
    root = pathlib.Path(__file__).parent.parent
    beside = [path for room in ("tests", "tools", "benchmarks", "examples") for path in (root / room).rglob("*.py")]
    assert beside
    assert [str(path.relative_to(root)) for path in beside if len(path.read_text().splitlines()) > LONGEST_FILE] == []


def test_no_file_has_a_vague_name() -> None:
    assert [name(path) for path in FILES if path.stem in VAGUE_NAMES or path.parent.name in VAGUE_NAMES] == []


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_every_file_says_what_it_is(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text())
    assert not tree.body or ast.get_docstring(tree)


def test_what_is_public() -> None:
    public = {name for name in vars(everstep) if not name.startswith("_") and not isinstance(vars(everstep)[name], type(everstep))}
    assert public | {"__version__"} == set(everstep.__all__)
