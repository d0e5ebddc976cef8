"""The program's process: passes signals on to it, and ends it when the head is gone."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import TracebackType

from everstep.cli import orphans, signals
from everstep.cli.errors import UsageError
from everstep.cli.headprocess import HeadProcess

_PATIENCE = 3.0  # seconds between asking the program to end and killing it


class ProgramProcess:
    """Runs the program in the foreground: it shares standard input, output, error and the terminal with this process."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], head: HeadProcess) -> None:
        self._command = command
        self._environment = os.environ | environment
        self._head = head
        self._asked_to_end = False

    def __enter__(self) -> ProgramProcess:
        self._blocked = signals.blocked()
        mask = self._blocked.__enter__()
        parent = os.getpid()

        def prepare() -> None:  # between fork and exec; this process has one thread
            orphans.die_with_parent(parent)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

        try:
            self._process = subprocess.Popen(self._command, env=self._environment, preexec_fn=prepare)
        except OSError as error:
            self._blocked.__exit__(None, None, None)
            raise UsageError(f"{self._command[0]!r} can't be run: {error.strerror}") from error
        self._head.program_started(self._process.pid)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._head.program_ended()
        self._blocked.__exit__(kind, error, trace)

    def wait(self) -> int:
        """The program's exit code, 128 + n if signal n has ended it. Raises CommandError if the head has died under it."""
        head_died = False
        while (code := self._process.poll()) is None:
            if not head_died and not self._head.is_alive:
                head_died = True
                self._ask_to_end()
            number, from_terminal = signals.take()
            if number is signal.SIGALRM or (number is signal.SIGTERM and self._asked_to_end):
                self._process.kill()
            elif number is signal.SIGTERM:
                self._asked_to_end = True
                self._process.terminate()
            elif number in signals.FORWARDED and not from_terminal:
                self._process.send_signal(number)
        if head_died:
            raise self._head.wait()
        return 128 - code if code < 0 else code

    def _ask_to_end(self) -> None:
        self._asked_to_end = True
        self._process.terminate()
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
