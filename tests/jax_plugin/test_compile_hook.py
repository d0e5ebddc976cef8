"""Host callbacks leave the module that goes to the head, and are called in this process."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import buffer_callback, io_callback

from everstep.jax_plugin import compile_hook


def _double(x):
    return jax.pure_callback(lambda v: np.asarray(v) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_callback_is_called_through_the_head(proxied, head):
    assert np.asarray(jax.jit(lambda x: _double(x) + 1)(np.arange(4, dtype=np.float32))).tolist() == [1, 3, 5, 7]
    [ids] = [ids for ids in proxied.ids if ids]
    assert ids == [f"{head.uuids[0]}/0"]


def test_programs_without_callbacks_carry_no_attribute(proxied, head):
    jax.jit(lambda x: x + 1)(1)
    assert proxied.ids == [[]]
    assert not head.attached.is_set(), "nothing dials before there is a callback"


def test_the_module_is_as_it_was_afterwards(proxied):
    lowered = jax.jit(_double).lower(1.0)
    before = lowered.as_text()
    first, second = lowered.compile(), lowered.compile()
    assert lowered.as_text() == before
    assert (float(first(2.0)), float(second(3.0))) == (4, 6)


def test_a_jitted_function_is_compiled_once(proxied):
    f = jax.jit(_double)
    assert [float(f(float(i))) for i in range(5)] == [0, 2, 4, 6, 8]
    assert len([ids for ids in proxied.ids if ids]) == 1


def test_several_callbacks_keep_their_order(proxied):
    def f(x):
        shape = jax.ShapeDtypeStruct((), jnp.float32)
        a = jax.pure_callback(lambda v: np.asarray(v) + np.float32(1), shape, x)
        return jax.pure_callback(lambda v, w: np.asarray(v) * 10 + np.asarray(w), shape, a, x)

    assert float(jax.jit(f)(np.float32(2))) == 32


@pytest.mark.parametrize(
    "dtype", ["bool", "int4", "uint4", "int8", "uint32", "float16", "bfloat16", "float32", "float8_e4m3fn", "complex64"]
)
def test_dtypes(proxied, dtype):
    x = jnp.asarray([[0, 1, 1], [1, 0, 1]], dtype)
    seen = []

    def f(v):
        seen.append(v.dtype)
        return v

    y = jax.jit(lambda x: jax.pure_callback(f, jax.ShapeDtypeStruct(x.shape, x.dtype), x))(x)
    assert seen == [x.dtype]
    assert y.dtype == x.dtype
    assert np.array_equal(np.asarray(y), np.asarray(x))


def test_ordered_effects_and_tokens(proxied):
    seen: list[int] = []

    @jax.jit
    def f(x):
        io_callback(lambda v: seen.append(int(v)), None, x, ordered=True)
        io_callback(lambda v: seen.append(int(v) * 10), None, x, ordered=True)
        return x

    for i in range(5):
        f(i)
    jax.effects_barrier()
    assert seen == [0, 0, 1, 10, 2, 20, 3, 30, 4, 40]


def test_debug_print(proxied, capsys):
    jax.jit(lambda x: jax.debug.print("x is {}", x))(3)
    jax.effects_barrier()
    assert capsys.readouterr().out == "x is 3\n"


def test_random_keys(proxied):
    seen = []
    key = jax.random.key(3)
    jax.jit(lambda k: jax.debug.callback(lambda v: seen.append(np.asarray(v)), jax.random.key_data(k)))(key)
    jax.effects_barrier()
    assert np.array_equal(seen[0], jax.random.key_data(key))


def test_an_exception_reaches_the_program_with_its_traceback(proxied):
    def bad(v):
        raise LookupError("nothing there")

    with pytest.raises(jax.errors.JaxRuntimeError, match=r"(?s)Traceback.*in bad.*LookupError: nothing there"):
        jax.jit(lambda x: jax.pure_callback(bad, jax.ShapeDtypeStruct((), jnp.float32), x))(1.0).block_until_ready()
    assert float(jax.jit(_double)(1.0)) == 2


def test_a_callback_may_use_jax_and_call_back_itself(proxied):
    inner = jax.jit(lambda x: _double(x) + 1)
    f = jax.jit(lambda x: jax.pure_callback(lambda v: inner(v), jax.ShapeDtypeStruct((), jnp.float32), x))
    assert float(f(np.float32(4))) == 9


def test_callbacks_run_beside_each_other(proxied):
    """Sixteen that wait for one another."""
    together = threading.Barrier(16)

    def wait(v):
        together.wait(30)
        return np.asarray(v)

    f = jax.jit(lambda x: jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), x)).lower(1.0).compile()
    threads = [threading.Thread(target=f, args=(1.0,)) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken


def test_64_bit_mode_of_the_thread_that_compiled(proxied):
    with jax.enable_x64(True):
        y = jax.jit(_double)(np.float64(1) / 3)
        assert y.dtype == np.float64
        assert float(y) == 2 / 3


def test_callbacks_of_dropped_executables_are_let_go_but_not_at_once(proxied, monkeypatch):
    monkeypatch.setattr(compile_hook._Executables, "_SOME", 4)
    monkeypatch.setattr(compile_hook, "_executables", compile_hook._Executables())

    class Something:
        pass

    def make(keep):
        something = Something()

        def f(x):
            return jax.pure_callback(lambda v: (something, np.asarray(v))[1], jax.ShapeDtypeStruct((), jnp.float32), x)

        executable = jax.jit(f).lower(1.0).compile()
        kept.extend([executable] * keep)
        jax.clear_caches()
        gc.collect()
        return weakref.ref(something)

    kept: list[Any] = []
    first, used = make(keep=False), make(keep=True)
    assert first() is not None, "it may still be running"
    later = [make(keep=False) for _ in range(20)]
    assert first() is None
    assert used() is not None
    assert float(kept[0](3.0)) == 3
    assert sum(reference() is not None for reference in later) <= 8


def test_a_failed_compile_registers_nothing(proxied, monkeypatch):
    def fails(module):
        raise MemoryError

    monkeypatch.setattr(compile_hook, "_array_of_strings", fails)
    with pytest.raises(MemoryError):
        jax.jit(_double)(1.0)
    assert not compile_hook._server._functions


def test_buffer_callback_is_refused(proxied):
    f = jax.jit(buffer_callback.buffer_callback(lambda context, out, x: None, jax.ShapeDtypeStruct((4,), jnp.float32)))
    with pytest.raises(NotImplementedError, match="use io_callback"):
        f(np.zeros(4, np.float32))


def test_a_jax_that_compiles_in_another_way_is_told(monkeypatch):
    from jax._src import compiler

    monkeypatch.setattr(compiler, "backend_compile_and_load", lambda module: None)
    with pytest.warns(RuntimeWarning, match=r"host callbacks .* won't work on Everstep: JAX .* compiles in another way"):
        compile_hook.install()
    monkeypatch.delattr(compiler, "backend_compile_and_load")
    with pytest.warns(RuntimeWarning, match="compiles in another way"):
        compile_hook.install()


def test_the_persistent_cache_is_for_other_backends(proxied, monkeypatch):
    """The client can't serialize executables."""
    from jax._src import compilation_cache

    monkeypatch.setattr(compilation_cache, "is_cache_used", lambda client: True)
    compile_hook._disable_persistent_cache()
    assert not compilation_cache.is_cache_used(jax.devices()[0].client)
    monkeypatch.setattr(compile_hook, "_is_proxy", lambda client: False)
    assert compilation_cache.is_cache_used(jax.devices()[0].client)


def test_other_backends_keep_their_callbacks(proxied, monkeypatch):
    monkeypatch.setattr(compile_hook, "_is_proxy", lambda client: False)
    with pytest.raises(AssertionError, match="can't carry callables"):
        jax.jit(_double)(1.0)
