"""Requests that wait: for values, for executions, for futures."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING

from everstep.frontend.handles import COMPILED, DELETED, HandleTable
from everstep.frontend.requests import Handler, OnFailure
from everstep.wire.errors import Failure
from everstep.wire.ifrt import requests_pb2 as wire

if TYPE_CHECKING:
    from everstep.head.arrays import Array
    from everstep.head.operations import Execution
    from everstep.head.sessions import Session


class WaitingRequests:
    """executions: what the status handles of executions stand for; each is good for one question."""

    def __init__(self, session: Session, arrays: HandleTable[Array], executions: HandleTable[Execution]) -> None:
        self._session = session
        self._arrays = arrays
        self._executions = executions
        self.handlers: Mapping[str, Handler] = {
            "check_value_ready_request": self._check_value_ready,
            "check_future_request": self._check_future,
            "loaded_executable_fetch_execute_result_request": self._fetch_execute_result,
        }
        self.on_failure: Mapping[str, OnFailure] = {}

    def _check_value_ready(self, request: wire.CheckValueReadyRequest) -> wire.IfrtResponse | Awaitable[wire.IfrtResponse]:
        waiting = []
        for array in self._arrays.get_all(request.value_handles):
            array.check_usable()
            if array.failures is not None or array.waiting_for() is not None:
                waiting.append(array)
        return self._ready(waiting) if waiting else _ready()

    async def _ready(self, arrays: Sequence[Array]) -> wire.IfrtResponse:
        await self._session.ready(arrays)
        return _ready()

    def _check_future(self, request: wire.CheckFutureRequest) -> wire.IfrtResponse | Awaitable[wire.IfrtResponse]:
        response = wire.IfrtResponse(check_future_response=wire.CheckFutureResponse())
        if request.future_handle in (DELETED, COMPILED):
            return response
        return self._executed(request.future_handle, response)

    def _fetch_execute_result(self, request: wire.LoadedExecutableFetchExecuteResultRequest) -> Awaitable[wire.IfrtResponse]:
        body = wire.LoadedExecutableFetchExecuteResultResponse()  # no device times: CPU devices have none
        return self._executed(request.result_status_handle, wire.IfrtResponse(loaded_executable_fetch_execute_result_response=body))

    def _executed(self, handle: int, response: wire.IfrtResponse) -> Awaitable[wire.IfrtResponse]:
        execution = self._executions.pop(handle)
        if isinstance(execution, Failure):
            raise execution

        async def wait() -> wire.IfrtResponse:
            await execution.done()
            return response

        return wait()


def _ready() -> wire.IfrtResponse:
    return wire.IfrtResponse(check_value_ready_response=wire.CheckValueReadyResponse())
