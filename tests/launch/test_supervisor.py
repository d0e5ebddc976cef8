"""Who is replaced, by whom, how soon, and when no more. The processes are doubles; real ones are killed in tests/e2e/test_failures.py."""

from __future__ import annotations

import asyncio
import signal

import pytest

from everstep.launch import supervisor
from everstep.launch.seam import Exit, WorkerSpec
from everstep.launch.supervisor import Budget, Policy, Supervisor, telling_lines

KILLED = Exit(None, signal.SIGKILL)
SPECS = [WorkerSpec(f"s{index}w0", index, 0, 1, 1, "unix:/x", "token") for index in range(2)]


class FakeProcess:
    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self.pid = 1
        self.signals: list[int] = []
        self.ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()

    async def started(self) -> None:
        pass

    async def wait(self) -> Exit:
        return await asyncio.shield(self.ended)

    async def kill(self) -> Exit:
        self.end(KILLED)
        return KILLED

    def end(self, how: Exit = KILLED) -> None:
        if not self.ended.done():
            self.ended.set_result(how)

    def signal(self, number: int) -> bool:
        self.signals.append(number)
        return not self.ended.done()

    def last_words(self) -> str:
        return "the reason"


class Scene:
    """A supervisor, its launcher and its owner."""

    def __init__(self, policy: Policy) -> None:
        self.started: list[FakeProcess] = []
        self.told: list[tuple[object, ...]] = []
        self.ready: set[str] = set()  # spares that can be taken
        self.joined: set[tuple[str, int]] = set()
        self.supervisor = Supervisor(self, policy, self)

    async def start(self, spec: WorkerSpec) -> FakeProcess:
        self.started.append(FakeProcess(spec))
        return self.started[-1]

    async def close(self) -> None:
        self.supervisor.close()

    def exited(self, name: str, incarnation: int, how: str) -> None:
        self.told.append(("exited", name, incarnation, how))

    def has_joined(self, name: str, incarnation: int) -> bool:
        return (name, incarnation) in self.joined

    def take_spare(self, spare: str, name: str, incarnation: int) -> bool:
        return spare in self.ready

    def restarting(self, name: str, incarnation: int, delay: float, spare: str | None) -> None:
        self.told.append(("restarting", name, incarnation, delay, spare))

    def given_up(self, name: str, why: str) -> None:
        self.told.append(("given up", name, why))

    def names(self) -> list[tuple[str, int]]:
        return [(process.spec.name, process.spec.incarnation) for process in self.started]


