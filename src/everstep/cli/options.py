"""Options that several commands share, and what makes a value a good one."""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import pathlib
import re
import secrets
import typing
from collections.abc import Sequence
from typing import NoReturn

from everstep.cli.errors import UsageError
from everstep.launch import places
from everstep.launch.supervisor import Policy

LOCAL, RAY, EXTERNAL = "local", "ray", "external"  # who starts the workers
_ONLY_WITH = {"token_file": EXTERNAL, "ray_address": RAY, "resources": RAY, "placement": RAY}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line, by raising UsageError."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')")


if typing.TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[Parser]


@dataclasses.dataclass(frozen=True, slots=True)
class Address:
    """Where to listen on TCP, or whom to call."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclasses.dataclass(frozen=True, slots=True)
class HeadOptions:
    """What a head is started with. Every field is an option of the same name."""

    name: str
    slices: int
    workers_per_slice: int
    devices_per_worker: int
    launcher: str
    join: Address | None
    token_file: pathlib.Path | None
    ray_address: str | None
    resources: str | None
    placement: str | None
    listen: Address | None
    insecure_listen: bool
    heartbeat_timeout: float
    progress_timeout: float | None
    no_replace: bool
    max_restarts: int
    restart_window: float
    steady: float
    start_timeout: float
    grace_period: float
    spares: int
    shared_directory: pathlib.Path | None
    log_directory: pathlib.Path | None

    @staticmethod
    def of(namespace: argparse.Namespace) -> HeadOptions:
        """Raises UsageError for an address that others could reach, unless that was asked for, and for options that don't go together."""
        values = {field.name: getattr(namespace, field.name) for field in dataclasses.fields(HeadOptions)}
        launcher = values["launcher"] or (EXTERNAL if values["join"] else LOCAL)
        join = values["join"] or (None if launcher == LOCAL else Address("127.0.0.1", 0))
        options = HeadOptions(**values | {"name": values["name"] or random_name(), "launcher": launcher, "join": join})
        if launcher == LOCAL and join is not None:
            raise UsageError("--join is where workers from outside join: it goes with --launcher ray or external")
        for option, wanted in _ONLY_WITH.items():
            if launcher != wanted and values[option] is not None:
                raise UsageError(f"--{option.replace('_', '-')} goes with --launcher {wanted}")
        if options.listen is not None and not options.listen.is_loopback and not options.insecure_listen:
            raise UsageError(_refusal(options.listen))
        return options

    @property
    def policy(self) -> Policy:
        """When workers are replaced."""
        return Policy(not self.no_replace, self.max_restarts, self.restart_window, self.spares, self.steady, self.start_timeout)

    def arguments(self) -> list[str]:
        """The command line that gives these options again."""
        line: list[str] = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            flag = "--" + field.name.replace("_", "-")
            if value is True:
                line.append(flag)
            elif value is not None and value is not False:
                line += [flag, str(value)]
        return line


def _refusal(address: Address) -> str:
    return (
        f"--listen {address} is not a loopback address, and JAX's client has no TLS: anyone who reaches the port could run code here. "
        f"Listen on 127.0.0.1:{address.port} and use a tunnel (ssh -L {address.port}:127.0.0.1:{address.port} HOST, kubectl port-forward), "
        "or add --insecure-listen if the network is trusted"
    )


