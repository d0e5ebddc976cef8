"""Worker processes on this machine. The workers here are small scripts: what real ones do is tested elsewhere."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal
import sys
import time

import psutil
import pytest
from processes import is_alive, wait_for

from everstep.launch import local
from everstep.launch.local import LocalLauncher
from everstep.launch.seam import Exit, WorkerSpec

SPEC = WorkerSpec("s1w0", slice=1, worker=0, incarnation=2, devices=4, head="unix:/run/workers.sock", token="secret-token")


@pytest.fixture
def launcher(tmp_path: pathlib.Path) -> LocalLauncher:
    return LocalLauncher(tmp_path, tmp_path)


def become(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let workers be `script`, which finds the descriptor of its lifeline in `lifeline`."""

    def command(spec: WorkerSpec, lifeline: int, run_directory: pathlib.Path) -> list[str]:
        return [sys.executable, "-c", f"import os, sys, time, signal; lifeline = {lifeline}\n{script}"]

    monkeypatch.setattr(local, "worker_command", command)


def test_the_command_line_says_who_it_is_but_not_the_token(tmp_path: pathlib.Path) -> None:
    line = " ".join(local.worker_command(SPEC, 7, tmp_path)[3:])
    assert line.startswith("everstep worker --head unix:/run/workers.sock --name s1w0 --slice 1 --worker 0 --incarnation 2 --devices 4")
    assert "secret" not in line


def test_the_token_comes_over_the_lifeline(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "print(os.read(lifeline, 100).decode(), end='')")

    async def main() -> str:
        process = await launcher.start(SPEC)
        assert await process.wait() == Exit(0)
        return process.last_words()

    assert asyncio.run(main()) == "secret-token"


def test_the_lifeline_ends_with_this_process(tmp_path: pathlib.Path) -> None:
    """A process that starts a worker and is killed: the worker's lifeline is at its end."""
    script = f"""
import asyncio, os, pathlib, signal, sys
from everstep.launch import local
from everstep.launch.seam import WorkerSpec
directory = pathlib.Path({str(tmp_path)!r})
def command(spec, lifeline, run_directory):
    return [sys.executable, "-c", f"import os; os.read({{lifeline}}, 100); os.read({{lifeline}}, 1); print('the head is gone')"]
local.worker_command = command
async def main():
    process = await local.LocalLauncher(directory, directory).start(WorkerSpec("s0w0", 0, 0, 1, 1, "unix:/x", "t"))
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""

    async def main() -> int:
        parent = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE)
        output, _ = await parent.communicate()
        return int(output)

    worker = asyncio.run(main())
    assert wait_for(lambda: not is_alive(worker))
    assert (tmp_path / "s0w0.1.log").read_text() == "the head is gone\n"


@pytest.mark.parametrize(
    ("script", "expected", "text"),
    [
        ("sys.exit(0)", Exit(0), "exit code 0"),
        ("sys.exit(3)", Exit(3), "exit code 3"),
        ("os.abort()", Exit(None, signal.SIGABRT), "signal 6 (SIGABRT)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", Exit(None, signal.SIGKILL), "signal 9 (SIGKILL)"),
    ],
)
def test_how_it_ended(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch, script: str, expected: Exit, text: str) -> None:
    become(monkeypatch, script)

    async def main() -> Exit:
        return await (await launcher.start(SPEC)).wait()

    assert asyncio.run(main()) == expected
    assert str(expected) == text


def test_several_may_wait_and_one_that_gives_up_does_no_harm(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "time.sleep(60)")

    async def main() -> None:
        process = await launcher.start(SPEC)
        waits = [asyncio.ensure_future(process.wait()) for _ in range(3)]
        await asyncio.sleep(0)
        waits[0].cancel()
        assert await process.kill() == Exit(None, signal.SIGKILL)
        assert await asyncio.gather(*waits[1:]) == [Exit(None, signal.SIGKILL)] * 2
        assert await process.kill() == Exit(None, signal.SIGKILL)  # once more is harmless

    asyncio.run(main())


def test_an_end_is_known_at_once(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "time.sleep(60)")

    async def main() -> float:
        process = await launcher.start(SPEC)
        start = time.monotonic()
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        return time.monotonic() - start

    assert asyncio.run(main()) < 0.5


def test_killed_with_what_it_has_started_even_when_stopped(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "import subprocess; subprocess.Popen(['sleep', '60']); time.sleep(60)")

    async def main() -> list[int]:
        process = await launcher.start(SPEC)
        family = await asyncio.to_thread(wait_for, psutil.Process(process.pid).children)
        os.kill(process.pid, signal.SIGSTOP)
        await process.kill()
        return [process.pid, *(child.pid for child in family)]

    for pid in asyncio.run(main()):
        assert wait_for(lambda pid=pid: not is_alive(pid))


def test_close_kills_all(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "time.sleep(60)")

    async def main() -> list[int]:
        processes = [await launcher.start(SPEC) for _ in range(3)]
        await launcher.close()
        return [process.pid for process in processes]

    assert not any(map(is_alive, asyncio.run(main())))


def test_a_terminal_cannot_reach_it(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "time.sleep(60)")

    async def main() -> None:
        process = await launcher.start(SPEC)
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
        await launcher.close()

    asyncio.run(main())


def test_last_words_are_the_end_of_the_log(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "print('x' * 1000000); print('oh no', file=sys.stderr)")

    async def main() -> str:
        process = await launcher.start(SPEC)
        await process.wait()
        return process.last_words()

    words = asyncio.run(main())
    assert words.endswith("oh no")
    assert len(words) <= 1 << 18


def test_a_worker_is_no_client_of_a_head(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_PLATFORMS", "proxy,cpu")
    monkeypatch.setenv("JAX_BACKEND_TARGET", "grpc://nowhere")
    monkeypatch.setenv("IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS", "true")
    become(monkeypatch, "print([(k, v) for k, v in os.environ.items() if k.startswith(('JAX_', 'IFRT_'))])")

    async def main() -> str:
        process = await launcher.start(SPEC)
        await process.wait()
        return process.last_words()

    assert asyncio.run(main()) == "[('JAX_PLATFORMS', 'cpu')]"


@pytest.mark.parametrize("given", [None, "glibc.malloc.check=3"])
def test_huge_pages_unless_the_user_says_otherwise(given: str | None, launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if given is not None:
        monkeypatch.setenv("GLIBC_TUNABLES", given)
    become(monkeypatch, "print(os.environ['GLIBC_TUNABLES'])")

    async def main() -> str:
        process = await launcher.start(SPEC)
        await process.wait()
        return process.last_words()

    assert asyncio.run(main()) == (given or "glibc.malloc.hugetlb=1")


def test_no_descriptor_leaks(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    become(monkeypatch, "pass")

    async def main() -> tuple[int, int]:
        await (await launcher.start(SPEC)).wait()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            await (await launcher.start(SPEC)).wait()
        return before, len(os.listdir("/proc/self/fd"))

    before, after = asyncio.run(main())
    assert after <= before
