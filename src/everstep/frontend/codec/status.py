"""Failures as statuses on the wire.

Elastic training loops look for four words in the text of an error: DATA_LOSS means that a slice went down, and DEADLINE_EXCEEDED,
NOT_FOUND and INTERNAL are taken for the same. So exactly the loss of devices may carry any of them; everything else is reworded.
"""

from __future__ import annotations

import re

from everstep.wire.errors import Code, Failure
from everstep.wire.ifrt import values_pb2 as values

_SAFE = {Code.DEADLINE_EXCEEDED: Code.UNKNOWN, Code.NOT_FOUND: Code.INVALID_ARGUMENT, Code.INTERNAL: Code.UNKNOWN}
_RESERVED = re.compile(r"\b(DATA_LOSS|DEADLINE_EXCEEDED|NOT_FOUND|INTERNAL)\b")


def encode(failure: Failure) -> values.Status:
    """The status for a failure. Only DATA_LOSS keeps the reserved words."""
    if failure.code is Code.DATA_LOSS:
        return values.Status(code=failure.code, message=failure.message)
    return values.Status(code=_SAFE.get(failure.code, failure.code), message=reword(failure.message))


def decode(status: values.Status) -> Failure:
    """The failure in a status that is not OK; an unknown code becomes UNKNOWN."""
    try:
        code = Code(status.code)
    except ValueError:
        code = Code.UNKNOWN
    return Failure(Code.UNKNOWN if code is Code.OK else code, status.message)


def reword(message: str) -> str:
    """The message without the reserved words: "INTERNAL" becomes "internal", "NOT_FOUND" "not found"."""
    return _RESERVED.sub(lambda match: match[0].lower().replace("_", " "), message)