def add_head_options(parser: argparse.ArgumentParser) -> None:
    """The options that `run` and `up` give to the head."""
    machines = parser.add_argument_group("machines")
    machines.add_argument(
        "--slices", type=count, default=1, metavar="N", help="slices: workers that fail and are replaced together (default 1)"
    )
    machines.add_argument("--workers-per-slice", type=count, default=1, metavar="W", help="workers in each slice (default 1)")
    machines.add_argument("--devices-per-worker", type=count, default=1, metavar="D", help="devices of each worker (default 1)")
    machines.add_argument(
        *("--launcher", "--workers"),
        choices=(LOCAL, RAY, EXTERNAL),
        help="who starts the workers: the head on this machine (default), the head on a Ray cluster, "
        "or somebody else with `everstep worker` (default with --join)",
    )
    machines.add_argument(
        "--join", type=address, metavar="HOST:PORT", help="where workers from outside join, port 0: any (default 127.0.0.1:0)"
    )
    machines.add_argument(
        "--token-file",
        type=file,
        metavar="FILE",
        help="the head's own token, where workers have been given theirs before (default: fresh ones, with a file for the workers)",
    )
    machines.add_argument(
        "--ray-address",
        type=ray_address,
        metavar="HOST:PORT",
        help="of the Ray cluster (default: the one that Ray finds itself, else one on this machine)",
    )
    machines.add_argument(
        "--resources",
        type=resources,
        metavar="GPU=8,...",
        help="what each worker takes of a Ray node; CPU=1 unless told otherwise",
    )
    machines.add_argument(
        "--placement",
        choices=places.PLACEMENTS,
        help="how the workers of a slice lie on Ray nodes: on as few as possible (default pack), on many; strict: so or not at all",
    )
    failure = parser.add_argument_group("failure")
    failure.add_argument(
        "--heartbeat-timeout", type=seconds, default=10.0, metavar="S", help="a worker silent for so many seconds is dead (default 10)"
    )
    failure.add_argument(
        "--progress-timeout",
        type=seconds,
        metavar="S",
        help="a worker whose program makes no progress for so long is dead (default: off)",
    )
    failure.add_argument("--no-replace", action="store_true", help="start no process in the place of a dead worker")
    failure.add_argument(
        "--max-restarts", type=index, default=10, metavar="N", help="restarts of each worker within the window (default 10)"
    )
    failure.add_argument("--restart-window", type=seconds, default=600.0, metavar="S", help="seconds that restarts count for (default 600)")
    failure.add_argument(
        "--steady",
        type=seconds,
        default=10.0,
        metavar="S",
        help="a worker that ends within so many seconds is restarted after a growing pause (default 10)",
    )
    failure.add_argument(
        "--start-timeout", type=seconds, default=60.0, metavar="S", help="a process that has not joined by then is killed (default 60)"
    )
    failure.add_argument(
        "--grace-period", type=seconds, default=20.0, metavar="S", help="a worker that is told to go (SIGTERM) stays so long (default 20)"
    )
    failure.add_argument("--spares", type=index, default=0, metavar="K", help="processes kept ready to take a dead worker's place at once")
    head = parser.add_argument_group("head")
    head.add_argument(
        "--name", type=name, default=None, help="name of the head, for `everstep status --head NAME` (default: a short random one)"
    )
    head.add_argument("--listen", type=address, metavar="HOST:PORT", help="listen on TCP (port 0: any) instead of a private unix socket")
    head.add_argument("--insecure-listen", action="store_true", help="allow addresses that others can reach: nothing is encrypted there")
    head.add_argument(
        "--shared-directory", type=directory, metavar="DIR", help="where to make the directory for host buffers (default: shared memory)"
    )
    head.add_argument("--log-directory", type=directory, metavar="DIR", help="keep the logs of head and workers there")


def add_head_choice(parser: argparse.ArgumentParser) -> None:
    """For commands that talk to a running head."""
    parser.add_argument("--head", type=name, metavar="NAME", help="which head, when several run")


def count(text: str) -> int:
    """A number of things of which there is at least one."""
    return _integer(text, 1, 2048, "a number")


def index(text: str) -> int:
    """A number that counts from zero."""
    return _integer(text, 0, 1 << 31, "a number")


def seconds(text: str) -> float:
    """A time that is not zero."""
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not 0.1 <= value <= 1e9:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds from 0.1 on")
    return value


def _integer(text: str, low: int, high: int, what: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from None
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{value} is not between {low} and {high}")
    return value


def address(text: str) -> Address:
    """HOST:PORT, with brackets around an IPv6 host."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or (":" in host and not host.startswith("[")):
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return Address(host.strip("[]"), _integer(port, 0, 65535, "a port"))


def name(text: str) -> str:
    """A name of a head: also part of a path."""
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name: letters, digits, '.', '_' and '-', at most 40")
    return text


def random_name() -> str:
    return secrets.token_hex(3)


def ray_address(text: str) -> str:
    """Of a cluster that this machine is a node of."""
    if "://" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is for Ray's client: run this command on a node of the cluster, and give HOST:PORT")
    return text


def resources(text: str) -> str:
    """What a worker takes of a node; see places.resources."""
    try:
        places.resources(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def file(text: str) -> pathlib.Path:
    """A file that exists."""
    path = pathlib.Path(text).absolute()
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not a file")
    return path


def directory(text: str) -> pathlib.Path:
    """A directory that exists."""
    path = pathlib.Path(text).absolute()
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is not a directory")
    return path


def split_command(arguments: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """What stands before and after the first "--"; None if there is none."""
    line = list(arguments)
    if "--" not in line:
        return line, None
    at = line.index("--")
    return line[:at], line[at + 1 :]
