"""Host callbacks where the comparison with plain JAX (programs/callbacks.py) doesn't look: errors, exit, threads, programs in callbacks."""

from __future__ import annotations

import subprocess
import textwrap

import pytest
from e2e.clusters import Cluster, Layout, plain, run
from e2e.conftest import GetCluster
from processes import wait_for

_LAYOUTS = [(1, 1, 1), (1, 1, 4), (1, 2, 2)]

_START = """
import os, sys, threading
import jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

DEVICES = jax.devices()
SCALAR = jax.ShapeDtypeStruct((), jnp.float32)

def calls(function):
    return jax.jit(lambda x: jax.pure_callback(function, SCALAR, x))
"""


def _program(body: str) -> tuple[str, str]:
    return "-c", _START + textwrap.dedent(body)


@pytest.fixture(params=_LAYOUTS, ids=lambda layout: "x".join(map(str, layout)))
def any_cluster(request: pytest.FixtureRequest, cluster: GetCluster) -> Cluster:
    return cluster(*request.param)


@pytest.fixture
def one_worker(cluster: GetCluster) -> Cluster:
    return cluster(1, 1, 4)


def _output(cluster: Cluster, body: str) -> list[str]:
    """What a program prints, line by line. It must not write errors."""
    done = cluster.run(*_program(body))
    assert done.stderr == ""
    return done.stdout.splitlines()


def _ends(cluster: Cluster, body: str) -> subprocess.CompletedProcess[str]:
    """The end of a program that may fail."""
    process = cluster.start(*_program(body))
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_the_error_is_the_one_of_plain_jax_but_for_its_code(one_worker):
    """INTERNAL would look like a lost slice to an elastic training loop."""
    body = """
        import logging
        logging.disable()
        def bad(v):
            raise LookupError("nothing there")
        try:
            calls(bad)(1.0).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            print(error)
    """
    expected = run(plain(), *_program(body)).stdout.splitlines()
    got = _ends(one_worker, body).stdout.splitlines()
    assert expected[0] == "INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):"
    assert got[0] == "UNKNOWN: CpuCallback error calling callback: Traceback (most recent call last):"
    assert got[-1] == expected[-1] == "LookupError: nothing there"
    assert any("in bad" in line for line in got)
    assert not [line for line in got if "everstep" in line], "our own frames are of no interest"


@pytest.mark.usefixtures("nothing_left_behind")
@pytest.mark.parametrize("layout", [Layout(1, 2, 2), Layout(2, 1, 1)], ids=str)
def test_an_error_on_one_device_ends_a_program_in_which_the_others_wait_for_it(layout: Layout) -> None:
    """Each worker has a device that waits in the psum; of four devices the worker with the error has one, too."""
    cluster = Cluster(layout)
    workers = cluster.workers()
    done = _ends(
        cluster,
        """
        import logging
        logging.disable()
        mesh = Mesh(np.array(DEVICES), "x")
        rows = NamedSharding(mesh, P("x"))
        host = np.arange(len(DEVICES), dtype=np.float32)

        def fail_at_1(v):
            if v == 1:
                raise LookupError("nothing there")
            return np.asarray(v)

        def total(call):
            shape = jax.ShapeDtypeStruct((1,), np.float32)
            sum_up = lambda x: jax.lax.psum(call(fail_at_1, shape, x), "x")
            return jax.jit(jax.shard_map(sum_up, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False))

        kept = jax.device_put(np.ones_like(host), rows)
        for call in (jax.pure_callback, io_callback):
            f = total(call)
            try:
                f(jax.device_put(host, rows)).block_until_ready()
            except jax.errors.JaxRuntimeError as error:
                text = str(error).splitlines()
                print(text[0], text[-1])
            print(f(jax.device_put(host + 2, rows)), jax.jit(jnp.sum)(kept + 1))
        """,
    )
    count = layout.devices
    told = "UNKNOWN: CpuCallback error calling callback: Traceback (most recent call last): LookupError: nothing there"
    assert done.stdout.splitlines() == [told, f"[{sum(range(2, count + 2))}.] {2 * count}.0"] * 2, done.stderr
    assert cluster.workers() == workers
    cluster.close(said="everstep: jit__lambda failed on some workers while others wait for them: forming a new world\n" * 2)


def test_effects_that_nobody_waits_for_happen_before_the_end(any_cluster):
    lines = _output(
        any_cluster,
        """
        f = jax.jit(lambda x: jax.debug.print("x is {}", x))
        for i in range(5):
            f(i)
        """,
    )
    assert sorted(lines) == [f"x is {i}" for i in range(5)]


