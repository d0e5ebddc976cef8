"""Host callbacks: a program on a device calls a function in the program's process.

Worker → head → program's process → head → worker. A callback's id is "<uuid of the process>/<number>".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from everstep.head.members import Member
from everstep.wire import channel_pb2 as wire
from everstep.wire.errors import Code, Failure

Send: TypeAlias = Callable[[int, str, Sequence[wire.HostValue]], None]  # number of the call, id of the callback, operands


class Callbacks:
    """The calls under way, and the processes that answer them."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._processes: dict[str, Send] = {}
        self._calls: dict[int, tuple[Member, int, str]] = {}  # our number -> worker, its number, uuid

    def attach(self, uuid: str, send: Send) -> None:
        """A process answers for its callbacks from now on. Raises Failure (ALREADY_EXISTS) if one does under that uuid."""
        if uuid in self._processes:
            raise Failure(Code.ALREADY_EXISTS, f"a process answers for the callbacks of {uuid} already")
        self._processes[uuid] = send

    def detach(self, uuid: str) -> None:
        """The process is gone: calls it has not answered fail."""
        self._processes.pop(uuid, None)
        for number, (_, _, owner) in list(self._calls.items()):
            if owner == uuid:
                self.result(uuid, number, (), Failure(Code.CANCELLED, "the program that this host callback belongs to has ended"))

    def call(self, member: Member, message: wire.CallbackCall) -> None:
        """A worker calls."""
        uuid = message.callback.partition("/")[0]
        send = self._processes.get(uuid)
        if send is None:
            error = wire.Error(
                code=Code.CANCELLED, message=f"no process answers for host callback {message.callback}: the program has ended"
            )
            member.link.send(wire.ToWorker(callback_result=wire.CallbackResult(call=message.call, error=error)))
            return
        number = next(self._numbers)
        self._calls[number] = (member, message.call, uuid)
        send(number, message.callback, message.operands)

    def result(self, uuid: str, number: int, values: Sequence[wire.HostValue], failure: Failure | None) -> None:
        """A process answers. An answer to a call that is not its own is dropped: the worker may be gone."""
        call = self._calls.get(number)
        if call is None or call[2] != uuid:
            return
        del self._calls[number]
        member, theirs, _ = call
        error = wire.Error(code=failure.code, message=failure.message) if failure is not None else None
        member.link.send(wire.ToWorker(callback_result=wire.CallbackResult(call=theirs, values=values, error=error)))

    def lose(self, member: Member) -> None:
        """The worker is gone: it wants no answers any more."""
        for number, (caller, _, _) in list(self._calls.items()):
            if caller is member:
                del self._calls[number]
