"""What effects_barrier and the exit of the program wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable

import jax
import pytest
from jax._src import dispatch

from everstep.jax_plugin import effects
from everstep.jax_plugin.effects import Unfinished

SECONDS = 30.0


class Token:
    """Of a program that ends when it is let go."""

    def __init__(self, error: str = "") -> None:
        self.waited, self.let_go = threading.Event(), threading.Event()
        self.error = error

    def block_until_ready(self) -> None:
        self.waited.set()
        assert self.let_go.wait(SECONDS)
        if self.error:
            raise jax.errors.JaxRuntimeError(self.error)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Unfinished:
    """For devices whose client is "ours", with nothing unfinished before."""
    for name in effects.NEEDS:
        method = getattr(dispatch.RuntimeTokenSet, name)
        monkeypatch.setattr(dispatch.RuntimeTokenSet, name, lambda *arguments, method=method: method(*arguments))
    unfinished = Unfinished()
    monkeypatch.setattr(effects, "unfinished", unfinished)
    effects.install(lambda client: client == "ours")
    return unfinished


class Device:
    def __init__(self, client: str) -> None:
        self.client = client


OURS, CPU = Device("ours"), Device("cpu")


def start(token: Token, device: Device = OURS) -> Token:
    """What JAX does when it has started a program."""
    dispatch.runtime_tokens.set_output_runtime_token(device, token)
    return token


def in_thread(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_a_barrier_waits_for_programs_that_were_overtaken(installed: Unfinished) -> None:
    first, last = start(Token()), start(Token())
    last.let_go.set()
    passed = threading.Event()

    def let_go() -> None:
        assert first.waited.wait(SECONDS)
        assert not passed.is_set()
        first.let_go.set()

    thread = in_thread(let_go)
    dispatch.runtime_tokens.block_until_ready()
    passed.set()
    assert first.let_go.is_set()
    thread.join()


def test_only_the_error_of_the_last_program_is_told(installed: Unfinished) -> None:
    for error in ("the first", "the last"):
        start(Token(error)).let_go.set()
    with pytest.raises(jax.errors.JaxRuntimeError, match="the last"):
        dispatch.runtime_tokens.block_until_ready()
    dispatch.runtime_tokens.clear()
    dispatch.runtime_tokens.block_until_ready()


def test_the_end_waits_for_programs_of_threads_that_have_ended(installed: Unfinished) -> None:
    token = Token()
    in_thread(lambda: start(token)).join()
    ended = in_thread(installed.wait)
    assert token.waited.wait(SECONDS)
    assert ended.is_alive()
    token.let_go.set()
    ended.join(SECONDS)
    assert not ended.is_alive()


def test_a_thread_waits_for_its_own_programs_only(installed: Unfinished) -> None:
    """A callback may wait for what it has started while its own program runs."""
    outer = start(Token())

    def callback() -> None:
        start(Token()).let_go.set()
        dispatch.runtime_tokens.block_until_ready()

    thread = in_thread(callback)
    thread.join(SECONDS)
    assert not thread.is_alive()
    outer.let_go.set()
    dispatch.runtime_tokens.block_until_ready()


def test_programs_on_other_backends_are_left_to_jax(installed: Unfinished) -> None:
    first, last = start(Token(), CPU), start(Token(), CPU)
    last.let_go.set()
    dispatch.runtime_tokens.block_until_ready()
    installed.wait()
    assert not first.waited.is_set()


def test_tokens_of_programs_that_have_ended_are_let_go(installed: Unfinished) -> None:
    siblings: set[Token] = set()
    tokens = [Token() for _ in range(3)]
    for token in tokens:
        token.let_go.set()
        installed.add(token, siblings)
    installed.wait()
    assert siblings == set()
