"""One process at a time sends large host buffers as files."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

_VARIABLES = {
    "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_DIRECTORY": "",
    "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_THRESHOLD_BYTES": "1000",
}
_SCRIPT = """
import os
from everstep.jax_plugin import large_buffers
large_buffers.claim()
print(sum(name.startswith("IFRT_PROXY_GRPC_LARGE") for name in os.environ), flush=True)
input()
"""


@pytest.fixture
def environment(tmp_path: pathlib.Path) -> dict[str, str]:
    return os.environ | _VARIABLES | {"IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_DIRECTORY": str(tmp_path)}


def start(environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _SCRIPT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def variables_left(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_the_first_holds_the_directory_until_it_ends(environment: dict[str, str]) -> None:
    first = start(environment)
    assert variables_left(first) == 2
    second = start(environment)
    assert variables_left(second) == 0
    second.communicate("\n")
    first.kill()
    first.communicate()
    third = start(environment)
    assert variables_left(third) == 2
    third.communicate("\n")


def test_a_directory_that_is_gone_is_not_used(environment: dict[str, str], tmp_path: pathlib.Path) -> None:
    tmp_path.rmdir()
    process = start(environment)
    assert variables_left(process) == 0
    process.communicate("\n")
