"""What the cases of a program file return, on plain JAX or on a cluster: each file is run once, in a process of its own."""

from __future__ import annotations

import ast
import pathlib
import pickle
import subprocess
import sys
from typing import Any

PROGRAMS = pathlib.Path(__file__).parent / "programs"
_RUNNER = pathlib.Path(__file__).parent / "runner.py"
_CASE_TIMEOUT = 60  # seconds
_FILE_TIMEOUT = 240


def cases(program: str) -> list[str]:
    """The names of the cases of a program file, without importing it."""
    tree = ast.parse((PROGRAMS / f"{program}.py").read_text())
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def collect(program: str, environment: dict[str, str], directory: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Run a program file and return the outcome of each case (fields of runner.Outcome).

    A case that ends the process, or hangs, gets that as its error, and the file is run again without it and those before.
    """
    file = directory / f"{program}.pickle"
    file.unlink(missing_ok=True)
    outcomes: dict[str, dict[str, Any]] = {}
    while missing := [case for case in cases(program) if case not in outcomes]:
        end = _run(program, file, list(outcomes), environment)
        outcomes |= _read(file)
        if missing[0] not in outcomes or end:
            broken = next((case for case in missing if case not in outcomes), None)
            if broken is not None:
                outcomes[broken] = {"case": broken, "leaves": {}, "error": f"the process ended in this case: {end}", "seconds": 0.0}
    return outcomes


def _run(program: str, file: pathlib.Path, done: list[str], environment: dict[str, str]) -> str:
    """How the process ended, "" if well."""
    command = [
        sys.executable,
        str(_RUNNER),
        str(PROGRAMS / f"{program}.py"),
        str(file),
        "--skip",
        ",".join(done),
        "--timeout",
        str(_CASE_TIMEOUT),
    ]
    try:
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_FILE_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        return f"not done after {_FILE_TIMEOUT} s: {error.stderr!r}"
    return "" if process.returncode == 0 else f"exit code {process.returncode}\n{process.stderr[-6000:]}"


def _read(file: pathlib.Path) -> dict[str, dict[str, Any]]:
    outcomes = {}
    if file.exists():
        with file.open("rb") as stream:
            while True:
                try:
                    outcome = pickle.load(stream)
                except (EOFError, pickle.UnpicklingError):
                    break
                outcomes[outcome["case"]] = outcome
    return outcomes
