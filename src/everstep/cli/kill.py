"""`everstep kill`: let a worker or a slice die, to see what becomes of it."""

from __future__ import annotations

import argparse
import re
import signal
import time

from everstep.cli import options, status
from everstep.cli.errors import CommandError, UsageError
from everstep.wire.errors import Failure

_VICTIM = re.compile(r"s?(?P<slice>\d+)(w(?P<worker>\d+))?")
_SIGNALS = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP, "CONT": signal.SIGCONT, "TERM": signal.SIGTERM}


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser(
        "kill",
        help="kill a worker or a slice, to try what happens then",
        description="Send a signal to one worker (s1w0) or to all workers of a slice (1 or s1), as a real fault would come.",
    )
    parser.add_argument("victim", metavar="SLICE|WORKER", type=victim, help="a slice, e.g. 1, or a worker, e.g. s1w0")
    parser.add_argument(
        "--signal",
        choices=_SIGNALS,
        default="KILL",
        help="KILL: it is gone; STOP: it hangs (CONT: no longer); TERM: it is told to go",
    )
    parser.add_argument("--after", type=options.seconds, metavar="S", help="wait so many seconds first")
    options.add_head_choice(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    from everstep.control import client  # imports gRPC: not for the other commands

    target = status.find(arguments.head).target()
    index, worker = arguments.victim
    try:
        slices = client.status(target)["slices"]
        if index >= len(slices):
            raise UsageError(f"there is no slice {index}: this run has slices 0 to {len(slices) - 1}")
        names = [entry["name"] for entry in slices[index]["workers"]]
        if worker is not None and worker >= len(names):
            raise UsageError(f"there is no worker s{index}w{worker}: slice {index} has {', '.join(names)}")
        if arguments.after is not None:
            time.sleep(arguments.after)
    except Failure as failure:
        raise CommandError(failure.message) from failure
    problems = []
    for name in names if worker is None else [names[worker]]:
        try:
            client.kill(target, name, _SIGNALS[arguments.signal])
        except Failure as failure:
            problems.append(failure.message)  # the others of the slice get it all the same
    if problems:
        raise CommandError("; ".join(problems))
    return 0


def victim(text: str) -> tuple[int, int | None]:
    """A slice, or a slice and the index of a worker in it."""
    match = _VICTIM.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a slice (1 or s1) nor a worker (s1w0)")
    return int(match["slice"]), int(match["worker"]) if match["worker"] is not None else None
