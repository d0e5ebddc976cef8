"""Large host buffers travel as files, but only those of one process.

JAX's client names them lt_1, lt_2... in the directory that its environment gives, and every process counts from 1: two that share the
environment of one `everstep run` would write the same files. The first holds the directory for as long as it lives; others stream.
"""

from __future__ import annotations

import fcntl
import os

_DIRECTORY = "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_DIRECTORY"
_THRESHOLD = "IFRT_PROXY_GRPC_LARGE_TRANSFER_OPTIMIZATION_THRESHOLD_BYTES"


def claim() -> None:
    """Take the directory for this process, or take it out of this process's environment. Call before the client is made."""
    directory = os.environ.get(_DIRECTORY)
    if directory and not _hold(os.path.join(directory, "claim")):
        os.environ.pop(_DIRECTORY)
        os.environ.pop(_THRESHOLD, None)  # alone it would make the client fail


def _hold(path: str) -> bool:
    """Lock the file until this process ends. False if another holds it or it can't be made."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    return True
