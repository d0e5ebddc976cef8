"""Asks a running head."""

from __future__ import annotations

import json
from typing import Any

import grpc

from everstep.control.service import SERVICE
from everstep.wire import control_pb2 as control
from everstep.wire.errors import Code, Failure

_TIMEOUT = 10.0  # seconds


def status(target: str) -> dict[str, Any]:
    """What the head at a gRPC target ("unix:/path" or "host:port") tells of itself. Raises Failure if it doesn't answer."""
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call = channel.unary_unary(
            f"/{SERVICE}/Status",
            request_serializer=control.StatusRequest.SerializeToString,
            response_deserializer=control.StatusReply.FromString,
        )
        try:
            reply = call(control.StatusRequest(), timeout=_TIMEOUT)
        except grpc.RpcError as error:
            raise Failure(Code.UNAVAILABLE, f"the head at {target} does not answer: {error.details()}") from error
        answer: dict[str, Any] = json.loads(reply.json)
        return answer
