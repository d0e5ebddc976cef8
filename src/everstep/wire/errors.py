"""Errors as they travel: a code of the absl status family and a message."""

from __future__ import annotations

import enum


class Code(enum.IntEnum):
    """absl::StatusCode: the numbers that the IFRT proxy protocol and gRPC use."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class Failure(Exception):
    """An error with a status code, on its way to whoever waits.

    Only the loss of devices is DATA_LOSS: elastic training loops decide by that word whether to go on.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = Code(code)
        self.message = message

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"


def invalid(message: str) -> Failure:
    """The program asked for something that makes no sense."""
    return Failure(Code.INVALID_ARGUMENT, message)


def unimplemented(message: str) -> Failure:
    """Everstep does not do this."""
    return Failure(Code.UNIMPLEMENTED, message)
