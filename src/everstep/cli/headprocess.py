"""The head process, seen from the command that has started it.

Between the two is a socket pair, the lifeline. It carries lines of JSON:
    head → command   {"ready": {...}} or {"error": "...", "exit_code": 2}, once
    command → head   {"program": pid} when the program runs, {"ended": true} when it has ended
Its end of file says, either way, that the other side is gone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
from typing import Any

from everstep.cli.errors import CommandError, UsageError
from everstep.cli.options import HeadOptions
from everstep.cli.rundirectory import RunDirectory, remove
from everstep.launch.seam import Exit
from everstep.launch.supervisor import telling_lines

_CLEAN_SECONDS = 1.0  # for a worker that is cleaning up after a head that has died
_STOP_SECONDS = 10.0  # for a head to end everything; then it is killed, and its workers end by themselves


@dataclasses.dataclass(frozen=True, slots=True)
class Ready:
    """What a head that is ready tells.

    target: for JAX_BACKEND_TARGET. shared_directory: where the program may leave large host buffers.
    """

    target: str
    shared_directory: str
    workers: int
    devices: int

    def environment(self) -> dict[str, str]:
        """The variables that make a JAX program use this head."""
        return {
            "JAX_PLATFORMS": "proxy,cpu",
            "JAX_BACKEND_TARGET": self.target,
            "IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS": "true",  # the endpoint is private to this user; JAX's client has no TLS
            # Host buffers from this size on travel as files.
            "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_DIRECTORY": self.shared_directory,
            "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_THRESHOLD_BYTES": str(1 << 20),
            # The client warns of its missing TLS, and at each end of a program, with a stack trace, that the connection has ended.
            "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "3"),
        }


class HeadProcess:
    """A head that lives as long as this object: `close`, or this process's death in any way, ends it and everything it has started."""

    def __init__(self, options: HeadOptions) -> None:
        self._directory = RunDirectory.of(options.name)
        self._directory.check_length()
        self._log = (options.log_directory or self._directory.path) / "head.log"
        self._lifeline, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-m", "everstep", "head", "--lifeline", str(theirs.fileno()), *options.arguments()]
            environment = os.environ | {"GRPC_ENABLE_FORK_SUPPORT": "0", "PYTHONUNBUFFERED": "1"}
            # A session of its own: Ctrl-C in the terminal is for the program.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, pass_fds=[theirs.fileno()], start_new_session=True
            )
        self._lines = self._lifeline.makefile("rb")

    def wait_ready(self) -> Ready:
        """Wait until programs can connect. Raises CommandError with the reason why they never will."""
        line = self._lines.readline()
        if not line:
            raise self.wait()
        message = json.loads(line)
        if "error" in message:
            raise (UsageError if message["exit_code"] == UsageError.exit_code else CommandError)(message["error"])
        return Ready(**message["ready"])

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> CommandError:
        """Wait until it has died. The error that tells of it, with the end of its log unless it was killed from outside."""
        end = Exit.of(self._process.wait())
        words = "" if end.signal == signal.SIGKILL else self._log_tail()
        return CommandError(f"the head has died ({end}){words}")

    def program_started(self, pid: int) -> None:
        """From now on the head kills this process when this command dies."""
        self._tell({"program": pid})

    def program_ended(self) -> None:
        self._tell({"ended": True})

    def close(self) -> None:
        """End it. On return it is gone with its directories; workers are gone or, if it had to be killed, on their way."""
        with contextlib.suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._lines.close()
        self._lifeline.close()
        remove(self._directory.path, _CLEAN_SECONDS)

    def _log_tail(self) -> str:
        try:
            lines = telling_lines(self._log.read_text(errors="replace"))
        except OSError:
            return ""
        return "".join(f"\n  head| {line}" for line in lines)

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # a head that is gone is found by its exit
            self._lifeline.sendall(json.dumps(message).encode() + b"\n")