def test_effects_of_a_program_that_was_overtaken_happen_before_the_end(any_cluster):
    lines = _output(
        any_cluster,
        """
        overtaken = threading.Event()

        def slow(v):
            overtaken.wait(60)
            threading.Event().wait(0.5)
            print("slow")

        jax.jit(lambda x: jax.debug.callback(slow, x))(1.0)
        jax.jit(lambda x: jax.debug.callback(lambda v: (print("quick"), overtaken.set()), x))(1.0)
        """,
    )
    assert lines == ["quick", "slow"]


def test_effects_of_a_thread_that_has_ended_happen_before_the_end(any_cluster):
    lines = _output(
        any_cluster,
        """
        f = jax.jit(lambda x: jax.debug.callback(lambda v: (threading.Event().wait(0.2), print("x is", v)), x))
        thread = threading.Thread(target=lambda: [f(i) for i in range(3)])
        thread.start()
        thread.join()
        """,
    )
    assert lines == [f"x is {i}" for i in range(3)]


def test_an_error_that_nobody_waits_for_is_told_at_the_end(one_worker):
    done = _ends(
        one_worker,
        """
        import logging
        logging.disable()
        def bad(v):
            raise LookupError("nothing there")
        jax.jit(lambda x: jax.debug.callback(bad, x))(1.0)
        """,
    )
    assert done.returncode == 0
    assert "LookupError: nothing there" in done.stderr
    assert "wait_for_tokens" in done.stderr


def test_exit_codes_and_forks(one_worker):
    done = _ends(
        one_worker,
        """
        import multiprocessing, subprocess, warnings
        warnings.simplefilter("ignore")  # Python and JAX warn of forks
        jax.jit(lambda x: jax.debug.print("one {}", x))(1)
        jax.effects_barrier()
        print(subprocess.run(["echo", "two"], capture_output=True, text=True).stdout.strip())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            print(pool.map(abs, [-3]))
        jax.jit(lambda x: jax.debug.print("four {}", x))(4)
        sys.exit(5)
        """,
    )
    assert (done.returncode, done.stderr) == (5, "")
    assert done.stdout.splitlines() == ["one 1", "two", "[3]", "four 4"]


def test_a_callback_may_run_programs_on_the_workers(any_cluster):
    """Also such as have callbacks themselves, and on the device that waits for it."""
    lines = _output(
        any_cluster,
        """
        there = jax.device_put(np.float32(5), DEVICES[0])
        big = jax.device_put(np.ones((64, 64), np.float32), DEVICES[0])
        inner = calls(lambda v: np.asarray(v) + 1)
        multiply = jax.jit(lambda a: (a @ a @ a).sum())
        print(calls(lambda v: inner(jax.device_put(v, DEVICES[0])) * 2 + there)(there))
        print(calls(lambda v: calls(lambda w: inner(w) + 10)(v))(there))
        print(float(calls(lambda v: np.asarray(multiply(big)) + np.asarray(v))(there)))
        """,
    )
    assert lines == ["17.0", "16.0", "16777220.0"]


def test_all_devices_may_be_in_callbacks_at_once(any_cluster):
    lines = _output(
        any_cluster,
        """
        mesh = Mesh(np.array(DEVICES), "x")
        together = threading.Barrier(len(DEVICES))

        def meet(v):
            together.wait(60)
            return np.asarray(v) + 1

        @jax.jit
        @partial(jax.shard_map, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
        def f(x):
            y = jax.pure_callback(meet, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
            return y * jax.lax.psum(1, "x")

        x = jax.device_put(np.arange(len(DEVICES), dtype=np.float32), NamedSharding(mesh, P("x")))
        for _ in range(3):
            x = f(x) / len(DEVICES)
        print(x.tolist() == [i + 3 for i in range(len(DEVICES))])
        """,
    )
    assert lines == ["True"]