async def quiet() -> None:
    """Let everything run that can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_only_the_one_that_has_ended_is_replaced() -> None:
    async def main() -> None:
        scene = Scene(Policy())
        await scene.supervisor.start(SPECS)
        scene.supervisor.started()
        scene.started[1].end()
        await quiet()
        assert scene.names() == [("s0w0", 1), ("s1w0", 1), ("s1w0", 2)]
        assert scene.told == [("exited", "s1w0", 1, "signal 9 (SIGKILL)"), ("restarting", "s1w0", 2, 0.0, None)]

    asyncio.run(main())


def test_a_spare_takes_the_place_and_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_SPARE_PAUSE", 0.0)

    async def main() -> None:
        scene = Scene(Policy(spares=2))
        await scene.supervisor.start(SPECS)
        scene.supervisor.started()
        assert scene.names()[2:] == [("spare1", 0), ("spare2", 0)]
        assert scene.started[2].spec.spare
        scene.ready = {"spare2"}
        scene.started[0].end()
        await quiet()
        assert scene.told[1:] == [("restarting", "s0w0", 2, 0.0, "spare2")]
        assert scene.names()[4:] == [("spare3", 0)]
        scene.started[3].end(Exit(1))  # it is the worker now
        await quiet()
        assert scene.told[2] == ("exited", "s0w0", 2, "exit code 1")

    asyncio.run(main())


def test_an_incarnation_is_fenced_and_no_other() -> None:
    async def main() -> None:
        scene = Scene(Policy())
        await scene.supervisor.start(SPECS)
        scene.supervisor.started()
        assert not scene.supervisor.fence("s0w0", 2)
        assert not scene.supervisor.fence("s7w0", 1)
        assert scene.supervisor.fence("s0w0", 1)
        await quiet()
        assert scene.names()[2:] == [("s0w0", 2)]
        assert not scene.supervisor.fence("s0w0", 1)
        assert scene.supervisor.signal("s0w0", signal.SIGSTOP)
        assert scene.started[2].signals == [signal.SIGSTOP]

    asyncio.run(main())


def test_while_starting_up_what_is_killed_is_replaced_and_what_ends_by_itself_ends_the_run() -> None:
    async def main() -> None:
        scene = Scene(Policy())
        await scene.supervisor.start(SPECS)
        scene.started[0].end()
        await quiet()
        assert scene.names()[2:] == [("s0w0", 2)]
        assert not scene.supervisor.first_end.done()
        scene.started[1].end(Exit(3))
        why = await scene.supervisor.first_end
        assert why == "worker s1w0 has ended before everything was up: exit code 3\n  s1w0| the reason"
        assert len(scene.started) == 3

    asyncio.run(main())


@pytest.mark.parametrize(
    ("policy", "why"),
    [(Policy(replace=False), "--no-replace"), (Policy(max_restarts=0, window=60), "0 times within 60 s")],
    ids=["switched off", "too often"],
)
def test_given_up(policy: Policy, why: str) -> None:
    async def main() -> None:
        scene = Scene(policy)
        await scene.supervisor.start(SPECS)
        scene.supervisor.started()
        scene.started[0].end()
        await quiet()
        assert len(scene.started) == 2
        kind, name, reason = scene.told[-1]
        assert (kind, name) == ("given up", "s0w0")
        assert why in str(reason)

    asyncio.run(main())


def test_while_starting_up_nobody_waits_for_what_is_given_up() -> None:
    async def main() -> str:
        scene = Scene(Policy(replace=False))
        await scene.supervisor.start(SPECS)
        scene.started[0].end()
        return await scene.supervisor.first_end

    assert asyncio.run(main()) == (
        "worker s0w0 has ended before everything was up, and is not replaced: replacing is switched off (--no-replace)"
    )


def test_a_loop_of_crashes_is_slowed_down_and_then_ended() -> None:
    budget = Budget(Policy(max_restarts=8, window=600, steady=10))
    assert [budget.spend(now=float(now), lived=0.5) for now in range(9)] == [0, 1, 2, 4, 8, 16, 30, 30, None]


def test_workers_that_live_long_are_restarted_at_once_as_often_as_the_window_allows() -> None:
    budget = Budget(Policy(max_restarts=2, window=600, steady=10))
    assert [budget.spend(now, lived=60) for now in (0.0, 100.0, 200.0, 600.0, 650.0)] == [0, 0, None, 0, None]


def test_what_has_become_steady_starts_afresh() -> None:
    budget = Budget(Policy(max_restarts=100, steady=10))
    assert [budget.spend(0.0, lived) for lived in (1, 1, 1, 20, 1, 1)] == [0, 1, 2, 0, 0, 1]


def test_a_process_that_hangs_before_it_has_joined_is_killed() -> None:
    async def main() -> None:
        scene = Scene(Policy(spares=2, start_timeout=0.01))
        scene.joined = {("s0w0", 1), ("spare1", 0), ("s1w0", 2)}
        await scene.supervisor.start(SPECS)
        scene.supervisor.started()
        hung = [process for process in scene.started if (process.spec.name, process.spec.incarnation) not in scene.joined]
        assert await asyncio.gather(*(process.wait() for process in hung)) == [KILLED, KILLED]
        await quiet()
        assert ("restarting", "s1w0", 2, 0.0, None) in scene.told
        assert [process.ended.done() for process in scene.started] == [False, True, False, True, False]

    asyncio.run(main())


def test_a_spare_that_was_taken_is_not_killed_for_it() -> None:
    async def main() -> None:
        scene = Scene(Policy(spares=1, start_timeout=0.05))
        scene.joined = {("s0w0", 1), ("s1w0", 1)}
        await scene.supervisor.start(SPECS)
        scene.supervisor.started()
        scene.ready = {"spare1"}
        scene.started[0].end()
        await asyncio.sleep(0.1)
        assert not scene.started[2].ended.done()

    asyncio.run(main())


@pytest.mark.parametrize("threads", [0, 1, 30])
def test_what_is_told_of_a_crash_is_its_cause(threads: int) -> None:
    log = ["step"] * 50 + ["F0000 Check failed: x", "Fatal Python error: Aborted", ""]
    log += ["Thread 0x1 (most recent call first):", *["  File"] * 5] * threads
    told = telling_lines("\n".join(log))
    assert len(told) == 20
    assert "F0000 Check failed: x" in told


def test_what_is_told_of_an_error_is_the_end() -> None:
    assert telling_lines("\n".join(map(str, range(100)))) == [str(number) for number in range(80, 100)]
    assert telling_lines("one\ntwo") == ["one", "two"]
    assert telling_lines("") == []
