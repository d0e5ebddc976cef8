"""Checkpoints of a run in its directory: Orbax's, asynchronous, committed or not there."""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
import math
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint import pathways

from everstep.elastic import SliceLostError
from everstep.train.config import Config, ConfigError, Train

log = logging.getLogger(__name__)

T = TypeVar("T")

_IN_A_ROW = 3
_THREAD = "checkpoints"
_BY_WORKERS = "ENABLE_PATHWAYS_PERSISTENCE"  # Orbax's and pathwaysutils' switch: docs/checkpoints.md


class CheckpointError(Exception):
    """Checkpoints can't be written, or one can't be read."""


def claim(directory: pathlib.Path, config: Config) -> None:
    """Make the directory of a run, or go on in it. Raises ConfigError if it holds a run of another model, other data or another batch."""
    directory.mkdir(parents=True, exist_ok=True)
    known = directory / "config.json"
    if known.exists():
        changed = config.difference(json.loads(known.read_text()))
        if changed:
            raise ConfigError(f"{directory} holds a run with another config; choose another directory, or change back {'; '.join(changed)}")
    else:
        new = known.with_suffix(".new")
        new.write_text(json.dumps(config.as_dict(), indent=1) + "\n")
        new.rename(known)  # there as a whole, or not


class Checkpoints:
    """Those of one run directory.

    None takes longer than `train.checkpoint_timeout`: one that does, or fails, is given up and told, and training goes on; after three in a
    row, and at the end of the run, that is an error. What hangs is left behind in a thread of its own.
    """

    def __init__(self, directory: pathlib.Path, config: Train, tell: Callable[[str], None]) -> None:
        """tell: called with what went wrong."""
        self._path = (directory / "checkpoints").absolute()
        self._keep = config.keep
        self._timeout = config.checkpoint_timeout
        self._tell = tell
        self._saving: int | None = None
        self._began = 0.0
        self._problems: list[str] = []  # of the last ones, since the last that was committed
        self._left_behind = False  # what hangs may still be writing
        self._by_workers = os.environ.get(_BY_WORKERS) == "1" and jax.devices()[0].client.runtime_type.startswith("proxy/")
        if self._by_workers:
            timeout = datetime.timedelta(seconds=self._timeout)
            pathways.register_type_handlers(checkpointing_impl=pathways.CheckpointingImpl.PERSISTENCE, timeout=timeout)
        self._manager = self._open()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.finish()
            if self._problems:
                raise CheckpointError(self._problems[-1])
        with contextlib.suppress(Exception) if error else contextlib.nullcontext():
            _bounded(self._manager.close, self._timeout)

    @property
    def latest(self) -> int | None:
        """The number of steps of the newest committed one."""
        step = self._manager.latest_step()
        return None if step is None else int(step)

    def save(self, step: int, state: Any) -> None:
        """Begin to save, after the one before is committed. Raises CheckpointError, and a loss of devices as JAX tells it."""
        if step in self._manager.all_steps():
            return
        self.finish()
        self._saving, self._began = step, time.monotonic()
        self._guard(lambda: self._manager.save(step, args=ocp.args.StandardSave(state), force=True))

    def finish(self) -> None:
        """Until what was begun is committed, or given up. Raises what `save` raises."""
        if self._saving is not None and self._guard(self._manager.wait_until_finished):
            self._saving, self._problems = None, []

    def restore(self, step: int, abstract: Any) -> Any:
        """abstract: a pytree of jax.ShapeDtypeStruct with the shardings that are wanted. Raises CheckpointError if it takes too long."""
        try:
            return _bounded(lambda: self._manager.restore(step, args=ocp.args.StandardRestore(abstract)), self._timeout)
        except TimeoutError as error:
            raise CheckpointError(f"the checkpoint of step {step} in {self._path} is not read after {self._timeout:g} s") from error

    def recover(self) -> None:
        """After a loss of devices: what was being saved is committed or discarded, what was committed stays."""
        if self._saving is not None:
            try:
                self._bound(self._manager.close)
            except Exception as error:
                log.info("the checkpoint that was being saved is discarded: %s", error)
            self._saving = None
            self._manager = self._open()

    def _guard(self, work: Callable[[], Any]) -> bool:
        """Do a part of saving. False: the checkpoint was given up."""
        try:
            self._bound(work)
            return True
        except Exception as error:
            if SliceLostError.of(error):
                raise
            why = f"is not written after {self._timeout:g} s" if isinstance(error, TimeoutError) else f"can't be written: {error}"
            self._manager = self._open()
            message = f"the checkpoint of step {self._saving} {why}; the newest in {self._path} is of step {self.latest or 0}"
            self._saving = None
            self._problems.append(message)
            if len(self._problems) >= _IN_A_ROW:
                raise CheckpointError(message) from error
            self._tell(message)
            return False

    def _bound(self, work: Callable[[], Any]) -> None:
        try:
            _bounded(work, max(0.0, self._began + self._timeout - time.monotonic()))
        except TimeoutError:
            self._left_behind = True
            raise

    def _open(self) -> Any:
        options = ocp.CheckpointManagerOptions(
            max_to_keep=self._keep,
            cleanup_tmp_directories=not self._left_behind,  # what nobody writes to any more
            async_options=ocp.options.AsyncOptions(timeout_secs=math.ceil(self._timeout)),
        )
        try:
            handler = ocp.StandardCheckpointHandler(use_ocdbt=not self._by_workers)
            return _bounded(lambda: ocp.CheckpointManager(self._path, options=options, item_handlers=handler), self._timeout)
        except TimeoutError as error:
            raise CheckpointError(f"{self._path} can't be read within {self._timeout:g} s") from error


def end(code: int) -> None:
    """Leave the process, if a thread was left behind: its end would wait for that. Otherwise nothing."""
    if any(thread.name == _THREAD for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _bounded(work: Callable[[], T], seconds: float) -> T:
    """In a thread of its own, which is left behind if it takes longer: TimeoutError. A daemon, like those that Orbax starts in it."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=_THREAD, daemon=True).start()
    return done.result(seconds)
