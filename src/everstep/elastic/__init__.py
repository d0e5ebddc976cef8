"""Makes a training loop elastic: which slices are up, and calling the loop again when some are lost.

    from everstep import elastic

    slices = elastic.Slices()
    snapshots = elastic.Snapshots(slices)

    def train(attempt):
        mesh = Mesh(np.array(attempt.devices), ("data",))
        try:
            step, state = snapshots.restore(NamedSharding(mesh, P()))
        except elastic.SnapshotLostError:
            step, state = 0, start(mesh)       # or the newest checkpoint
        while step < STEPS:
            state = train_step(state, batch(step))
            step += 1
            snapshots.save(step, state)
            attempt.boundary()          # a step is done: growing back may happen here

    elastic.run(train, elastic.replica_resize(at_least=1), slices=slices)

On plain JAX devices the same program runs, too: one slice, and nothing is ever lost.
"""

from everstep.elastic.errors import ElasticError, GaveUpError, SliceLostError, SlicesChanged, SnapshotLostError
from everstep.elastic.policies import Policy, pause_and_resume, replica_resize
from everstep.elastic.programs import Programs
from everstep.elastic.running import Attempt, Event, elastic, run
from everstep.elastic.slices import Change, Slice, Slices
from everstep.elastic.snapshots import Snapshots

__all__ = [
    "Attempt",
    "Change",
    "ElasticError",
    "Event",
    "GaveUpError",
    "Policy",
    "Programs",
    "Slice",
    "SliceLostError",
    "Slices",
    "SlicesChanged",
    "SnapshotLostError",
    "Snapshots",
    "elastic",
    "pause_and_resume",
    "replica_resize",
    "run",
]
