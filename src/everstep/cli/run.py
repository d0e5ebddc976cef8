"""`everstep run`: a head, its workers, and a program that uses them, for as long as the program runs."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence

from everstep.cli import options, signals
from everstep.cli.errors import UsageError
from everstep.cli.headprocess import HeadProcess
from everstep.cli.program import ProgramProcess

_USAGE = "everstep run [options] -- COMMAND [ARGUMENT ...]"


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser(
        "run",
        help="run a JAX program on workers started for it",
        description="Start a head and its workers, run COMMAND on their devices, end everything with it, and exit with its exit code.",
        usage=_USAGE,
    )
    options.add_head_options(parser)
    parser.set_defaults(execute=execute, takes_command=True)


def execute(arguments: argparse.Namespace) -> int:
    command = _checked(arguments.command)
    signals.end_on_terminate()
    head = HeadProcess(options.HeadOptions.of(arguments))
    try:
        ready = head.wait_ready()
        with ProgramProcess(command, ready.environment(), head) as program:
            return program.wait()
    finally:
        with signals.blocked():
            head.close()


def _checked(command: Sequence[str] | None) -> Sequence[str]:
    if not command:
        raise UsageError(f"the command to run is missing: {_USAGE}")
    if shutil.which(command[0]) is None:
        raise UsageError(f"{command[0]!r} is not a program that can be run")
    return command
