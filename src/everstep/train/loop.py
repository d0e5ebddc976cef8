"""The training loop: elastic, resumable, exact."""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import numpy as np

from everstep import elastic
from everstep.train.checkpoints import Checkpoints, claim
from everstep.train.config import Config, ConfigError
from everstep.train.data import Corpus
from everstep.train.goodput import Part
from everstep.train.metrics import Metrics
from everstep.train.step import Programs, State

_POLICIES = {
    "pause": elastic.pause_and_resume,
    "resize": elastic.replica_resize,
    "off": lambda: elastic.pause_and_resume(max_events=0),
}


def train(config: Config, directory: pathlib.Path) -> float:
    """Train, or go on where the run in this directory has stopped. Returns the last loss.

    Raises ConfigError for a config that does not fit its data, its devices, or what is in the directory; CheckpointError, GaveUpError.
    """
    corpus = Corpus(config.data, config.model.context)
    tokens = config.train.batch * config.model.context
    claim(directory, config)
    with Metrics(directory, config.train.steps, config.train.log, tokens) as metrics, elastic.Slices() as slices:
        with Checkpoints(directory, config.train, metrics.note) as checkpoints:
            loss = _Run(config, corpus, checkpoints, slices, metrics).run()
        metrics.goodput.lap(Part.CHECKPOINTS)  # the last one
        metrics.summary()
        return loss


