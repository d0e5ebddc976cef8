"""Does what the head says, in the order in which it says it: the order that keeps collectives from deadlocking.

Whatever takes time runs beside the queue and leaves a placeholder that later commands wait for. All workers get their commands in one
order, so waiting can't deadlock.
"""

from __future__ import annotations

import logging
import pathlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure
from everstep.worker import programs, xla
from everstep.worker.arrays import Arrays, Stored, when_done
from everstep.worker.completions import Completions, Lane
from everstep.worker.programs import Compiler, Program
from everstep.worker.reports import Reporter
from everstep.worker.transfers import Transfers
from everstep.worker.world import Worlds

log = logging.getLogger(__name__)


class Executor:
    """The queue of commands, and the table of programs."""

    def __init__(
        self,
        arrays: Arrays,
        worlds: Worlds,
        compiler: Compiler,
        transfers: Transfers,
        reporter: Reporter,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._arrays = arrays
        self._worlds = worlds
        self._compiler = compiler
        self._transfers = transfers
        self._reporter = reporter
        self._pool = pool
        self._programs: dict[int, Future[Program]] = {}
        self._blobs: dict[int, bytes] = {}
        self._completions = Completions(reporter)
        self._lane = Lane()
        self._queue: queue.SimpleQueue[tuple[int, str, Any, Future[Program] | None]] = queue.SimpleQueue()
        self._commands: dict[str, Callable[[int, Any], None]] = {
            "unload": self._unload,
            "describe": self._describe,
            "execute": self._execute,
            "put": transfers.put,
            "get": transfers.get,
            "assemble": self._assemble,
            "build": transfers.build,
            "bitcast": transfers.bitcast,
            "delete": self._delete,
        }

    def start(self) -> None:
        threading.Thread(target=self._run, name="executor", daemon=True).start()

    def push(self, op: int, name: str, message: Any) -> None:
        """Queue a command: `name` is its field in ToWorker. A compile begins at once, but counts only when its turn comes."""
        program = None
        if name == "compile":
            program = self._begin(lambda future: self._compile(op, message, future))
        elif name == "load":
            program = self._begin(lambda future: self._load(op, message, future))
        self._queue.put((op, name, message, program))

    def programs(self) -> int:
        """How many there are."""
        return len(self._programs)

    def blob(self, program: int) -> bytes:
        """The serialized executable of a program that was compiled here. Raises Failure (NOT_FOUND)."""
        try:
            return self._blobs[program]
        except KeyError:
            raise Failure(Code.NOT_FOUND, f"program {program} was not compiled on this worker") from None

    def _run(self) -> None:
        while True:
            op, name, message, program = self._queue.get()
            if program is not None:
                self._programs[message.program] = program
                continue
            try:
                self._commands[name](op, message)
            except Exception as error:
                failure = xla.failure(error)
                if not isinstance(error, Failure):
                    log.exception("%s", name)
                if (result := getattr(message, "array", 0)) and name != "get":
                    self._arrays.set(result, failure)
                self._reporter.done(op, failure)

    # ---------------------------------------------------------------- programs

    def _begin(self, work: Callable[[Future[Program]], None]) -> Future[Program]:
        future: Future[Program] = Future()
        self._pool.submit(work, future)
        return future

    def _compile(self, op: int, message: wire.Compile, future: Future[Program]) -> None:
        try:
            world = self._worlds.get(message.world)
            program, report = self._compiler.compile(world, message, bytes(self._transfers.content(message.module)[:]))
        except Exception as error:
            failure = xla.failure(error)
            future.set_exception(failure)
            self._compiled(op, wire.Compiled(error=Reporter.error(failure)))
            return
        future.set_result(program)
        self._compiled(op, report)
        ready = wire.BlobReady(program=message.program)
        try:
            blob = program.executable.serialize()
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
            world = self._worlds.get(message.world)
            future.set_result(self._compiler.load(world, message, bytes(self._transfers.content(message.blob)[:])))
        except Exception as error:
            failure = xla.failure(error)
            future.set_exception(failure)
        self._reporter.done(op, failure)

    def _program(self, number: int) -> Program:
        future = self._programs.get(number)
        if future is None:
            raise Failure(Code.NOT_FOUND, f"program {number} is not on this worker")
        return future.result()

    def _unload(self, op: int, message: wire.Unload) -> None:
        for number in message.programs:
            self._programs.pop(number, None)
            self._blobs.pop(number, None)
        self._reporter.done(op)

    def _describe(self, op: int, message: wire.Describe) -> None:
        future = self._programs.get(message.program)

        def work() -> None:
            report = wire.Described(op=op)
            try:
                if future is None:
                    raise Failure(Code.NOT_FOUND, f"program {message.program} is not on this worker")
                programs.analyse(future.result(), message, report)
            except Exception as error:
                report.error.CopyFrom(Reporter.error(xla.failure(error)))
            self._reporter.send(wire.ToHead(described=report))

        when_done([future] if future is not None else [], lambda: self._pool.submit(work))

    def _execute(self, op: int, message: wire.Execute) -> None:
        try:
            program = self._program(message.program)
            arguments = [self._arrays.get(array) for array in message.arguments]
            if program.callbacks:
                self._execute_with_callbacks(op, program, message, arguments)
                return
            keep = self._kept(program, message)
            results, token = program.run(arguments, keep)
            for array, result in zip(message.results, results, strict=True):
                self._arrays.set(array, result)
        except Exception as error:
            failure = xla.failure(error)
            for array in message.results:
                self._arrays.set(array, failure)
            self._reporter.done(op, failure)
            return
        self._completions.wait(op, program, token)

    def _execute_with_callbacks(self, op: int, program: Program, message: wire.Execute, arguments: list[Stored]) -> None:
        """Beside the queue: XLA may run it in the thread that starts it, and what its callbacks do may need this worker."""
        futures: list[Future[Stored]] = [Future() for _ in message.results]
        for array, future in zip(message.results, futures, strict=True):
            self._arrays.set(array, future)
        keep = self._kept(program, message)

        def work() -> None:
            try:
                results, token = program.run(arguments, keep)
            except Exception as error:
                failure = xla.failure(error)
                for future in futures:
                    future.set_exception(failure)
                self._reporter.done(op, failure)
                return
            for future, result in zip(futures, results, strict=True):
                future.set_result(result)
            self._completions.wait(op, program, token)

        self._lane.run(work)

    def _kept(self, program: Program, message: wire.Execute) -> set[int]:
        held = (index for index in program.donated if index < len(message.arguments) and self._arrays.is_held(message.arguments[index]))
        return {*message.keep_arguments, *held}

    # ---------------------------------------------------------------- arrays

    def _assemble(self, op: int, message: wire.Assemble) -> None:
        sources = {shard.array: self._arrays.future(shard.array) for shard in message.shards}
        result: Future[Stored] = Future()

        def work() -> None:
            failure = None
            try:
                result.set_result(_assembled([(sources[shard.array].result(), shard.device) for shard in message.shards]))
            except Exception as error:
                failure = xla.failure(error)
                result.set_exception(failure)
            self._reporter.done(op, failure)

        when_done(list(sources.values()), work)
        self._arrays.set(message.array, result)
        if message.consume:
            self._arrays.delete(sources)

    def _delete(self, op: int, message: wire.Delete) -> None:
        self._arrays.delete(message.arrays)
        self._reporter.done(op)


def _assembled(shards: list[tuple[Stored, int]]) -> Stored:
    first = shards[0][0]
    if all(stored is first for stored, _ in shards) and len(shards) == len(first.shards):
        return first
    worlds = {stored.world for stored, _ in shards}
    newest = max((world for world in worlds if world is not None), key=lambda world: world.number, default=None)
    held = {}
    for stored, device in shards:
        shard = stored.shard(device)
        if stored.world is not newest and newest is not None and not isinstance(shard, bytes):
            shard = newest.adopt(shard, newest.devices[device], stored.memory_kind)
        held[device] = shard
    return Stored.of_shards(first.dtype, first.memory_kind, newest, held)
