"""What a request to compile asks for."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from everstep.frontend.codec.shardings import Specs
from everstep.head.programs import CompileRequest
from everstep.wire.errors import invalid, unimplemented
from everstep.wire.ifrt import requests_pb2 as wire
from everstep.wire.ifrt import xla_pb2 as xla

_PROGRAM = "xla::ifrt::XlaProgram"
_OPTIONS = "xla::ifrt::XlaCompileOptions"
_OTHER_PROGRAMS = {
    "xla::ifrt::CustomCallProgram": "custom call programs (colocated Python) are not supported",
    "xla::ifrt::IfrtIRProgram": "IFRT IR programs (MPMD) are not supported",
}


def decode(request: wire.CompileRequest, specs: Specs) -> CompileRequest:
    """Raises Failure: UNIMPLEMENTED for anything but an XLA program, INVALID_ARGUMENT for nonsense."""
    kind = request.program.type_name
    if kind != _PROGRAM:
        raise unimplemented(_OTHER_PROGRAMS.get(kind, f"programs of type {kind or '(none)'} are not supported"))
    if request.compile_options.type_name != _OPTIONS:
        raise unimplemented(f"compile options of type {request.compile_options.type_name or '(none)'} are not supported")
    try:
        outer = wire.XlaCompileOptions.FromString(request.compile_options.data)
        options = xla.CompileOptions.FromString(outer.compile_options)
    except DecodeError as error:
        raise invalid(f"not {_OPTIONS}") from error
    if outer.outputs_bundle_slice_sizes:
        raise unimplemented("programs with bundled outputs are not supported")
    devices, replicas, partitions = _assignment(options.executable_build_options)
    specs.check_devices(devices)
    return CompileRequest(request.program.data, _canonical(options), devices, replicas, partitions)


def _canonical(options: xla.CompileOptions) -> bytes:
    """The same bytes for the same options, whatever the devices and in whatever order the client has written its maps.

    By them the head knows what it has compiled before; which devices are meant a worker is told beside them.
    """
    options.executable_build_options.ClearField("device_assignment")
    return options.SerializeToString(deterministic=True)


def _assignment(options: xla.ExecutableBuildOptions) -> tuple[tuple[int, ...], int, int]:
    """The devices, [replicas x partitions] in row-major order, and both numbers."""
    if not options.HasField("device_assignment"):
        raise unimplemented("a program must be compiled for given devices; its options hold no device assignment")
    assignment = options.device_assignment
    replicas, partitions = assignment.replica_count, assignment.computation_count
    columns = [tuple(column.replica_device_ids) for column in assignment.computation_devices]
    if len(columns) != partitions or any(len(column) != replicas for column in columns) or not replicas * partitions:
        raise invalid(f"a device assignment for {replicas} replicas of {partitions} partitions names others")
    if (options.num_replicas or 1) != replicas or (options.num_partitions or 1) != partitions:
        raise invalid(f"a device assignment for {replicas} x {partitions} devices does not fit the options of the program")
    return tuple(column[replica] for replica in range(replicas) for column in columns), replicas, partitions
