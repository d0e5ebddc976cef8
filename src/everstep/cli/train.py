"""`everstep train`: the reference trainer, on whatever devices JAX has; with `--slices` on workers started for it."""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

from everstep.cli import options, run
from everstep.cli.errors import CommandError, UsageError


def add_parser(commands: options.Subcommands) -> None:
    parser = commands.add_parser(
        "train",
        help="train a small Llama-style model on text",
        description=(
            "Train a decoder on text, resumably: the same command with the same directory goes on where it has stopped. "
            "Overrides look like model.width=256; `everstep train --print-config` shows all fields."
        ),
    )
    parser.add_argument("overrides", nargs="*", metavar="GROUP.FIELD=VALUE", help="change a field of the config")
    parser.add_argument("--config", type=pathlib.Path, metavar="FILE", help="a YAML file (default: a small model on Python's own sources)")
    parser.add_argument("--directory", type=pathlib.Path, metavar="DIR", help="of the run: checkpoints, metrics (default: runs/default)")
    parser.add_argument("--elastic", choices=("pause", "resize", "off"), help="what to do when devices are lost (train.elastic)")
    parser.add_argument("--print-config", action="store_true", help="print the config as it would be used, and end")
    options.add_head_options(parser)
    parser.set_defaults(execute=execute, slices=None)


def execute(arguments: argparse.Namespace) -> int:
    try:
        import yaml

        from everstep.train.config import Config, ConfigError
    except ImportError as error:
        raise CommandError(f"the trainer needs more packages: pip install 'everstep[train]' ({error})") from error
    overrides = [*arguments.overrides, *([f"train.elastic={arguments.elastic}"] if arguments.elastic else [])]
    try:
        config = Config.load(arguments.config, overrides)
    except (ConfigError, OSError) as error:
        raise UsageError(str(error)) from error
    if arguments.print_config:
        print(yaml.safe_dump(config.as_dict(), sort_keys=False), end="")
        return 0
    if arguments.slices is not None:
        return _on_workers(arguments, overrides)
    from everstep.elastic import GaveUpError  # imports JAX
    from everstep.train.checkpoints import CheckpointError, end
    from everstep.train.loop import train

    code = 0
    try:
        train(config, arguments.directory or pathlib.Path("runs/default"))
    except ConfigError as error:
        raise UsageError(str(error)) from error
    except (CheckpointError, GaveUpError) as error:
        print(f"everstep train: {error}", file=sys.stderr)
        code = 1
    end(code)
    return code


def _on_workers(arguments: argparse.Namespace, overrides: list[str]) -> int:
    """`everstep run` with this command, without its machines, as the program."""
    command = [sys.executable, "-m", "everstep", "train"]
    for name in ("config", "directory"):
        if (value := getattr(arguments, name)) is not None:
            command += [f"--{name}", os.fspath(value)]
    arguments.command = [*command, *overrides]
    return run.execute(arguments)
