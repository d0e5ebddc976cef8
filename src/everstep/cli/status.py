"""`everstep status`: what a running head holds."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from everstep.cli import options, rundirectory
from everstep.cli.errors import CommandError, UsageError
from everstep.wire.errors import Failure

_WORKER_COLUMNS = ("slice", "name", "state", "incarnation", "pid", "host", "devices", "arrays", "bytes", "programs")
_SESSION_COLUMNS = ("session", "label", "arrays", "bytes", "programs")


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser(
        "status",
        help="list slices, workers, devices, sessions of a running head",
        description="Show what a running head has. It is found by itself when you run exactly one.",
    )
    options.add_head_choice(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    from everstep.control import client  # imports gRPC: not for the other commands

    directory = find(arguments.head)
    try:
        status = client.status(directory.target())
    except Failure as failure:
        raise CommandError(failure.message) from failure
    print(json.dumps(status, indent=2) if arguments.json else describe(status))
    return 0


def find(name: str | None) -> rundirectory.RunDirectory:
    """The run directory of the head called so, of that which JAX_BACKEND_TARGET names, or of the only one.

    Raises UsageError if there is none or no only one.
    """
    heads = {directory.name: directory for directory in rundirectory.running()}
    if name is not None:
        if name not in heads:
            raise UsageError(f"no head called {name!r} is running" + (f"; running: {', '.join(heads)}" if heads else ""))
        return heads[name]
    for directory in heads.values():  # within `everstep run` its own head is meant
        if os.environ.get("JAX_BACKEND_TARGET") == f"grpc://{directory.target()}":
            return directory
    if not heads:
        raise UsageError("no head is running: start one with `everstep up` or `everstep run`")
    if len(heads) > 1:
        raise UsageError(f"several heads are running: choose one with --head ({', '.join(heads)})")
    (directory,) = heads.values()
    return directory


def describe(status: dict[str, Any]) -> str:
    """The status as text for people."""
    workers = [{"slice": entry["slice"], **worker} for entry in status["slices"] for worker in entry["workers"]]
    tables = [_table(_WORKER_COLUMNS, workers)]
    if status["sessions"]:
        tables.append(_table(_SESSION_COLUMNS, status["sessions"]))
    return "\n\n".join([f"head {status['name']} (pid {status['pid']}) at {status['target']}", *tables])


def _table(columns: Sequence[str], entries: Sequence[Mapping[str, Any]]) -> str:
    rows = [columns, *([_cell(entry.get(column)) for column in columns] for entry in entries)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(columns))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case list():
            return ",".join(map(str, value))
    return str(value)
