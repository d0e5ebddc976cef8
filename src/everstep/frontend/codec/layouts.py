"""Layouts: the order of dimensions in memory, as text ("{1,0}": minor to major) or as one of two messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from google.protobuf.message import DecodeError

from everstep.frontend.codec import dtypes
from everstep.wire.errors import invalid, unimplemented
from everstep.wire.ifrt import shardings_pb2 as shardings
from everstep.wire.ifrt import values_pb2 as values

_TEXT = re.compile(rb"\{([0-9,]*)[:}]")


def default_text(dtype: str, rank: int, *, packed: bool) -> bytes:
    """The layout that XLA's CPU backend chooses: row-major. packed: sub-byte types say their size, as jaxlib does since 0.11."""
    order = ",".join(map(str, reversed(range(rank))))
    bits = dtypes.packed_bits(dtype) if packed else 0
    return (f"{{{order}:E({bits})}}" if bits else f"{{{order}}}").encode()


def check_default(layout: values.Layout, rank: int) -> None:
    """Raises Failure (UNIMPLEMENTED) unless it is the row-major one, (INVALID_ARGUMENT) if it is none."""
    serialized = layout.serialized_layout
    try:
        match serialized.type_name:
            case "xla::ifrt::PjRtLayout":
                order = list(shardings.PjRtLayout.FromString(serialized.data).xla_layout.minor_to_major)
            case "xla::ifrt::CompactLayout":
                order = list(shardings.CompactLayout.FromString(serialized.data).major_to_minor)[::-1]
            case name:
                raise unimplemented(f"layouts of type {name or '(none)'} are not supported")
    except DecodeError as error:
        raise invalid(f"not a {serialized.type_name}") from error
    _check(order, rank)


def check_default_text(text: bytes, rank: int) -> None:
    """The same for a layout as text."""
    match = _TEXT.match(text)
    if match is None:
        raise invalid(f"{text[:80]!r} is no layout")
    _check([int(number) for number in match[1].split(b",") if number], rank)


def _check(minor_to_major: Sequence[int], rank: int) -> None:
    if list(minor_to_major) != list(reversed(range(rank))):
        raise unimplemented(f"arrays can only be made in row-major layout, not {{{','.join(map(str, minor_to_major))}}} (minor to major)")
