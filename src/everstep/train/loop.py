"""The training loop: elastic, resumable, exact."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import numpy as np

from everstep import elastic
from everstep.train.checkpoints import Checkpoints
from everstep.train.config import Config, ConfigError
from everstep.train.data import Corpus
from everstep.train.metrics import Metrics
from everstep.train.step import Programs, State

_POLICIES = {
    "pause": elastic.pause_and_resume,
    "resize": elastic.replica_resize,
    "off": lambda: elastic.pause_and_resume(max_events=0),
}


def train(config: Config, directory: pathlib.Path) -> float:
    """Train, or go on where the run in this directory has stopped. Returns the last loss.

    Raises ConfigError for a config that does not fit its data, its devices, or what is in the directory.
    """
    corpus = Corpus(config.data, config.model.context)
    tokens = config.train.batch * config.model.context
    with (
        Checkpoints(directory, config) as checkpoints,
        elastic.Slices() as slices,
        Metrics(directory, config.train.steps, config.train.log, tokens) as metrics,
    ):
        return _Run(config, corpus, checkpoints, slices, metrics).run()


class _Run:
    def __init__(self, config: Config, corpus: Corpus, checkpoints: Checkpoints, slices: elastic.Slices, metrics: Metrics) -> None:
        self._config = config
        self._corpus = corpus
        self._checkpoints = checkpoints
        self._slices = slices
        self._metrics = metrics
        self._snapshots = elastic.Snapshots(slices)
        self._programs = elastic.Programs(
            slices, lambda devices: Programs(config, corpus.vocabulary, devices), enabled=config.train.elastic == "resize"
        )
        self._loss = float("nan")
        self._pending: tuple[int, jax.Array, int] | None = None  # a step, its loss, and on how many slices; not written down yet
        self._evaluated: set[int] = set()

    def run(self) -> float:
        plan = f"{self._corpus.files} files, {self._corpus.training.count:,} samples of {self._config.model.context} tokens"
        self._metrics.note(f"{plan}, {self._config.train.steps} steps of {self._config.train.batch}, elastic: {self._config.train.elastic}")
        elastic.run(self._attempt, _POLICIES[self._config.train.elastic](), slices=self._slices)
        return self._loss

    def _attempt(self, attempt: elastic.Attempt) -> None:
        chosen = self._config.train
        if attempt.number > 1:
            self._checkpoints.recover()
        programs = self._programs.get(attempt.devices)
        step, state = self._state(attempt, programs)
        self._metrics.resume(self._noted(step))
        if step:
            self._after(step, programs, state)  # a loss may have come before it was done
        while step < chosen.steps:
            state, loss = programs.step(state, self._corpus.training.batch(step, chosen.batch))
            step += 1
            self._noted(step - 1)  # one step behind, so that the next one is on its way already
            self._pending = step, loss, len(attempt.slices)
            if chosen.snapshot and step % chosen.snapshot == 0 and len(self._slices.all) > 1:
                self._snapshots.save(step, state)
            self._after(step, programs, state)
            if attempt.boundaries == 1:
                self._programs.warm()
            if step < chosen.steps:
                attempt.boundary()
        self._noted(step)

    def _after(self, step: int, programs: Programs, state: State) -> None:
        """What is due after so many steps: once, also if this step is done or gone back to more often."""
        chosen = self._config.train
        if chosen.checkpoint and (step % chosen.checkpoint == 0 or step == chosen.steps):
            self._checkpoints.save(step, state)
        if self._is_due(step) and step not in self._evaluated:
            self._evaluate(step, programs, state)
            self._evaluated.add(step)

    def _state(self, attempt: elastic.Attempt, programs: Programs) -> tuple[int, State]:
        """The newest there is: a snapshot, a checkpoint, or the first."""
        numbers = ", ".join(str(each.index) for each in attempt.slices)
        latest = self._checkpoints.latest or 0
        if self._snapshots.steps and self._snapshots.steps[-1] >= latest:
            try:
                step, state = self._snapshots.restore(programs.shardings)
                self._metrics.note(f"goes on after step {step} on slices {numbers}, from a snapshot", step=step, source="snapshot")
                return step, state
            except elastic.SnapshotLostError as error:
                self._metrics.note(str(error))
        if latest:
            state = self._checkpoints.restore(latest, programs.abstract)
            position = f"sample {latest * self._config.train.batch}"
            self._metrics.note(
                f"goes on after step {latest} at {position} on slices {numbers}, from a checkpoint", step=latest, source="checkpoint"
            )
            return latest, state
        self._metrics.note(f"begins on slices {numbers}", step=0, source="seed")
        return 0, programs.start()

    def _noted(self, step: int) -> int:
        """Write down the loss of this step, if it is the one that is pending; forget one of a later step, which will be done again."""
        pending, self._pending = self._pending, None
        if pending is not None and pending[0] == step:
            _, loss, slices = pending
            self._loss = float(np.asarray(loss))
            if not np.isfinite(self._loss):
                raise ConfigError(f"optimizer.learning_rate: the loss of step {step} is {self._loss}; try a smaller one")
            self._metrics.step(step, self._loss, slices, len(self._slices.all))
        return step

    def _is_due(self, step: int) -> bool:
        every = self._config.train.evaluate
        return bool(every) and self._corpus.validation is not None and (step % every == 0 or step == self._config.train.steps)

    def _evaluate(self, step: int, programs: Programs, state: Any) -> None:
        assert self._corpus.validation is not None
        chosen = self._config.train
        losses = [programs.loss(state, self._corpus.validation.batch(number, chosen.batch)) for number in range(chosen.evaluate_batches)]
        self._metrics.evaluation(step, float(np.mean([np.asarray(loss) for loss in losses])))
