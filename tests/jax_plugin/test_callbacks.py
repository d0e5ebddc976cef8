"""The server in the program's process and its connection to the head."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from everstep.jax_plugin.callbacks import CallbackServer, NotAHeadError
from everstep.wire.errors import Code, Failure


@pytest.fixture
def server(head):
    server = CallbackServer(head.target)
    yield server
    server.close()
    assert head.detached.wait(10)


def test_calls_and_answers(head, server):
    ids = server.add([lambda x, y: (x + y, None), lambda: ()])
    total, token = head.call(ids[0], np.int32(3), np.array([1, 2], np.int32))
    assert total.tolist() == [4, 5]
    assert token is None
    assert head.call(ids[1]) == ()


def test_operands_are_read_only(head, server):
    [callback] = server.add([lambda x, token: (np.array(x.flags.writeable), token)])
    assert not head.call(callback, np.zeros(3), None)[0]


def test_empty_and_big_arrays(head, server):
    [callback] = server.add([lambda x: (x,)])
    assert head.call(callback, np.zeros((0, 3), np.float32))[0].shape == (0, 3)
    big = np.arange(3 << 20, dtype=np.int64)
    assert np.array_equal(head.call(callback, big)[0], big)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_is_raised_is_an_answer(head, server, error):
    def bad():
        raise error

    [callback] = server.add([bad])
    with pytest.raises(Failure) as caught:
        head.call(callback)
    assert caught.value.code == Code.UNKNOWN
    assert caught.value.message.startswith("Traceback (most recent call last):\n")
    assert type(error).__name__ in caught.value.message
    assert "jax_plugin/callbacks.py" not in caught.value.message, "our own frames are of no interest"


def test_results_that_xla_has_no_dtype_for(head, server):
    [callback] = server.add([lambda: (np.array(["text"]),)])
    with pytest.raises(Failure, match="KeyError"):
        head.call(callback)


def test_a_callback_that_is_gone(head, server):
    [callback] = server.add([lambda: ()])
    server.remove([callback])
    with pytest.raises(Failure, match="is gone") as caught:
        head.call(callback)
    assert caught.value.code == Code.CANCELLED


def test_the_head_goes_away(head):
    server = CallbackServer(head.target)
    assert server.is_alive
    server.close()
    assert head.detached.wait(10)
    server._reader.join(10)
    assert not server.is_alive


def test_nobody_answers(tmp_path):
    with pytest.raises(RuntimeError, match="does not take them"):
        CallbackServer(f"grpc://unix:{tmp_path}/nobody")


def test_something_else_answers(tmp_path):
    import asyncio
    import threading

    import grpc

    loop, up, down = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        server = grpc.aio.server()
        server.add_insecure_port(f"unix:{tmp_path}/s")
        await server.start()
        up.set()
        await down.wait()
        await server.stop(None)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    up.wait()
    try:
        with pytest.raises(NotAHeadError):
            CallbackServer(f"grpc://unix:{tmp_path}/s")
    finally:
        loop.call_soon_threadsafe(down.set)
        thread.join()
        loop.close()


_PROGRAM = """
import atexit, os, subprocess, sys, threading
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "false"  # as compile_hook does
from everstep.jax_plugin.callbacks import CallbackServer
server = CallbackServer(sys.argv[1])
[id] = server.add([lambda: (print("called", flush=True), ())[1]])
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "atexit.register(server.close)",
        "subprocess.run(['true'], check=True)",
        "pid = os.fork()\nif pid == 0: sys.exit(0)\nassert os.waitpid(pid, 0)[1] == 0",
        "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    ],
    ids=["open", "closed", "subprocess", "fork", "thread"],
)
def test_the_process_ends_cleanly(head, body):
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", textwrap.dedent(_PROGRAM).format(body=body), head.target],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert head.detached.wait(10)


def test_calls_are_answered_while_python_exits(head):
    """JAX waits for effects in an exit handler, when Python starts no threads any more."""
    body = "atexit.register(sys.stdin.read)\nprint(id, flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_PROGRAM).format(body=body), head.target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    callback = process.stdout.readline().strip()
    for _ in range(5):
        assert head.call(callback) == ()
        assert process.stdout.readline() == "called\n"
    out, err = process.communicate("", timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
