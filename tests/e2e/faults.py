"""Runs of programs whose workers are let die at exact points (worker/faults.py)."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Sequence

import pytest
from processes import Running

from everstep.worker.faults import VARIABLE, Fault

PROGRAMS = pathlib.Path(__file__).with_name("failures")


def run(patch: pytest.MonkeyPatch, faults: Sequence[Fault], options: Sequence[str], program: str, *arguments: str) -> tuple[list[str], str]:
    """Run a program of failures/ to its end, which must be good: the lines of its standard output, and standard error."""
    patch.setenv(VARIABLE, json.dumps([dataclasses.asdict(fault) for fault in faults]))
    running = Running("run", *options, "--", sys.executable, os.fspath(PROGRAMS / program), *arguments)
    try:
        code, output, errors = running.finish(seconds=120)
    finally:
        running.close()
    assert code == 0, f"exit code {code}\n{output}\n{errors}"
    return output.splitlines(), errors
