"""Does what the head says, in the order in which it says it: the order that keeps collectives from deadlocking.

Whatever takes time runs beside the queue and leaves a placeholder that later commands wait for.
"""

from __future__ import annotations

import logging
import os
import pathlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure
from everstep.worker import programs, xla
from everstep.worker.arrays import Arrays, when_done
from everstep.worker.faults import FAULTS
from everstep.worker.launches import Launches, Loaded
from everstep.worker.persistence import Persistence
from everstep.worker.programs import Compiler, Program
from everstep.worker.reports import Reporter
from everstep.worker.transfers import Transfers
from everstep.worker.world import World, Worlds

log = logging.getLogger(__name__)

_COMPILES = 2  # at least so many programs are compiled at a time


class Executor:
    """The queue of commands, and the table of programs."""

    def __init__(
        self, arrays: Arrays, worlds: Worlds, compiler: Compiler, transfers: Transfers, persistence: Persistence, reporter: Reporter
    ) -> None:
        self._arrays = arrays
        self._worlds = worlds
        self._compiler = compiler
        self._transfers = transfers
        self._reporter = reporter
        self._pool = ThreadPoolExecutor(max(_COMPILES, os.cpu_count() or 1), "compile")
        self._programs: dict[int, Loaded] = {}
        self._blobs: dict[int, bytes] = {}
        self._launches = Launches(arrays, reporter)
        self._queue: queue.SimpleQueue[tuple[int, str, Any, Loaded | None]] = queue.SimpleQueue()
        self._commands: dict[str, Callable[[int, Any], None]] = {
            "unload": self._unload,
            "describe": self._describe,
            "execute": self._execute,
            "put": transfers.put,
            "get": transfers.get,
            "assemble": transfers.assemble,
            "build": transfers.build,
            "bitcast": transfers.bitcast,
            "delete": self._delete,
            "save": persistence.save,
            "restore": persistence.restore,
        }

    def start(self) -> None:
        threading.Thread(target=self._run, name="executor", daemon=True).start()

    def push(self, op: int, name: str, message: Any) -> None:
        """Queue a command: `name` is its field in ToWorker. A compile begins at once, but counts only when its turn comes."""
        loaded = None
        if name in ("compile", "load"):
            loaded = Loaded(Future(), len(message.devices) > 1)
            self._pool.submit(self._compile if name == "compile" else self._load, op, message, loaded.program)
        if name != "compile" or message.world:
            self._queue.put((op, name, message, loaded))

    def programs(self) -> int:
        """How many there are."""
        return len(self._programs)

    @property
    def started(self) -> int:
        """The highest number of an operation whose program has been started."""
        return self._launches.started

    def blob(self, program: int) -> bytes:
        """The serialized executable of a program that was compiled here. Raises Failure (NOT_FOUND)."""
        try:
            return self._blobs[program]
        except KeyError:
            raise Failure(Code.NOT_FOUND, f"program {program} was not compiled on this worker") from None

    def forget(self, world: World) -> None:
        """Let go of the programs of a world that is no more."""
        for number, loaded in list(self._programs.items()):
            program = loaded.program
            if program.done() and not program.exception() and program.result().placement.world is world:
                self._programs.pop(number, None)
        self._launches.forget(world)

    def _run(self) -> None:
        while True:
            op, name, message, loaded = self._queue.get()
            if loaded is not None:
                self._programs[message.program] = loaded
                continue
            try:
                FAULTS.reach(name)
                self._commands[name](op, message)
                FAULTS.reach(name, after=True)
            except Exception as error:
                failure = xla.failure(error)
                if not isinstance(error, Failure):
                    log.exception("%s", name)
                if (result := getattr(message, "array", 0)) and name != "get":
                    self._arrays.set(result, failure)
                self._reporter.done(op, failure)

    # ---------------------------------------------------------------- programs

    def _compile(self, op: int, message: wire.Compile, future: Future[Program]) -> None:
        try:
            FAULTS.reach("compile")
            world = self._worlds.get(message.world) if message.world else None
            program, report = self._compiler.compile(world, message, self._transfers.program(message.module))
        except Exception as error:
            failure = xla.failure(error)
            future.set_exception(failure)
            self._compiled(op, wire.Compiled(error=Reporter.error(failure)))
            return
        future.set_result(program)
        self._compiled(op, report)
        FAULTS.reach("compile", after=True)
        ready = wire.BlobReady(program=message.program)
        try:
            blob = program.serialize()
            ready.size = len(blob)
            if message.blob_path:
                pathlib.Path(message.blob_path).write_bytes(blob)
            else:
                self._blobs[message.program] = blob
        except Exception as error:
            ready.error.CopyFrom(Reporter.error(xla.failure(error)))
        self._reporter.send(wire.ToHead(blob_ready=ready))

    def _compiled(self, op: int, report: wire.Compiled) -> None:
        if op:
            report.op = op
            self._reporter.send(wire.ToHead(compiled=report))

    def _load(self, op: int, message: wire.Load, future: Future[Program]) -> None:
        failure = None
        try:
            FAULTS.reach("load")
            world = self._worlds.get(message.world)
            future.set_result(self._compiler.load(world, message, self._transfers.program(message.blob)))
        except Exception as error:
            failure = xla.failure(error)
            future.set_exception(failure)
        self._reporter.done(op, failure)

    def _unload(self, op: int, message: wire.Unload) -> None:
        for number in message.programs:
            self._programs.pop(number, None)
            self._blobs.pop(number, None)
        self._reporter.done(op)

    def _describe(self, op: int, message: wire.Describe) -> None:
        loaded = self._programs.get(message.program)

        def work() -> None:
            report = wire.Described(op=op)
            try:
                if loaded is None:
                    raise _unknown(message.program)
                programs.analyse(loaded.program.result(), message, report)
            except Exception as error:
                report.error.CopyFrom(Reporter.error(xla.failure(error)))
            self._reporter.send(wire.ToHead(described=report))

        when_done([loaded.program] if loaded is not None else [], lambda: self._pool.submit(work))

    def _execute(self, op: int, message: wire.Execute) -> None:
        loaded = self._programs.get(message.program)
        if loaded is None:
            loaded = Loaded(Future(), False)
            loaded.program.set_exception(_unknown(message.program))
        self._launches.execute(op, message, loaded)

    # ---------------------------------------------------------------- arrays

    def _delete(self, op: int, message: wire.Delete) -> None:
        self._arrays.delete(message.arrays)
        self._reporter.done(op)


def _unknown(program: int) -> Failure:
    return Failure(Code.NOT_FOUND, f"program {program} is not on this worker")
