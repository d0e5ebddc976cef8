"""`everstep worker`: owns devices and does what a head says. The head starts its own; others join by hand."""

from __future__ import annotations

import argparse
import os
import pathlib
import threading

from everstep.cli import options, orphans, rundirectory
from everstep.cli.errors import UsageError


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser(
        "worker",
        help="join a head from this machine",
        description="Own devices of this machine and join the head at --head, which was started with --workers external.",
    )
    parser.add_argument("--head", required=True, metavar="HOST:PORT", help="where the head can be reached")
    parser.add_argument("--slice", type=options.index, metavar="S", help="the slice it belongs to, from 0 (default: where a place is free)")
    parser.add_argument(
        "--worker", type=options.index, metavar="W", help="which worker of the slice, from 0 (default: one that is not there)"
    )
    parser.add_argument("--devices", type=options.count, default=1, metavar="D", help="how many devices it has (default 1)")
    parser.add_argument("--incarnation", type=options.index, default=0, metavar="I", help=argparse.SUPPRESS)
    parser.add_argument("--token-file", type=pathlib.Path, metavar="FILE", help="holds the token that the head has printed")
    for hidden in ("--name", "--shared-directory", "--run-directory"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--spare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--lifeline", type=options.index, help=argparse.SUPPRESS)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    if arguments.worker is not None and arguments.slice is None:
        raise UsageError("--worker counts within a slice: say which with --slice")
    place = "".join(f"{key}{number}" for key, number in (("s", arguments.slice), ("w", arguments.worker)) if number is not None)
    lifeline = _Lifeline(arguments.lifeline, arguments.run_directory) if arguments.lifeline is not None else None
    if lifeline is not None:
        token = lifeline.token
    elif arguments.token_file is not None:
        token = _read_token(arguments.token_file)
    else:
        raise UsageError("the token is missing: give the file that holds it with --token-file")
    from everstep.worker import main as worker  # imports jaxlib: not for the other commands

    return worker.run(
        worker.Options(
            head=arguments.head,
            token=token,
            name=arguments.name or place,
            slice=arguments.slice or 0,
            worker=arguments.worker or 0,
            incarnation=arguments.incarnation,
            devices=arguments.devices,
            spare=arguments.spare or arguments.worker is None,
            shared_directory=arguments.shared_directory,
            farewell=lifeline.clean_up if lifeline is not None else lambda: None,
        )
    )


def _read_token(path: pathlib.Path) -> str:
    try:
        return path.read_text().strip()
    except OSError as error:
        raise UsageError(f"the token can't be read: {error}") from error


class _Lifeline:
    """The pipe to the head that has started this process: it brings the token, and its end of file says that the head is gone."""

    def __init__(self, descriptor: int, run_directory: str | None) -> None:
        """run_directory: of the head; None if it is on another machine: then the kernel ends this process with its parent, stuck or not."""
        self._file = open(descriptor, "rb", buffering=0)  # noqa: SIM115 - for as long as this process lives
        self._run_directory = pathlib.Path(run_directory) if run_directory is not None else None
        if run_directory is None:
            orphans.die_with_parent(os.getppid())
        self._cleaning = threading.Lock()
        self.token = self._file.readline().decode().strip()
        threading.Thread(target=self._watch, name="lifeline", daemon=True).start()

    def clean_up(self, patience: float = 0.2) -> None:
        """Remove what a head that was killed has left. Nothing if it lives. patience: seconds for it to be really gone."""
        if self._run_directory is None:
            return
        with self._cleaning:
            rundirectory.remove_if_stale(self._run_directory, patience)

    def _watch(self) -> None:
        self._file.read(1)
        if self._run_directory is not None:
            with self._cleaning:
                rundirectory.remove(self._run_directory, patience=2.0)
        os._exit(1)
