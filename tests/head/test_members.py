"""Who may take which place."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from head.test_dispatch import RecordingLink

from everstep.head.members import Member, Members, lost
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure


def hello(name: str = "s1w0", incarnation: int = 0, platform: str = "cpu", devices: int = 2) -> wire.Hello:
    return wire.Hello(name=name, incarnation=incarnation, pid=7, devices=[wire.DeviceInfo(platform=platform)] * devices)


def run(scenario: Any) -> None:
    async def main() -> None:
        members = Members(2, 1, 2)
        scenario(members, lambda *arguments, **options: members.join(hello(*arguments, **options), RecordingLink()))

    asyncio.run(main())


def lose(members: Members, member: Member) -> None:
    members.remove(member, lost(member, "signal 9 (SIGKILL)", 0.0))


def test_incarnations_are_counted_for_those_that_leave_it_to_the_head() -> None:
    def scenario(members: Members, join: Any) -> None:
        first = join()
        assert first.incarnation == 1
        lose(members, first)
        second = join()
        assert (second.incarnation, second.slot.devices) == (2, (2, 3))

    run(scenario)


def test_an_old_incarnation_is_refused() -> None:
    def scenario(members: Members, join: Any) -> None:
        lose(members, join(incarnation=3))
        with pytest.raises(Failure, match="incarnation 3 of worker s1w0 is over"):
            join(incarnation=3)
        assert join(incarnation=4).incarnation == 4

    run(scenario)


def test_a_place_that_is_taken() -> None:
    def scenario(members: Members, join: Any) -> None:
        join()
        with pytest.raises(Failure, match="worker s1w0 is already there"):
            join(incarnation=2)

    run(scenario)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"devices": 3}, "has 3 devices; this run wants 2"),
        ({"platform": "tpu"}, "can't come back with"),
        ({"name": "s9w0"}, "this run has no worker 's9w0'"),
    ],
)
def test_another_kind_of_successor(options: dict[str, Any], why: str) -> None:
    def scenario(members: Members, join: Any) -> None:
        lose(members, join())
        with pytest.raises(Failure, match=why):
            join(**options)
        assert members.incarnation("s1w0") == 1  # who was refused has not been there
        assert join().incarnation == 2

    run(scenario)


def test_what_is_asked_of_a_place_where_nobody_is() -> None:
    def scenario(members: Members, join: Any) -> None:
        assert "is not there yet" in members.away("s1w0").message
        member = join()
        assert members.up("s1w0") is None  # no world includes it
        member.is_up = True
        assert members.up("s1w0") is member
        lose(members, member)
        away = members.away("s1w0")
        assert away.code is Code.DATA_LOSS
        assert away.message == (
            "worker s1w0 (slice 1, incarnation 1, pid 7) is lost: signal 9 (SIGKILL), at 00:00:00.000 UTC; its successor is not up yet"
        )

    run(scenario)


def test_a_free_place() -> None:
    def scenario(members: Members, join: Any) -> None:
        def name(wish: str) -> str | None:
            slot = members.vacancy(wish)
            return slot.name if slot is not None else None

        assert (name(""), name("s0"), name("s1")) == ("s0w0", "s0w0", "s1w0")
        join("s0w0")
        assert (name(""), name("s0"), name("s1")) == ("s1w0", None, "s1w0")
        second = join("s1w0")
        assert name("") is None
        lose(members, second)
        assert name("") == "s1w0"
        with pytest.raises(Failure, match="this run has no slice '7'"):
            name("s7")

    run(scenario)
