"""Signals of the command line: taken one by one in a loop, not by handlers that could interrupt anything anywhere."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

# What is for the program, and what wakes the loop.
FORWARDED = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2})
_ALL = FORWARDED | {signal.SIGCHLD, signal.SIGALRM}

_SI_KERNEL = 0x80  # si_code of a signal that the terminal has sent, to everyone in its foreground


class Terminated(BaseException):
    """SIGTERM or SIGHUP while nothing is there that it could be passed on to."""

    def __init__(self, number: int) -> None:
        self.exit_code = 128 + number


def end_on_terminate() -> None:
    """Let SIGTERM and SIGHUP unwind the stack, as Ctrl-C does, so that what was started is ended."""

    def handle(number: int, frame: FrameType | None) -> NoReturn:
        raise Terminated(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, handle)


@contextlib.contextmanager
def blocked() -> Iterator[set[signal.Signals]]:
    """Keep signals for `take`. Gives the mask from before, which a child must get back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ALL)
    try:
        yield {signal.Signals(number) for number in before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take() -> tuple[signal.Signals, bool]:
    """Wait for the next blocked signal: (which, whether the terminal has sent it, and so to the program too)."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(_ALL)
        return signal.Signals(info.si_signo), info.si_code == _SI_KERNEL
    return signal.Signals(signal.sigwait(_ALL)), _in_foreground()  # macOS does not tell where a signal comes from


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False