class _Run:
    def __init__(self, config: Config, corpus: Corpus, checkpoints: Checkpoints, slices: elastic.Slices, metrics: Metrics) -> None:
        self._config = config
        self._corpus = corpus
        self._checkpoints = checkpoints
        self._slices = slices
        self._metrics = metrics
        self._snapshots = elastic.Snapshots(slices)
        self._programs = elastic.Programs(slices, self._make, enabled=config.train.elastic == "resize")
        self._keeps_snapshots = config.train.snapshot > 0 and len(slices.all) > 1
        self._loss = float("nan")
        self._pending: tuple[int, jax.Array, int] | None = None  # a step, its loss, and on how many slices; not written down yet
        self._written = 0  # the last step that was
        self._evaluated: set[int] = set()
        self._leaving: set[int] = set()  # slices that were told to go when last looked

    def run(self) -> float:
        plan = f"{self._corpus.files} files, {self._corpus.training.count:,} samples of {self._config.model.context} tokens"
        self._metrics.note(f"{plan}, {self._config.train.steps} steps of {self._config.train.batch}, elastic: {self._config.train.elastic}")
        elastic.run(self._attempt, _POLICIES[self._config.train.elastic](), slices=self._slices)
        return self._loss

    def _make(self, devices: list[jax.Device]) -> Programs:
        programs = Programs(self._config, self._corpus.vocabulary, devices)
        if self._keeps_snapshots:
            self._snapshots.prepare({"state": programs.abstract, "loss": programs.abstract_loss})
        return programs

    def _attempt(self, attempt: elastic.Attempt) -> None:
        chosen = self._config.train
        lap = self._metrics.goodput.lap
        self._pending = None
        if attempt.number > 1:
            self._metrics.again(attempt.history[-1])
            self._checkpoints.recover()
            lap(Part.CHECKPOINTS)
        else:
            lap(Part.OTHER)
        programs = self._programs.get(attempt.devices)
        lap(Part.COMPILING)
        step, state = self._state(attempt, programs)
        if step:
            self._after(step, programs, state, attempt)  # a loss may have come before it was done
        while step < chosen.steps:
            state, loss = programs.step(state, self._corpus.training.batch(step, chosen.batch))
            step += 1
            self._note()  # the one before: so this one is on its way already
            self._pending = step, loss, len(attempt.slices)
            if self._keeps_snapshots and step % chosen.snapshot == 0:
                self._snapshots.save(step, {"state": state, "loss": loss, "slices": len(attempt.slices)})
            self._after(step, programs, state, attempt)
            if attempt.boundaries == 1:
                self._programs.warm()
            if step < chosen.steps:
                self._boundary(attempt, step, state)
        self._note()

    def _boundary(self, attempt: elastic.Attempt, step: int, state: State) -> None:
        try:
            attempt.boundary()
        except elastic.SlicesChanged:
            self._note()
            if not self._keeps_snapshots:
                self._save(step, state)  # so that no step is lost
            raise

    def _after(self, step: int, programs: Programs, state: State, attempt: elastic.Attempt) -> None:
        """What is due after so many steps: once, also if this step is done or gone back to more often."""
        chosen = self._config.train
        if chosen.checkpoint and (self._is_told_to_go(attempt) or step % chosen.checkpoint == 0 or step == chosen.steps):
            self._note()  # what a checkpoint holds is in the history, too
            self._save(step, state)
        if self._is_due(step) and step not in self._evaluated:
            self._evaluate(step, programs, state)
            self._evaluated.add(step)

    def _is_told_to_go(self, attempt: elastic.Attempt) -> bool:
        """Whether more slices are leaving than before. Snapshots would outlive one, but it may not be the last to be told."""
        before, self._leaving = self._leaving, {each.index for each in attempt.leaving}
        for index in sorted(self._leaving - before):
            self._metrics.note(f"slice {index} is leaving: a checkpoint first", slice=index)
        return bool(self._leaving - before)

    def _save(self, step: int, state: State) -> None:
        self._checkpoints.save(step, state)
        self._metrics.goodput.lap(Part.CHECKPOINTS)

    def _state(self, attempt: elastic.Attempt, programs: Programs) -> tuple[int, State]:
        """The newest there is: a snapshot, a checkpoint, or the first."""
        lap = self._metrics.goodput.lap
        numbers = ", ".join(str(each.index) for each in attempt.slices)
        latest = self._checkpoints.latest or 0
        if self._snapshots.steps and self._snapshots.steps[-1] >= latest:
            try:
                target = {"state": programs.shardings, "loss": programs.everywhere, "slices": programs.everywhere}
                step, kept = self._snapshots.restore(target)
                lap(Part.RESTORING)
                self._metrics.note(f"goes on after step {step} on slices {numbers}, from a snapshot", step=step, source="snapshot")
                if step > self._written:
                    self._write(step, kept["loss"], kept["slices"], restored=True)
                self._written = step
                return step, kept["state"]
            except elastic.SnapshotLostError as error:
                self._metrics.note(str(error))
        if latest:
            state, self._written = self._checkpoints.restore(latest, programs.abstract), latest
            lap(Part.RESTORING)
            position = f"sample {latest * self._config.train.batch}"
            self._metrics.note(
                f"goes on after step {latest} at {position} on slices {numbers}, from a checkpoint", step=latest, source="checkpoint"
            )
            return latest, state
        self._metrics.note(f"begins on slices {numbers}", step=0, source="seed")
        state, self._written = programs.start(), 0
        lap(Part.COMPILING)
        return 0, state

    def _note(self) -> None:
        """Write down the step that is pending, when its loss is there and its snapshot complete: from then on it can't be lost."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._snapshots.wait()
            self._write(*pending)

    def _write(self, step: int, loss: jax.Array, slices: int, restored: bool = False) -> None:
        self._loss, self._written = float(np.asarray(loss)), step
        if not np.isfinite(self._loss):
            raise ConfigError(f"optimizer.learning_rate: the loss of step {step} is {self._loss}; try a smaller one")
        self._metrics.step(step, self._loss, slices, len(self._slices.all), restored)

    def _is_due(self, step: int) -> bool:
        every = self._config.train.evaluate
        return bool(every) and self._corpus.validation is not None and (step % every == 0 or step == self._config.train.steps)

    def _evaluate(self, step: int, programs: Programs, state: Any) -> None:
        assert self._corpus.validation is not None
        chosen = self._config.train
        self._note()
        losses = [programs.loss(state, self._corpus.validation.batch(number, chosen.batch)) for number in range(chosen.evaluate_batches)]
        self._metrics.evaluation(step, float(np.mean([np.asarray(loss) for loss in losses])))
        self._metrics.goodput.lap(Part.OTHER)
