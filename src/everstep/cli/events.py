"""`everstep events`: what has happened to the workers of a running head."""

from __future__ import annotations

import argparse
import json

from everstep.cli import options, status
from everstep.cli.errors import CommandError
from everstep.wire.errors import Failure


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser(
        "events",
        help="list what has happened to the workers of a running head",
        description="Show which workers joined, were lost, were replaced, and how long each recovery took. Times are UTC.",
    )
    options.add_head_choice(parser)
    parser.add_argument("--follow", action="store_true", help="go on with each new event until the head ends")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    from everstep.control import client  # imports gRPC: not for the other commands

    target = status.find(arguments.head).target()
    try:
        for event in client.Events(target) if arguments.follow else client.events(target):
            print(json.dumps(event.as_dict()) if arguments.json else event, flush=True)
    except Failure as failure:
        raise CommandError(failure.message) from failure
    return 0
