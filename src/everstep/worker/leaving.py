"""Being told to go: SIGTERM, as it comes before a machine is taken away (spot instances, Kubernetes, SLURM).

The worker tells the head, so that the program can save what it wants to keep, and stays for a while.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType

from everstep.wire import channel_pb2 as wire
from everstep.worker.reports import Reporter

log = logging.getLogger(__name__)


def on_request(reporter: Reporter, grace: float) -> None:
    """From now on SIGTERM gives notice, and ends this process `grace` seconds later; a second one ends it at once. In the main thread."""

    def give_notice(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        threading.Thread(target=leave, name="leaving", daemon=True).start()  # a handler must not wait for the reporter's lock

    def leave() -> None:
        log.info("told to go: stays for %g s", grace)
        reporter.send(wire.ToHead(notice=wire.Notice(reason="SIGTERM", seconds=grace)))
        threading.Event().wait(grace)
        os.kill(os.getpid(), signal.SIGTERM)
        os._exit(128 + signal.SIGTERM)  # process 1 of a container can't end itself by a signal

    signal.signal(signal.SIGTERM, give_notice)
