"""Workers on a Ray cluster: an actor for each, which starts the worker as a process of its own on the node where Ray has placed it.

The actor is `local.py` at another place: it gives the worker its token through a pipe, tells how it ended, and passes signals on. It ends
with the head, which owns it, in whatever way that ends, and the worker ends with the actor. Why so: docs/decisions/0012-ray.md.

The workers of a slice are a placement group. When a node is gone Ray finds another place for those of its bundles that were there.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import logging
import os
import pathlib
import signal
import tempfile
from collections.abc import Callable, Collection
from typing import Any, TypeVar

import ray
import ray._private.state
from ray import exceptions
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from everstep.launch.local import LocalLauncher, LocalProcess
from everstep.launch.places import Place, Places, Resources, lacking
from everstep.launch.seam import Exit, WorkerSpec

log = logging.getLogger(__name__)

T = TypeVar("T")

_CONNECT_SECONDS = 60.0
_PATIENCE = 5.0  # seconds: a worker without a place for so long is told of; an actor that doesn't do what it is told for so long is killed
_DRAIN_SECONDS = 1.0  # between two looks at which nodes are to go
_CLOSE_SECONDS = 2.0  # for the workers to end; what is left then ends with this driver
_SHARED_VARIABLES = ("EVERSTEP_", "NCCL_", "XLA_")  # of the head's environment, for workers on any node


class Host:
    """The actor: one worker process on its node. Its first call is `start`."""

    async def start(self, spec: WorkerSpec, logs: str | None) -> tuple[int, str]:
        """Returns the process id and the node's id.

        logs: directory to keep the worker's log in; None: it is gone with the worker. Raises OSError.
        """
        self._process = asyncio.ensure_future(self._start(spec, logs))  # at once: calls that come meanwhile wait for it
        return (await self._process).pid, ray.get_runtime_context().get_node_id()

    async def wait(self) -> tuple[Exit, str]:
        """How the worker has ended, and its last words."""
        process = await self._process
        return await process.wait(), process.last_words()

    async def kill(self) -> None:
        await (await self._process).kill()

    async def signal(self, number: int) -> None:
        (await self._process).signal(number)

    async def _start(self, spec: WorkerSpec, logs: str | None) -> LocalProcess:
        if logs is None:
            self._logs = tempfile.TemporaryDirectory(prefix="everstep-")  # removed with this object
            logs = self._logs.name
        os.makedirs(logs, exist_ok=True)
        return await LocalLauncher(None, pathlib.Path(logs)).start(spec)


class RayLauncher:
    """Starts workers as actors of a Ray cluster. Ray is called in a thread of its own, as some calls take a while."""

    def __init__(self, bundle: Resources, placement: str, places: Places, logs: pathlib.Path | None, waiting: Callable[[str, str], None]):
        """bundle: what each worker takes of a node. placement: of the workers of a slice, one of places.PLACEMENTS.

        logs: directory for logs on each node. waiting: called with a worker that has no place for long, and what it waits for.
        """
        self._bundle = bundle
        self._placement = placement
        self._places = places
        self._logs = logs
        self._waiting = waiting
        self._groups: list[PlacementGroup] = []
        self._draining: asyncio.Task[None] | None = None
        self._processes: set[RayProcess] = set()
        # A local cluster ends with the thread that has started it: that must live as long as this object.
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="ray")

    async def connect(self, address: str | None, name: str) -> None:
        """Join the cluster at an address, or the one that Ray finds itself, else start one here. name: of the run. Raises OSError."""

        def connect() -> None:
            ray.init(address=address, configure_logging=False, log_to_driver=False)
            for index, count in enumerate(self._places.groups):
                group = placement_group([dict(self._bundle)] * count, strategy=self._placement.upper(), name=f"everstep-{name}-{index}")
                self._groups.append(group)

        where = f"the Ray cluster{f' at {address}' if address else ''}"
        try:
            await asyncio.wait_for(self._call(connect), _CONNECT_SECONDS)
        except TimeoutError as error:  # Ray itself tries for ever
            raise OSError(f"{where} does not answer within {_CONNECT_SECONDS:.0f} s") from error
        except Exception as error:  # Ray raises what comes: ConnectionError, ValueError, RuntimeError
            raise OSError(f"{where} can't be used: {error}") from error
        self._draining = asyncio.ensure_future(self._watch_nodes())

    async def start(self, spec: WorkerSpec) -> RayProcess:
        shared = {name: value for name, value in os.environ.items() if name.startswith(_SHARED_VARIABLES)}
        spec = dataclasses.replace(spec, environment=shared | dict(spec.environment))
        place = self._places.take(spec)
        try:
            actor, placed = await self._call(lambda: self._create(spec, place))
        except exceptions.RayError as error:
            self._places.free(place)
            raise OSError(f"Ray: {error}") from error
        process = RayProcess(spec, place, actor, placed)
        self._processes.add(process)
        process.ended.add_done_callback(lambda _: self._over(process))
        process.watcher = asyncio.ensure_future(self._watch(process))
        return process

    async def close(self) -> None:
        if self._draining is not None:
            self._draining.cancel()
        ends = [asyncio.ensure_future(process.kill()) for process in self._processes]
        if ends:
            await asyncio.wait(ends, timeout=_CLOSE_SECONDS)
        for process in tuple(self._processes):
            process.forget()
        await self._call(ray.shutdown)
        self._thread.shutdown()

    def _create(self, spec: WorkerSpec, place: Place) -> tuple[Any, ray.ObjectRef[tuple[int, str]]]:
        others = {name: amount for name, amount in self._bundle.items() if name not in ("CPU", "GPU", "memory")}
        actor = (
            ray.remote(Host)
            .options(
                name=f"{spec.name}.{spec.incarnation}",
                num_cpus=self._bundle.get("CPU", 0),
                num_gpus=self._bundle.get("GPU", 0),
                memory=self._bundle.get("memory"),
                resources=others,
                scheduling_strategy=PlacementGroupSchedulingStrategy(self._groups[place.group], place.index),
            )
            .remote()
        )
        # The token is in an argument of a call: those go from here to the actor, and are kept by nobody else.
        return actor, actor.start.remote(spec, str(self._logs) if self._logs else None)

    def _over(self, process: RayProcess) -> None:
        self._processes.discard(process)
        self._places.free(process.place)

    async def _watch(self, process: RayProcess) -> None:
        """Tell what a process lacks that has no place yet, and again when it is something else."""
        said = ""
        while not (await asyncio.wait((process.placed, process.ended), timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED))[0]:
            with contextlib.suppress(exceptions.RayError):
                why = await self._call(lambda: self._lacking(process.place.group))
                if why not in ("", said):
                    said = why
                    self._waiting(process.spec.name, why)

    async def _watch_nodes(self) -> None:
        """Pass on what Ray says of a node that is to go (drained, or preempted) to its workers: SIGTERM is their notice."""
        told: set[RayProcess] = set()
        while True:
            await asyncio.sleep(_DRAIN_SECONDS)
            going = await self._call(_draining_nodes)
            told &= self._processes
            for process in self._processes - told:
                if process.node in going:
                    told.add(process)
                    process.signal(signal.SIGTERM)

    def _lacking(self, group: int) -> str:
        """What a group waits for; "" if it has its places (and starting the actor takes long)."""
        if placement_group_table(self._groups[group])["state"] == "CREATED":
            return ""
        count = sum(process.place.group == group and not process.placed.done() for process in tuple(self._processes))
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        return lacking(self._bundle, count, self._placement, nodes, ray.available_resources())

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)


class RayProcess:
    """One worker and its actor. The end of either is known at once, that of a node when Ray says so."""

    def __init__(self, spec: WorkerSpec, place: Place, actor: Any, placed: ray.ObjectRef[tuple[int, str]]) -> None:
        self.spec = spec
        self.place = place
        self.pid = 0
        self.node = ""
        self.placed: asyncio.Future[tuple[int, str]] = asyncio.wrap_future(placed.future())
        self._actor = actor
        self._words = ""
        self.ended = asyncio.ensure_future(self._end())
        self.watcher: asyncio.Task[None] | None = None

    async def _end(self) -> Exit:
        try:
            self.pid, self.node = await asyncio.shield(self.placed)
            while True:
                try:
                    end: Exit
                    end, self._words = await self._actor.wait.remote()
                    return end
                except exceptions.ActorUnavailableError:  # the call is lost, not the actor
                    await asyncio.sleep(0.5)
        except exceptions.RayError as error:
            return Exit(None, cause=_cause(error))
        finally:
            self._release()

    async def started(self) -> None:
        await asyncio.wait((self.placed, self.ended), return_when=asyncio.FIRST_COMPLETED)

    async def wait(self) -> Exit:
        return await asyncio.shield(self.ended)

    async def kill(self) -> Exit:
        """The actor kills its worker and tells when it has ended. If it doesn't answer it is killed itself, and the worker dies with it."""
        if not self.ended.done():
            self._tell(self._actor.kill)
            await asyncio.wait((self.ended,), timeout=_PATIENCE)
        if not self.ended.done():
            self._release()
        return await self.wait()

    def signal(self, number: int) -> bool:
        if self.ended.done():
            return False
        self._tell(self._actor.signal, number)
        return True

    def last_words(self) -> str:
        return self._words

    def forget(self) -> None:
        """The driver is about to leave the cluster, and takes the actor along."""
        self.ended.cancel()

    def _tell(self, method: Any, *arguments: object) -> None:
        with contextlib.suppress(exceptions.RayError):
            method.remote(*arguments)

    def _release(self) -> None:
        with contextlib.suppress(exceptions.RayError):
            ray.kill(self._actor)


def _draining_nodes() -> Collection[str]:
    """Ids of nodes that are to go. Ray has no public call for it; its own trainer asks like this (ray/train, preemption.py)."""
    try:
        nodes: Collection[str] = ray._private.state.state.get_draining_nodes()
        return nodes
    except Exception as error:  # the cluster may be in trouble, or another release may have moved it
        log.debug("which nodes are to go is not known: %s", error)
        return ()


def _cause(error: exceptions.RayError) -> str:
    """In one line."""
    lines = str(error).splitlines()
    return f"Ray: {lines[-1].strip() if lines else type(error).__name__}"
