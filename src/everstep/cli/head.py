"""`everstep head`: the head process. Not for people: `everstep run` and `everstep up` start it."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal

from everstep.cli import options
from everstep.cli.errors import CommandError
from everstep.cli.lifeline import Lifeline
from everstep.cli.rundirectory import RunDirectory


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser("head", description="The head process. `everstep run` and `everstep up` start it.")
    options.add_head_options(parser)
    parser.add_argument("--lifeline", type=options.index, required=True, metavar="FD", help="socket to the command that has started it")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # its lifeline ends it
    from everstep.cli.serving import serve  # much to import: not for the other commands

    lifeline = Lifeline(arguments.lifeline)
    chosen = options.HeadOptions.of(arguments)
    directory = RunDirectory.of(chosen.name)
    code = 0
    try:
        with directory.claim():
            asyncio.run(serve(chosen, directory, lifeline))
    except CommandError as error:
        lifeline.tell({"error": str(error), "exit_code": error.exit_code})
        code = error.exit_code
    logging.shutdown()
    os._exit(code)  # not by way of C++'s own end: it would stop services of worlds that may still be answering (worker/coordination.py)
