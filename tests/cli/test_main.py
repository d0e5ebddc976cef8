"""What is wrong with a command line is told in one line, with exit code 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

import everstep
from everstep.cli.main import main

WRONG = {
    "no command at all": [],
    "unknown command": ["fly"],
    "unknown option": ["run", "--wings", "2", "--", "true"],
    "zero slices": ["run", "--slices", "0", "--", "true"],
    "negative workers": ["run", "--workers-per-slice", "-1", "--", "true"],
    "devices that are no number": ["run", "--devices-per-worker", "many", "--", "true"],
    "too many devices": ["run", "--devices-per-worker", "1000000", "--", "true"],
    "no program": ["run", "--slices", "2"],
    "an empty program": ["run", "--slices", "2", "--"],
    "a program without --": ["run", "python", "train.py"],
    "a program that does not exist": ["run", "--", "no-such-program-anywhere"],
    "a program for up": ["up", "--", "true"],
    "no port": ["run", "--listen", "127.0.0.1", "--", "true"],
    "a port that can't be": ["run", "--listen", "127.0.0.1:65536", "--", "true"],
    "an address others reach": ["run", "--listen", "0.0.0.0:7777", "--", "true"],
    "a name that is a path": ["run", "--name", "../x", "--", "true"],
    "a shared directory that is not there": ["run", "--shared-directory", "/nowhere/at/all", "--", "true"],
    "status of a head that is not there": ["status", "--head", "nobody"],
    "status without a head": ["status"],
    "a worker without a token": ["worker", "--head", "127.0.0.1:7777", "--slice", "0"],
    "a token file that is not there": ["worker", "--head", "127.0.0.1:7777", "--slice", "0", "--token-file", "/nowhere"],
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith("everstep")
    assert errors.count("\n") == 1


def test_an_open_address_is_refused_with_reason_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "--listen", "0.0.0.0:7777", "--", "true"])
    errors = capsys.readouterr().err
    for word in ("no TLS", "ssh -L", "kubectl port-forward", "--insecure-listen"):
        assert word in errors


def test_a_program_without_dashes_is_told_where_they_go(capsys: pytest.CaptureFixture[str]) -> None:
    main(["run", "python", "train.py"])
    assert "goes after '--'" in capsys.readouterr().err


def test_an_option_after_the_dashes_is_for_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--", "no-such-program-anywhere", "--slices", "0"]) == 2
    assert "no-such-program-anywhere" in capsys.readouterr().err


def test_as_a_module() -> None:
    output = subprocess.run([sys.executable, "-m", "everstep", "--version"], capture_output=True, text=True, check=True).stdout
    assert output == f"everstep {everstep.__version__}\n"


def test_the_command_line_needs_no_jax() -> None:
    """`everstep --help` and `everstep status` should not take a second to start."""
    script = "import sys, everstep.cli.main; print([m for m in ('jax', 'jaxlib', 'grpc', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"
