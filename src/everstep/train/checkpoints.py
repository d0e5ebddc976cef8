"""Checkpoints of a run in its directory: Orbax's, asynchronous, committed or not there."""

from __future__ import annotations

import json
import logging
import pathlib
from types import TracebackType
from typing import Any

import orbax.checkpoint as ocp

from everstep.train.config import Config, ConfigError

log = logging.getLogger(__name__)


class Checkpoints:
    """Those of one run directory, and the config that they belong to."""

    def __init__(self, directory: pathlib.Path, config: Config) -> None:
        """Makes the directory. Raises ConfigError if it holds a run of another model, other data or another batch."""
        directory.mkdir(parents=True, exist_ok=True)
        known = directory / "config.json"
        if known.exists():
            changed = config.difference(json.loads(known.read_text()))
            if changed:
                raise ConfigError(
                    f"{directory} holds a run with another config; choose another directory, or change back {'; '.join(changed)}"
                )
        else:
            known.write_text(json.dumps(config.as_dict(), indent=1) + "\n")
        self._path = directory / "checkpoints"
        self._keep = config.train.keep
        self._manager = self._open()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self._manager.wait_until_finished()
        self._manager.close()

    @property
    def latest(self) -> int | None:
        """The number of steps of the newest committed one."""
        step = self._manager.latest_step()
        return None if step is None else int(step)

    def save(self, step: int, state: Any) -> None:
        """Begin to save; waits for the one before to be committed. An error of that one is raised here."""
        if step not in self._manager.all_steps():
            self._manager.save(step, args=ocp.args.StandardSave(state), force=True)

    def restore(self, step: int, abstract: Any) -> Any:
        """abstract: a pytree of jax.ShapeDtypeStruct with the shardings that are wanted."""
        return self._manager.restore(step, args=ocp.args.StandardRestore(abstract))

    def recover(self) -> None:
        """After a loss of devices: what was being saved is discarded, what was committed stays."""
        try:
            self._manager.close()
        except Exception as error:
            log.info("the checkpoint that was being saved is discarded: %s", error)
        self._manager = self._open()

    def _open(self) -> Any:
        return ocp.CheckpointManager(self._path.absolute(), options=ocp.CheckpointManagerOptions(max_to_keep=self._keep))