@pytest.mark.parametrize("layout", [(1, 2, 2), (1, 4, 1)], ids=["2x2", "4x1"])
@pytest.mark.parametrize("size", [1, 65536], ids=["small", "large"])
def test_a_callback_may_use_a_worker_that_waits_for_it(cluster, layout, size):
    """In a step on all devices, with many more programs behind it."""
    lines = _output(
        cluster(*layout),
        f"""
        rows = NamedSharding(Mesh(np.array(DEVICES), "x"), P("x"))
        total = jax.jit(jax.shard_map(lambda x: x + jax.lax.psum(x.sum() * 0 + 1, "x"), mesh=rows.mesh, in_specs=P("x"), out_specs=P("x")))
        more = jax.jit(lambda x: x + 1, out_shardings=rows)
        double = jax.jit(lambda x: x * 2)
        three, go = jax.device_put(np.float32(3), DEVICES[0]), threading.Event()

        def back(v):
            assert go.wait(60)
            return np.full({size}, double(three), np.float32)

        x = jax.device_put(np.ones(4 * {size}, np.float32), rows)
        more(total(x)).block_until_ready()
        late = jax.jit(lambda v: jax.pure_callback(back, jax.ShapeDtypeStruct(({size},), np.float32), v))
        parts = [shard.data for shard in x.addressable_shards]
        parts[3] = late(jax.device_put(np.float32(1), DEVICES[3]))
        x = total(jax.make_array_from_single_device_arrays(x.shape, rows, parts))
        for _ in range(40):
            x = more(x)
        go.set()
        print(np.asarray(x)[::{size}].tolist())
        """,
    )
    assert lines == ["[45.0, 45.0, 45.0, 50.0]"]


def test_many_threads_of_the_program(one_worker):
    lines = _output(
        one_worker,
        """
        f = calls(lambda v: np.asarray(v) * 2)
        seen = {}
        def work(k):
            with jax.default_device(DEVICES[k % 4]):
                seen[k] = [float(f(np.float32(100 * k + i))) for i in range(20)]
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(seen == {k: [2.0 * (100 * k + i) for i in range(20)] for k in range(8)})
        """,
    )
    assert lines == ["True"]


def test_compiled_ahead_of_time(any_cluster):
    lines = _output(
        any_cluster,
        """
        lowered = calls(lambda v: np.asarray(v) * 2).lower(1.0)
        before = lowered.as_text()
        first, second = lowered.compile(), lowered.compile()
        print(lowered.as_text() == before, first(2.0), second(3.0))
        print(jax.pmap(calls(lambda v: np.asarray(v) * 3))(np.arange(len(DEVICES), dtype=np.float32)).sum() == 3 * sum(range(len(DEVICES))))
        with jax.enable_x64(True):
            double = jax.ShapeDtypeStruct((), jnp.float64)
            print(jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) / 3, double, x))(np.float64(1)))
        """,
    )
    assert lines == ["True 4.0 6.0", "True", "0.3333333333333333"]


def test_executables_may_be_dropped_while_they_run(one_worker):
    lines = _output(
        one_worker,
        """
        import gc
        let_go, seen = threading.Event(), []

        def start(i):
            jax.jit(lambda x: jax.debug.callback(lambda v: (let_go.wait(60), seen.append(i)), x))(1.0)
            jax.clear_caches()
            gc.collect()

        for i in range(5):
            start(i)
        let_go.set()
        jax.effects_barrier()
        print(sorted(seen))
        """,
    )
    assert lines == ["[0, 1, 2, 3, 4]"]


def test_jaxs_persistent_cache_keeps_quiet(one_worker, tmp_path):
    lines = _output(
        one_worker,
        f"""
        jax.config.update("jax_compilation_cache_dir", {str(tmp_path)!r})
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        print(jax.jit(lambda x: x * 2)(3.0), calls(lambda v: np.asarray(v) * 2)(2.0))
        """,
    )
    assert lines == ["6.0 4.0"]


def test_programs_keep_to_their_own_callbacks(one_worker):
    """Two at once, with the same program."""
    body = """
        f = calls(lambda v: np.asarray(v) + {offset})
        print("ready", flush=True)
        sys.stdin.readline()
        print(sum(float(f(np.float32(i))) for i in range(50)))
    """
    processes = [one_worker.start(*_program(body.format(offset=offset))) for offset in (1000, 2000)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    results = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        results.append(out)
    assert results == ["51225.0\n", "101225.0\n"]


def test_a_program_that_is_killed_in_a_callback_leaves_the_workers_free(any_cluster):
    process = any_cluster.start(
        *_program(
            """
            def stay(v):
                print("here", flush=True)
                threading.Event().wait()
            calls(stay)(1.0).block_until_ready()
            """
        )
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.kill()
    process.communicate(timeout=60)
    assert _output(any_cluster, "print([float(calls(lambda v: np.asarray(v) * 2)(jax.device_put(3.0, d))) for d in DEVICES])") == [
        str([6.0] * any_cluster.layout.devices)
    ]
    assert wait_for(lambda: any_cluster.status()["sessions"], until=lambda sessions: not sessions) == []
