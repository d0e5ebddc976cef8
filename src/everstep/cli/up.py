"""`everstep up`: a head and its workers in the foreground, for programs started elsewhere."""

from __future__ import annotations

import argparse
import shlex
import sys

from everstep.cli import options, signals
from everstep.cli.headprocess import HeadProcess, Ready


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser(
        "up",
        help="start head and workers, and print how programs reach them",
        description="Start a head and its workers, print how JAX programs in other terminals reach them, and stay until Ctrl-C.",
    )
    options.add_head_options(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    signals.end_on_terminate()
    chosen = options.HeadOptions.of(arguments)
    head = HeadProcess(chosen)
    try:
        sys.stdout.write(_announcement(chosen, head.wait_ready()))  # in one piece: Ctrl-C may come at any moment
        sys.stdout.flush()
        raise head.wait()
    except (KeyboardInterrupt, signals.Terminated):
        return 0
    finally:
        with signals.blocked():
            head.close()


def _announcement(chosen: options.HeadOptions, ready: Ready) -> str:
    lines = [f"everstep: head {chosen.name} is up: {ready.workers} workers, {ready.devices} devices. Ctrl-C ends it."]
    lines += ["", "# paste this into the terminal of a JAX program:"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in ready.environment().items()]
    return "\n".join(lines) + "\n"
