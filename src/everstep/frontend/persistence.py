"""Plugin programs that save and restore arrays: JSON, as pathwaysutils 0.1.13 and Orbax 0.12 write them (persistence/helper.py there).

They are compiled and executed like any program; a save takes the arrays, a restore gives them, and the status of the execution says
when it has ended. One program is for one array or, in bulk, for several.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

from everstep.frontend.codec import dtypes, shardings
from everstep.frontend.codec.shardings import Specs
from everstep.head.persistence import StorageProgram, StoredArray
from everstep.head.specs import ArraySpec, Shape, Sharding
from everstep.wire import dtypes as names
from everstep.wire.errors import Failure, invalid, unimplemented
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import values_pb2 as values

PROGRAM = "xla::ifrt::PluginProgram"

_PREFIX = b"__serialized_plugin_program "
_REMOTE = ("s3://", "gs://")


def decode(data: bytes, specs: Specs) -> StorageProgram:
    """The program in a serialized PluginProgram. Raises Failure: UNIMPLEMENTED for what else plugins do, INVALID_ARGUMENT for nonsense."""
    try:
        program = json.loads(data.removeprefix(_PREFIX))
        match program:
            case {"bulk_persistence_write_request": {"write_requests": requests}}:
                return _program(True, requests, specs)
            case {"bulk_persistence_read_request": {"read_requests": requests}}:
                return _program(False, requests, specs)
            case {"persistenceWriteRequest": request}:
                return _program(True, [request], specs)
            case {"persistenceReadRequest": request}:
                return _program(False, [request], specs)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise invalid(f"a plugin program that can't be read: {type(error).__name__}: {error}") from None
    kind = ", ".join(program) if isinstance(program, dict) else "none"
    raise unimplemented(f"of Pathways' plugin programs only those that save and restore arrays are supported, not {kind[:200]}")


def _program(saves: bool, requests: list[dict[str, Any]], specs: Specs) -> StorageProgram:
    if not requests:
        raise invalid("a plugin program that names no arrays")
    times = [_seconds(request) for request in requests]
    timeout = None if None in times else max(time for time in times if time is not None)
    return StorageProgram(saves, tuple(_stored(saves, request, specs) for request in requests), timeout)


def _seconds(request: dict[str, Any]) -> float | None:
    """The request's timeout; Pathways' JSON leaves fields out that are 0."""
    timeout = request.get("timeout")
    return None if timeout is None else int(timeout.get("seconds", 0)) + int(timeout.get("nanos", 0)) / 1e9


def _stored(saves: bool, request: dict[str, Any], specs: Specs) -> StoredArray:
    location, name = _text(request["b64_location"]), _text(request["b64_name"])
    if not location.startswith(("/", *_REMOTE)):
        raise invalid(f"arrays can be saved in an absolute path, s3://bucket/path and gs://bucket/path, not in {location!r}")
    if not name:
        raise invalid(f"an array in {location} without a name")
    dtype, dims = "", request["shape"]
    if not saves:
        dtype, dims = str(dims["xla_primitive_type_str"]).lower(), dims["dimensions"]
        if not names.host_itemsize(dtype):
            raise invalid(f"{name}: {dtype} is no element type that can be restored")
    shape = shardings.shape(values.Shape(dims=map(int, dims)))
    sharding = _sharding(request, shape, specs)
    return StoredArray(location, name, ArraySpec(dtype, shape, sharding))


def _sharding(request: dict[str, Any], shape: Shape, specs: Specs) -> Sharding:
    """With the bytes of its xla.OpSharding as source."""
    op = base64.b64decode(request["b64_hlo_sharding_string"], validate=True)
    devices = tuple(map(int, request["devices"]["device_ids"]))
    sharding = dataclasses.replace(specs.cut(op, devices, None, shape), source=op)
    sharding.boxes(shape)  # raises for a sharding that does not say who holds what
    return sharding


def _text(encoded: str) -> str:
    return base64.b64decode(encoded, validate=True).decode()


def describe(spec: ArraySpec) -> wire.LoadedExecutableExecuteResponse.Output:
    """A result, as the first execution of a program tells it."""
    kind = spec.sharding.memory_kind or ""
    if len(spec.sharding.devices) == 1:
        sharding = shardings.encode_single(spec.sharding.devices[0], kind)
    else:
        assert isinstance(spec.sharding.source, bytes)
        sharding = shardings.encode_cut(spec.sharding.source, spec.sharding.devices, kind)
    return wire.LoadedExecutableExecuteResponse.Output(
        dtype=dtypes.encode(spec.dtype), shape=values.Shape(dims=spec.shape), sharding=sharding
    )


def metadata(program: StorageProgram) -> wire.LoadedExecutableMetadataResponse:
    """What JAX's client asks about every program: there is no code here, and no layout."""
    body = wire.LoadedExecutableMetadataResponse()
    none = unimplemented(f"a program that {program.name}s arrays has no layouts")
    for error in (body.parameter_layouts_error, body.output_layouts_error, body.compiled_memory_stats_error):
        error.CopyFrom(values.Status(code=none.code, message=none.message))
    body.output_memory_kinds.memory_kind_lists.add(memory_kinds=[spec.sharding.memory_kind or "" for spec in program.results])
    body.donated_input_indices.SetInParent()
    return body


def refuse(program: StorageProgram) -> Failure:
    """The answer to questions about its code."""
    return unimplemented(f"a program that {program.name}s arrays has no code")
