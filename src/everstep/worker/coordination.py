"""The coordination service of one world, which the head's process hosts, and the agents that meet there.

XLA's service means well: it watches its agents and takes all of them down when one is missing. A world's life is the head's business, so
every worker joins as node 0 of a service for one node, with heartbeats that never come due.
"""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any

from jaxlib import _jax

log = logging.getLogger(__name__)

_NEVER = 10**9  # seconds
_INIT_SECONDS = 20
_SHUTDOWN_SECONDS = 1
# So long after its last call a service is stopped. One that is just about to answer would end the process, as gRPC checks that it is not
# stopped then (grpc_cq_begin_op in filter_stack_call.cc); and whoever has left the service gets an answer a moment later.
_QUIET_SECONDS = 5.0

_given_up: list[Any] = []  # services that must not be stopped: kept, as their end would stop them


def join(service: str) -> Any:
    """An agent that is connected to the service. It waits for nobody else. Raises an error of XLA."""
    agent = _jax.get_distributed_runtime_client(
        service,
        0,
        init_timeout=_INIT_SECONDS,
        shutdown_timeout=_SHUTDOWN_SECONDS,
        heartbeat_timeout=_NEVER,
        shutdown_on_destruction=False,
    )
    agent.connect()
    return agent


class Coordination:
    """The service of one world. Calls block for milliseconds."""

    def __init__(self, ports: set[int] | None = None) -> None:
        """ports: its port is in there as long as it is open."""
        self._ports = ports if ports is not None else set()
        self._port = 0
        self._address = ""
        self._service: Any = None

    def open(self) -> str:
        """Start it. Returns its address. Raises OSError if no port can be had."""
        # jaxlib ends the process (SIGSEGV) if the port is taken: it is held until the service, which may share it, has it.
        with socket.socket() as holder:
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            holder.bind(("127.0.0.1", 0))
            self._port = int(holder.getsockname()[1])
            self._address = f"127.0.0.1:{self._port}"
            self._service = _jax.get_distributed_runtime_service(
                self._address, num_nodes=1, heartbeat_timeout=_NEVER, shutdown_timeout=_SHUTDOWN_SECONDS, recoverable=True
            )
        self._ports.add(self._port)
        return self._address

    def immunise(self) -> None:
        """Call when all workers have connected. After it the death of the head, which is this service's end as well, does not end them.

        Only the agent that has begun to listen last hears of the service's errors, and dies of them: let that be one that has left.
        """
        join(self._address).shutdown()

    def close(self) -> None:
        """Give it up: it is stopped a little later, or with the process. Its world must be broken up or its workers gone."""
        self._ports.discard(self._port)
        service, self._service = self._service, None
        if service is not None:
            try:
                self.immunise()  # again: an agent may begin to listen a little after it has connected; and a world may be given up before
            except Exception as error:
                _given_up.append(service)  # somebody may listen who would take the process along
                log.info("the coordination service at %s is not stopped: %s", self._address, error)
                return
            timer = threading.Timer(_QUIET_SECONDS, service.shutdown)
            timer.daemon = True
            timer.start()
