"""`everstep kubernetes render`: manifests with which Kubernetes runs the head, the program and the workers."""

from __future__ import annotations

import argparse
import os
import pathlib
import re

from everstep.cli import options
from everstep.cli.errors import CommandError, UsageError
from everstep.launch import kubernetes

_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,28}[a-z0-9])?")  # pods are called NAME-slice-12-34-abcde, and that must be a label, too
_USAGE = "everstep kubernetes render --image IMAGE [options] -- COMMAND [ARGUMENT ...]"


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser("kubernetes", help="write manifests for Kubernetes", description="Run on Kubernetes, by way of JobSet.")
    actions = parser.add_subparsers(title="commands", dest="action", metavar="COMMAND", required=True, parser_class=options.Parser)
    render = actions.add_parser(
        "render",
        help="write the manifests of a run",
        description="Write a JobSet that runs COMMAND beside a head, and workers for it, and a Secret with tokens made for this run.",
        usage=_USAGE,
    )
    render.add_argument("--image", required=True, help="container image with everstep and the program; `everstep` is on its PATH")
    render.add_argument("--name", type=label, default="everstep", help="of JobSet and Secret (default everstep)")
    render.add_argument("--namespace", type=label, metavar="NS", help="(default: where kubectl puts it)")
    render.add_argument("--slices", type=options.count, default=1, metavar="N", help="slices: a Job each (default 1)")
    render.add_argument("--workers-per-slice", type=options.count, default=1, metavar="W", help="pods of each (default 1)")
    render.add_argument("--devices-per-worker", type=options.count, default=1, metavar="D", help="devices of each pod (default 1)")
    render.add_argument("--spares", type=options.index, default=0, metavar="K", help="pods kept ready to take a lost worker's place")
    render.add_argument(
        "--resources", type=quantities, default={}, metavar="cpu=4,nvidia.com/gpu=8,...", help="what each worker takes of a node"
    )
    render.add_argument(
        "--grace-period", type=options.count, default=20, metavar="S", help="a worker told to go stays so long (default 20)"
    )
    render.add_argument("--output", type=options.directory, metavar="DIR", help="write files there (default: all to standard output)")
    render.set_defaults(execute=execute, takes_command=True)


def execute(arguments: argparse.Namespace) -> int:
    if not arguments.command:
        raise UsageError(f"the command to run is missing: {_USAGE}")
    try:
        import yaml
    except ImportError as error:
        raise CommandError(f"it needs another package: pip install 'everstep[kubernetes]' ({error})") from error
    from everstep.cli import certificates  # imports cryptography: not for the other commands

    plan = kubernetes.Plan(
        name=arguments.name,
        image=arguments.image,
        command=arguments.command,
        namespace=arguments.namespace,
        slices=arguments.slices,
        workers_per_slice=arguments.workers_per_slice,
        devices_per_worker=arguments.devices_per_worker,
        spares=arguments.spares,
        resources=arguments.resources,
        grace=arguments.grace_period,
    )
    manifests = {"secret": kubernetes.secret(plan, *map(str, certificates.make())), "jobset": kubernetes.jobset(plan)}
    texts = {name: yaml.safe_dump(manifest, sort_keys=False, width=140) for name, manifest in manifests.items()}
    if arguments.output is None:
        print("---\n".join(texts.values()), end="")
        return 0
    for name, text in texts.items():
        _write(arguments.output / f"{name}.yaml", text)
    return 0


def _write(path: pathlib.Path, text: str) -> None:
    """For this user's eyes only: one of them is a secret."""
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error


def label(text: str) -> str:
    """A name that Kubernetes takes, with room for what it appends."""
    if not _LABEL.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name for Kubernetes: small letters, digits and '-', at most 30")
    return text


def quantities(text: str) -> dict[str, str]:
    """Amounts by the names that Kubernetes has for them."""
    pairs = [item.partition("=") for item in text.split(",")]
    if not all(name and amount for name, _, amount in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=AMOUNT,..., such as cpu=4,nvidia.com/gpu=8")
    return {name.strip(): amount.strip() for name, _, amount in pairs}
