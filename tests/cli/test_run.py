"""`everstep run`: exit codes, input and output, signals. The programs are no JAX programs here; tests/e2e has those."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import signal
import sys
from collections.abc import Callable

import pytest
from processes import Running, everstep, wait_for

Start = Callable[..., Running]

READY = "import os, signal, sys, time\n"
WAIT = "print('up', flush=True)\nwhile True: time.sleep(60)\n"


def python(script: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", script)


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_is_the_programs(code: int) -> None:
    assert everstep("run", *python(f"raise SystemExit({code})")).returncode == code


def test_a_program_that_dies_of_a_signal_gives_128_and_its_number() -> None:
    assert everstep("run", *python("import os; os.kill(os.getpid(), 9)")).returncode == 137


def test_it_says_nothing_of_its_own() -> None:
    result = everstep("run", "--slices", "2", *python("import sys; print('out'); print('err', file=sys.stderr)"))
    assert (result.stdout, result.stderr) == ("out\n", "err\n")


def test_the_program_gets_backend_target_and_the_way_for_large_buffers() -> None:
    environment = json.loads(everstep("run", *python("import os, json; print(json.dumps(dict(os.environ)))"), JAX_PLATFORMS="tpu").stdout)
    assert environment["JAX_PLATFORMS"] == "proxy,cpu"
    assert environment["JAX_BACKEND_TARGET"].startswith("grpc://unix:/")
    assert environment["IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"] == "true"
    assert pathlib.Path(environment["IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_DIRECTORY"]).name.startswith("everstep-")
    assert int(environment["IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_THRESHOLD_BYTES"]) > 0


def test_only_the_user_can_open_the_socket(start: Start) -> None:
    running = start("run", *python(READY + WAIT))
    assert running.line() == "up"
    assert (running.directory / "head.sock").is_socket()
    for path in (running.directory, running.directory.parent, running.shared_directory):
        assert path.stat().st_mode & 0o077 == 0


def test_input_reaches_the_program(start: Start) -> None:
    running = start("run", *python("print(input()[::-1])"))
    assert running.process.stdin is not None
    running.process.stdin.write("olleh\n")
    running.process.stdin.flush()
    assert running.line() == "hello"
    assert running.finish() == (0, "", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_a_signal_is_passed_on_once(start: Start, number: signal.Signals) -> None:
    script = READY + f"signal.signal({int(number)}, lambda *_: (print('got it', flush=True), sys.exit(5)))\n" + WAIT
    running = start("run", *python(script))
    assert running.line() == "up"
    running.process.send_signal(number)
    assert running.finish() == (5, "got it\n", "")


def test_a_second_sigterm_is_final(start: Start) -> None:
    running = start("run", *python(READY + "signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n" + WAIT))
    assert running.line() == "up"
    running.process.terminate()
    assert running.line() == "no"
    running.process.terminate()
    assert running.finish() == (137, "", "")


def test_ctrl_c_in_a_terminal_reaches_the_program_once_and_head_and_workers_not() -> None:
    """The terminal sends SIGINT to everything in its foreground: the program has it already, and may want the workers to finish."""
    script = READY + (
        "import subprocess\n"
        "count = 0\n"
        "def handle(*_):\n"
        "    global count; count += 1\n"
        "signal.signal(signal.SIGINT, handle)\n"
        "print('up', flush=True)\n"
        "while not count: time.sleep(0.01)\n"
        "status = subprocess.run([sys.executable, '-m', 'everstep', 'status', '--json'], stdout=subprocess.PIPE, check=True).stdout\n"
        "import json; workers = json.loads(status)['slices'][0]['workers']\n"
        "print('interrupts', count, 'workers', sum(worker['up'] for worker in workers), flush=True)\n"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "everstep", "run", *python(script)])
    output = b""
    while b"up\r\n" not in output:
        output += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    while b"workers 1" not in output:
        output += os.read(terminal, 1000)
    assert b"interrupts 1 workers 1" in output
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)


def test_sigint_before_everything_is_up_ends_it_all(start: Start) -> None:
    running = start("run", "--join", "127.0.0.1:0", *python("print('never')"))  # nobody joins
    assert wait_for(lambda: (running.directory / "token").exists())
    running.process.send_signal(signal.SIGINT)
    code, output, _ = running.finish()
    assert (code, output) == (130, "")
    assert not running.directory.exists()


def test_a_name_in_use(start: Start) -> None:
    running = start("run", *python(READY + WAIT))
    assert running.line() == "up"
    result = everstep("run", "--name", running.name, *python("print('never')"))
    assert (result.returncode, result.stdout) == (2, "")
    assert "in use" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_port(start: Start) -> None:
    running = start("run", "--listen", "127.0.0.1:0", *python("import os; print(os.environ['JAX_BACKEND_TARGET'], flush=True); input()"))
    target = running.line()
    assert target.startswith("grpc://127.0.0.1:")
    address = target.removeprefix("grpc://")
    result = everstep("run", "--listen", address, *python("print('never')"))
    assert (result.returncode, result.stdout) == (2, "")
    assert f"can't listen at {address}" in result.stderr
    assert result.stderr.count("\n") == 1


def test_logs_are_kept_where_asked(tmp_path: pathlib.Path) -> None:
    assert everstep("run", "--log-directory", str(tmp_path), *python("pass")).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {"head.log", "s0w0.1.log"}
    assert "worker s0w0 (slice 0, incarnation 1" in (tmp_path / "head.log").read_text()


def test_shared_directory_where_asked(tmp_path: pathlib.Path) -> None:
    script = "import os; print(os.environ['IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_DIRECTORY'])"
    result = everstep("run", "--shared-directory", str(tmp_path), *python(script))
    assert pathlib.Path(result.stdout.strip()).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_the_token_is_on_no_command_line(start: Start) -> None:
    running = start("run", *python(READY + WAIT))
    assert running.line() == "up"
    (worker,) = running.workers()
    assert b"token" not in pathlib.Path(f"/proc/{worker}/cmdline").read_bytes()
    assert b"EVERSTEP_TOKEN" not in pathlib.Path(f"/proc/{worker}/environ").read_bytes()
