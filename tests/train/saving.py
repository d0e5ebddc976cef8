"""Saves checkpoints of steps 1, 2, 3..., after whatever is there; with a state that says which step it is of.

    python saving.py DIRECTORY COUNT [kill=N | hang=STEP,STEP...]

At the N-th thing that Python does to a file or directory of a checkpoint (it opens, makes, renames or removes it) the process is killed; or
the thread that is to rename the finished checkpoint of a step, which commits it, hangs. Prints what it found, each step that is committed,
what the trainer would be told, and how many such things were done.
"""

import os
import pathlib
import signal
import sys
import threading
import types

import jax
import jax.numpy as jnp
import numpy as np

directory, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
how, _, where = sys.argv[3].partition("=") if len(sys.argv) > 3 else ("", "", "")
done = 0


def watch(event, arguments):
    global done
    if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and str(directory / "checkpoints") in str(arguments[0]):
        done += 1
        if how == "kill" and done == int(where):
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hang" and event == "os.rename" and pathlib.Path(arguments[1]).name in where.split(","):
            threading.Event().wait()


def state(step):
    return {"x": jnp.full((64, 64), step, jnp.float32), "y": jnp.arange(8) + step}


from everstep.train.checkpoints import CheckpointError, Checkpoints, end  # noqa: E402

sys.addaudithook(watch)
config = types.SimpleNamespace(keep=2, checkpoint_timeout=5.0 if how == "hang" else 60.0)
try:
    with Checkpoints(directory, config, lambda message: print("told:", message, flush=True)) as checkpoints:
        latest = checkpoints.latest or 0
        print("found", latest, flush=True)
        if latest:
            abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), state(0))
            jax.tree.map(np.testing.assert_array_equal, checkpoints.restore(latest, abstract), state(latest))
        for step in range(latest + 1, latest + count + 1):
            checkpoints.save(step, state(step))
            checkpoints.finish()
            print("committed", checkpoints.latest or 0, flush=True)
except CheckpointError as error:
    print("CheckpointError:", error)
    end(1)
print("done", done, flush=True)
