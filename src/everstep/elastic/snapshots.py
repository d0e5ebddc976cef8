"""Copies of the training state in the workers' own host memory, from which it is rebuilt after a loss of slices."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import threading
from typing import Any

import jax

from everstep.elastic import pieces
from everstep.elastic.copying import Copier, Copies
from everstep.elastic.errors import SliceLostError, SnapshotLostError
from everstep.elastic.slices import Slices

log = logging.getLogger(__name__)

_IN_FLIGHT = 2


@dataclasses.dataclass(slots=True, eq=False)
class _Snapshot:
    """One copy, which as a whole survives the loss of a slice. losses: of each slice when it was made."""

    number: int  # the how-manieth
    step: int
    copies: Copies
    structure: Any
    losses: dict[int, int]
    done: threading.Event = dataclasses.field(default_factory=threading.Event)


class Snapshots:
    """The newest complete snapshots of a state.

    Copying takes no step of the program: it is dispatched, and the workers do it among themselves. What is replicated over slices is copied
    where it is; what only one slice holds goes to the next slice's memory, too, so that no slice is the only one to have it.
    """

    def __init__(self, slices: Slices, *, keep: int = 2, redundant: bool = True, memory_kind: str = "pinned_host") -> None:
        """keep: so many complete snapshots. redundant: False saves the copy on the next slice, and with it memory and the surety."""
        if keep < 1:
            raise ValueError(f"keep is {keep}: there must be a snapshot to go back to")
        self._slices = slices
        self._keep = keep
        self._copier = Copier(memory_kind, slices.all if redundant else ())
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._complete: list[_Snapshot] = []  # oldest first
        self._in_flight: list[_Snapshot] = []
        self._lost: SliceLostError | None = None  # what a copy has failed of, until it is told

    @property
    def steps(self) -> list[int]:
        """Of the complete snapshots that are not known to be lost, in the order in which they were made."""
        with self._lock:
            return [snapshot.step for snapshot in self._complete]

    def prepare(self, state: Any) -> None:
        """Compile now what saving such a state takes: a pytree of arrays, or of jax.ShapeDtypeStruct with shardings."""
        self._copier.prepare(jax.tree.leaves(state))

    def save(self, step: int, state: Any) -> None:
        """Begin to copy a pytree of arrays; returns at once unless the two before are still under way.

        The state may be donated right after. A copy that fails because devices are lost on the way is dropped.
        """
        self._wait(_IN_FLIGHT - 1)
        leaves, structure = jax.tree.flatten(state)
        losses = {each.index: self._slices.losses(each.index) for each in self._slices.all}
        copies = self._copier.copy(leaves)
        snapshot = _Snapshot(next(self._numbers), step, copies, structure, losses)
        with self._lock:
            self._in_flight.append(snapshot)
        threading.Thread(target=self._finish, args=(snapshot,), name=f"snapshot {step}", daemon=True).start()

    def wait(self) -> None:
        """Until all that were begun are complete. Raises SliceLostError if one has failed because devices are lost, once."""
        self._wait(0)
        with self._lock:
            lost, self._lost = self._lost, None
        if lost is not None:
            raise lost

    def restore(self, shardings: Any) -> tuple[int, Any]:
        """The newest complete snapshot, on other devices: (step, state).

        shardings: a pytree of shardings like the state, or one for all of it; the slices in them must be up.
        Goes from worker to worker. Snapshots that turn out to be lost are dropped. Raises SnapshotLostError if there is none of which every
        part survives.
        """
        self._wait(0)
        why = "none has been completed"
        with self._lock:
            candidates, self._lost = self._complete[::-1], None
        for snapshot in candidates:
            whole = [each for each in self._slices.up if self._slices.losses(each.index) == snapshot.losses[each.index]]
            up = {device for each in whole for device in each.devices}
            targets = _broadcast(shardings, snapshot.structure)
            try:
                leaves = pieces.rebuild(snapshot.copies.each(), targets, up)
                jax.block_until_ready(leaves)
            except pieces.MissingError as missing:
                self._drop(snapshot)
                why = f"of that of step {snapshot.step} {missing}"
                log.warning("the snapshot of step %d is lost: %s", snapshot.step, missing)
                continue
            return snapshot.step, jax.tree.unflatten(snapshot.structure, leaves)
        raise SnapshotLostError(f"no snapshot survives: {why}; use the checkpoint")

    def _drop(self, snapshot: _Snapshot) -> None:
        """It is lost."""
        with self._lock:
            self._complete = [each for each in self._complete if each is not snapshot]

    def _finish(self, snapshot: _Snapshot) -> None:
        failure: Exception | None = None
        try:
            snapshot.copies.wait()
        except Exception as error:
            failure = error.with_traceback(None)  # whose frames would keep the copies
        lost = None if failure is None else SliceLostError.of(failure)
        with self._lock:
            self._in_flight.remove(snapshot)
            self._lost = lost or self._lost
            if failure is None:
                # In the order in which they were begun: steps may have been gone back.
                self._complete = sorted([*self._complete, snapshot], key=lambda each: each.number)[-self._keep :]
        if failure is not None:
            log.log(logging.INFO if lost else logging.ERROR, "the snapshot of step %d has failed: %s", snapshot.step, failure)
        snapshot.done.set()

    def _wait(self, left: int) -> None:
        """Until at most so many are under way."""
        while True:
            with self._lock:
                if len(self._in_flight) <= left:
                    return
                oldest = self._in_flight[0]
            oldest.done.wait()


def _broadcast(shardings: Any, structure: Any) -> list[Any]:
    if isinstance(shardings, jax.sharding.Sharding):
        return [shardings] * structure.num_leaves
    leaves, given = jax.tree.flatten(shardings, is_leaf=lambda each: isinstance(each, jax.sharding.Sharding))
    if given != structure:
        raise ValueError(f"the shardings are not like the state: {given} against {structure}")
    return list(leaves)
