"""The `everstep` command."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import everstep
from everstep.cli import events, head, kill, kubernetes, options, run, status, train, up, worker
from everstep.cli.errors import CommandError, UsageError
from everstep.cli.signals import Terminated


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 2 if it was asked for wrongly, 1 if it failed, else its own."""
    prefix = "everstep"
    try:
        line, command = options.split_command(sys.argv[1:] if arguments is None else arguments)
        namespace, unknown = _parser().parse_known_args(line)
        prefix = f"everstep {namespace.chosen}"
        if unknown:
            hint = "; the command to run goes after '--'" if namespace.takes_command and not unknown[0].startswith("-") else ""
            raise UsageError(f"unknown argument {unknown[0]!r}{hint} (see '{prefix} --help')")
        if command is not None and not namespace.takes_command:
            raise UsageError(f"takes no command after '--' (see '{prefix} --help')")
        namespace.command = command
        return int(namespace.execute(namespace))
    except CommandError as error:
        print(f"{prefix}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except Terminated as terminated:
        return terminated.exit_code


def _parser() -> options.Parser:
    parser = options.Parser(prog="everstep", description="Elastic training for JAX: one program, many workers that may die.")
    parser.add_argument("--version", action="version", version=f"everstep {everstep.__version__}")
    parser.set_defaults(takes_command=False)
    commands = parser.add_subparsers(title="commands", dest="chosen", metavar="COMMAND", required=True, parser_class=options.Parser)
    for command in (run, up, status, events, kill, train, worker, kubernetes, head):
        command.add_parser(commands)
    return parser
