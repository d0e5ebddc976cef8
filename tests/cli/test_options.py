"""Options and their round trip to the head."""

from __future__ import annotations

import argparse
import pathlib

import pytest

from everstep.cli import options
from everstep.cli.errors import UsageError
from everstep.cli.options import Address, HeadOptions


def parse(*arguments: str) -> HeadOptions:
    parser = options.Parser()
    options.add_head_options(parser)
    return HeadOptions.of(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("text", "expected", "loopback"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80), True),
        ("127.3.2.1:0", Address("127.3.2.1", 0), True),
        ("localhost:1", Address("localhost", 1), True),
        ("[::1]:7000", Address("::1", 7000), True),
        ("10.0.0.1:7000", Address("10.0.0.1", 7000), False),
        ("0.0.0.0:7000", Address("0.0.0.0", 7000), False),
        ("[::]:7000", Address("::", 7000), False),
        ("host.example:7000", Address("host.example", 7000), False),
    ],
)
def test_addresses(text: str, expected: Address, loopback: bool) -> None:
    address = options.address(text)
    assert address == expected
    assert str(address) == text
    assert address.is_loopback is loopback


@pytest.mark.parametrize("text", ["", "7000", ":7000", "::1:7000", "host:", "host:x", "host:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        options.address(text)


def test_the_head_gets_the_options_as_given(tmp_path: pathlib.Path) -> None:
    given = parse(
        *("--slices", "3", "--workers-per-slice", "2", "--devices-per-worker", "4", "--name", "x-1", "--insecure-listen"),
        *("--listen", "0.0.0.0:7000", "--join", "[::]:7001", "--shared-directory", str(tmp_path), "--log-directory", str(tmp_path)),
    )
    assert parse(*given.arguments()) == given
    default = parse("--name", "d")
    assert (default.slices, default.workers_per_slice, default.devices_per_worker) == (1, 1, 1)
    assert parse(*default.arguments()) == default


@pytest.mark.parametrize(
    ("arguments", "launcher", "join"),
    [
        ((), "local", None),
        (("--workers", "external"), "external", Address("127.0.0.1", 0)),
        (("--join", "10.0.0.1:7"), "external", Address("10.0.0.1", 7)),
        (("--launcher", "ray"), "ray", Address("127.0.0.1", 0)),
        (("--launcher", "ray", "--join", "10.0.0.1:7", "--resources", "GPU=8", "--placement", "spread"), "ray", Address("10.0.0.1", 7)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_who_starts_the_workers(arguments: tuple[str, ...], launcher: str, join: Address | None) -> None:
    given = parse(*arguments)
    assert (given.launcher, given.join) == (launcher, join)
    assert parse(*given.arguments()) == given


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--launcher", "local", "--join", "127.0.0.1:0"), "--join is where workers from outside join"),
        (("--launcher", "slurm"), "invalid choice: 'slurm'"),
        (("--resources", "GPU=8"), "--resources goes with --launcher ray"),
        (("--workers", "external", "--placement", "spread"), "--placement goes with --launcher ray"),
        (("--launcher", "ray", "--token-file", __file__), "--token-file goes with --launcher external"),
        (("--launcher", "ray", "--resources", "GPU"), "'GPU' is not NAME=AMOUNT"),
        (("--launcher", "ray", "--ray-address", "ray://10.0.0.1:7"), "is for Ray's client: run this command on a node of the cluster"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_options_that_make_no_sense(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(*arguments)
    assert message in str(raised.value)


def test_a_head_without_a_name_gets_one() -> None:
    assert parse().name != parse().name
    assert options.name(parse().name)


def test_the_command_stands_after_the_first_dashes() -> None:
    assert options.split_command(["run", "--", "a", "--", "b"]) == (["run"], ["a", "--", "b"])
    assert options.split_command(["run"]) == (["run"], None)
    assert options.split_command(["run", "--"]) == (["run"], [])
