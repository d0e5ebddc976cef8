"""The private directory of a running head, and how heads are found by it.

    <root>/NAME/          mode 0700, owned by the user; <root> is $XDG_RUNTIME_DIR/everstep or <temp>/everstep-<uid>
        lock              held (flock) by the head as long as it lives: a directory whose lock is free is left over from one that was killed
        shared            path of the shared directory, where host buffers travel as files
        head.sock         gRPC: the program and the command line
        workers.sock      the workers' channel
        token             what workers that are started by hand must show; only with --join
        *.log             what head and workers wrote

Whoever sees a head die calls `remove_if_stale`: `everstep run`, the head's own workers, the next head that starts. One of them succeeds.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator

from everstep.cli import orphans
from everstep.cli.errors import UsageError

_LONGEST_SOCKET_PATH = 107  # bytes: sun_path of Linux without its final zero
_WANTED_SHARED_MEMORY = 2 << 30  # bytes free in /dev/shm for it to be chosen
_SHARED_MEMORY = pathlib.Path("/dev/shm")


class RunDirectory:
    """Paths in the directory of the head called `name`. Nothing is touched before `claim`."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.name = path.name
        self.lock = path / "lock"
        self.shared_note = path / "shared"
        self.head_socket = path / "head.sock"
        self.workers_socket = path / "workers.sock"
        self.token = path / "token"

    @staticmethod
    def of(name: str) -> RunDirectory:
        return RunDirectory(root() / name)

    def target(self) -> str:
        """The gRPC target of the head, for this user."""
        return f"unix:{self.head_socket}"

    def check_length(self) -> None:
        """Raises UsageError if sockets in this directory would have longer paths than the system allows."""
        longest = os.fsencode(self.workers_socket)
        if len(longest) > _LONGEST_SOCKET_PATH:
            raise UsageError(
                f"the socket {self.workers_socket} would have a path of {len(longest)} bytes, and {_LONGEST_SOCKET_PATH} are possible: "
                "use a shorter --name or set XDG_RUNTIME_DIR to a shorter path"
            )

    @contextlib.contextmanager
    def claim(self) -> Iterator[None]:
        """Create the directory and hold it as the head; remove it and the shared directory in the end.

        Raises UsageError if a running head has the name, or the directory can't be private.
        """
        self.check_length()
        _make_private(self.path.parent)
        for other in self.path.parent.iterdir():
            remove_if_stale(other)
        descriptor = self._take()
        try:
            yield
        finally:
            self._remove()
            os.close(descriptor)

    def _take(self) -> int:
        while True:
            if not remove_if_stale(self.path, patience=0.3):  # for someone who only looks whether it is stale
                raise UsageError(f"the name {self.name!r} is in use by a running head: choose another --name, or end that one")
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
            _make_private(self.path)
            descriptor = _try_lock(self.lock, create=True)
            if descriptor is not None:
                return descriptor

    def make_shared(self, parent: pathlib.Path | None) -> pathlib.Path:
        """A new private directory for host buffers: in `parent`, else in shared memory if there is plenty, else in the run directory."""
        if parent is None:
            parent = _SHARED_MEMORY if _free_bytes(_SHARED_MEMORY) >= _WANTED_SHARED_MEMORY else self.path
        path = parent / f"everstep-{self.name}-{secrets.token_hex(4)}"
        self.shared_note.write_text(str(path))  # first, so that it is found whenever this process dies
        try:
            path.mkdir(mode=0o700)
        except OSError as error:
            raise UsageError(f"no shared directory can be made in {parent}: {error.strerror}") from error
        return path

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            _remove_tree(pathlib.Path(self.shared_note.read_text()))
        _remove_tree(self.path)

    @property
    def is_running(self) -> bool:
        """Whether a head holds it."""
        descriptor = _try_lock(self.lock, create=False)
        if descriptor is None:
            return self.lock.exists()
        os.close(descriptor)
        return False


def root() -> pathlib.Path:
    """Where the run directories of this user are."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and pathlib.Path(runtime).is_dir():
        return pathlib.Path(runtime) / "everstep"
    return pathlib.Path(tempfile.gettempdir()) / f"everstep-{os.getuid()}"


def running() -> list[RunDirectory]:
    """The running heads of this user, by name."""
    try:
        entries = sorted(root().iterdir())
    except OSError:
        return []
    return [directory for directory in map(RunDirectory, entries) if directory.is_running]


def remove_if_stale(path: pathlib.Path, patience: float = 0.0) -> bool:
    """Remove a run directory, with its shared directory and workers, if no head holds it. True if it is gone (or never was).

    patience: seconds to wait for that. A process that is being killed closes its connections before its lock, or after.
    """
    directory = RunDirectory(path)
    deadline = time.monotonic() + patience
    while path.exists():
        descriptor = _try_lock(directory.lock, create=True)
        if descriptor is not None:
            try:
                orphans.kill_workers(path)
                directory._remove()
            finally:
                os.close(descriptor)
        if time.monotonic() >= deadline:
            return not path.exists()
        time.sleep(0.005)
    return True


def remove(path: pathlib.Path, patience: float) -> None:
    """Remove the run directory of a head that is dead for certain. patience: seconds to wait for another who does the same."""
    if not remove_if_stale(path, patience):
        # Whoever holds the lock is stuck: a worker that was stopped just now, as it cleaned up itself.
        orphans.kill_workers(path)
        remove_if_stale(path, patience)


def _try_lock(lock: pathlib.Path, *, create: bool) -> int | None:
    """A descriptor that holds the lock, or None if another holds it, or the file is not there (any more)."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == os.stat(lock).st_ino:  # not removed meanwhile by the one who held it
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _make_private(path: pathlib.Path) -> None:
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700, parents=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise UsageError(f"{path} is not a directory of yours: remove it, or set XDG_RUNTIME_DIR to a private directory")
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)


def _remove_tree(path: pathlib.Path) -> None:
    for _ in range(10):  # a process on its way out may still be writing into it
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return


def _free_bytes(path: pathlib.Path) -> int:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return 0
