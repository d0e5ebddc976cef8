"""jaxlib's private calls that this room needs, with the differences between its versions ironed out.

A *buffer* is an array on one device (a jaxlib ArrayImpl), an *array* the shards of this process's devices joined to one ArrayImpl.
Arrays are given the shape of a shard and called replicated: XLA looks only at the buffers, so no global sharding is needed here.
"""

from __future__ import annotations

import math
import mmap
import threading
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax  # noqa: F401 - jaxlib imports it when it first takes an array apart: half a second that belongs to the start
import numpy as np
from jaxlib import _hlo, _jax, version, xla_client  # type: ignore[attr-defined]
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from everstep.wire.errors import Code, Failure, invalid

from jax._src.interpreters.mlir import make_ir_context  # isort: skip

Buffer: TypeAlias = Any
Client: TypeAlias = Any
Device: TypeAlias = Any
DeviceList: TypeAlias = Any
Executable: TypeAlias = Any
Module: TypeAlias = Any
Options: TypeAlias = Any
ProgramShape: TypeAlias = tuple[str, bytes, Any, list[Any]]  # see program_shape
Sharding: TypeAlias = Any

JAXLIB = version.__version__
VERSION = tuple(int(part) for part in JAXLIB.split(".")[:2])


class Aval:
    """What jaxlib wants to know of an array: shape and dtype."""

    __slots__ = ("dtype", "ndim", "shape", "weak_type")

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        self.shape = tuple(shape)
        self.ndim = len(self.shape)
        self.dtype = dtype
        self.weak_type = False


class CallbackError(Exception):
    """A host callback has failed. What XLA makes of it holds this process's own frames, which `failure` takes out again."""

    MARK = "the host callback failed: "
    PREFIX = "UNKNOWN: CpuCallback error calling callback: "  # what XLA puts before it

    def __init__(self, message: str) -> None:
        super().__init__(self.MARK + message)


def failure(error: BaseException) -> Failure:
    """What went wrong, as it travels. XLA's errors begin with the name of their code."""
    if isinstance(error, Failure):
        return Failure(error.code, error.message)  # without the traceback, which holds on to whatever the frames hold
    text = str(error)
    before, mark, told = text.rpartition(CallbackError.MARK)
    if mark:
        text = (before.partition("Traceback (most recent call last)")[0] or CallbackError.PREFIX) + told
        if told.startswith(Code.INVALID_ARGUMENT.name):  # of our own making
            text = told
    name, colon, message = text.partition(": ")
    if colon and name in Code.__members__:
        return Failure(Code[name], message)
    if isinstance(error, MemoryError):
        return Failure(Code.RESOURCE_EXHAUSTED, text or "out of memory")
    if isinstance(error, (ValueError, TypeError, KeyError)):
        return invalid(f"{type(error).__name__}: {text}")
    return Failure(Code.INTERNAL, f"{type(error).__name__}: {text}")


# ---------------------------------------------------------------- arrays

_making_shards = threading.Lock()


def device_list(devices: Sequence[Device]) -> DeviceList:
    return _jax.DeviceList(tuple(devices))


def replicated(devices: DeviceList, memory_kind: str | None) -> Sharding:
    return _jax.GSPMDSharding(devices, _hlo.HloSharding.replicate(), memory_kind=memory_kind)


def put(content: np.ndarray[Any, Any], device: Device, memory_kind: str | None) -> Buffer:
    """Copy to the device. On return `content` may change."""
    return _put(np.asarray(content, order="C"), device, memory_kind, _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL)


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Memory that a device can take as its own: in pages, as XLA wants it aligned."""
    size = math.prod(shape) * dtype.itemsize
    if size < mmap.PAGESIZE:
        return np.empty(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, size), dtype).reshape(shape)


def give(content: np.ndarray[Any, Any], device: Device, memory_kind: str | None) -> Buffer:
    """Let the device have it, without a copy where it can. Nobody may write to it any more. See `take_back`."""
    take_back()
    return _put(content, device, memory_kind, _jax.HostBufferSemantics.ZERO_COPY)


def take_back() -> None:
    """Free what devices were given and don't need any more: jaxlib only does it when asked, or when Python looks for garbage."""
    _jax.collect_garbage()


def _put(content: np.ndarray[Any, Any], device: Device, memory_kind: str | None, semantics: Any) -> Buffer:
    return _jax.batched_device_put(
        Aval(content.shape, content.dtype),
        _jax.SingleDeviceSharding(device, memory_kind),
        [content],
        [device],
        True,
        enable_x64=True,
        host_buffer_semantics=semantics,
    )


def view(buffer: Buffer) -> np.ndarray[Any, Any]:
    """The content, once it is there; on CPU the very memory where the element type allows it. Raises what computing it has raised."""
    content: np.ndarray[Any, Any] = buffer._single_device_array_to_np_array_did_copy()[0]
    return content


def join(aval: Aval, sharding: Sharding, buffers: Sequence[Buffer]) -> Buffer:
    return _jax.ArrayImpl(aval, sharding, list(buffers), True, True)


def shards(whole: Buffer) -> list[Buffer]:
    """The single-device arrays that a joined one consists of, in the order of its devices.

    Asked for the first time jaxlib makes them one by one, and lets other threads run meanwhile, which would see a list of some of them.
    """
    with _making_shards:
        return list(whole._arrays)


def copy(array: Buffer, devices: DeviceList, sharding: Sharding) -> Buffer:
    """A copy on the same devices, made in its turn: it does not wait."""
    return _jax.batched_copy_array_to_devices_with_sharding([array], [devices], [sharding], [_jax.ArrayCopySemantics.ALWAYS_COPY])[0]


def adopt(buffer: Buffer, device: Device) -> Buffer:
    """The same memory as a buffer of another client's device. Raises an error of XLA if the element type can't."""
    return _jax.dlpack_managed_tensor_to_buffer(_jax.buffer_to_dlpack_managed_tensor(buffer, None), device, None)


def result_handler(aval: Aval, sharding: Sharding) -> Any:
    """For `consume_with_handlers`: makes the array of one result."""
    if VERSION < (0, 12):
        try:
            return _jax.array_result_handler(aval, sharding, True, _skip_checks=True)
        except TypeError:  # somewhere in between the argument went away
            pass
    return _jax.array_result_handler(aval, sharding, True)


# ---------------------------------------------------------------- programs


def parse(artifact: bytes) -> Module:
    """A StableHLO module: a portable artifact, or MLIR as text or bytecode. Raises Failure (INVALID_ARGUMENT)."""
    context = make_ir_context()
    with context:
        try:
            try:
                return stablehlo.deserialize_portable_artifact(context, artifact)
            except ValueError:
                return ir.Module.parse(artifact)
        except (ValueError, ir.MLIRError, UnicodeDecodeError) as error:
            raise invalid(f"the program is not a module of StableHLO: {error}") from None


def parse_options(serialized: bytes, assignment: np.ndarray[Any, Any]) -> Options:
    """xla.CompileOptionsProto for these devices: ids of the client, [replicas, partitions]. Raises Failure (INVALID_ARGUMENT)."""
    try:
        options = _jax.CompileOptions.ParseFromString(serialized)
    except Exception as error:
        raise invalid(f"the compile options can't be read: {error}") from None
    options.num_replicas, options.num_partitions = assignment.shape
    options.device_assignment = _jax.DeviceAssignment.create(assignment.astype(np.int32))
    return options


def compile_program(client: Client, module: Module, devices: DeviceList, options: Options, callbacks: Sequence[Any]) -> Executable:
    if callbacks:
        return client.compile_and_load(module, devices, options, host_callbacks=list(callbacks))
    return client.compile_and_load(module, devices, options)


def load_program(client: Client, blob: bytes, devices: DeviceList, options: Options, callbacks: Sequence[Any]) -> Executable:
    if callbacks:
        return client.deserialize_executable(blob, devices, options, host_callbacks=list(callbacks))
    return client.deserialize_executable(blob, devices, options)


def program_shape(executable: Executable) -> ProgramShape:
    """Name, xla.HloModuleProto, parameter shapes, result shapes: as each device sees them."""
    module = executable.hlo_modules()[0]
    serialized = module.as_serialized_hlo_module_proto()
    shape = xla_client.XlaComputation(serialized).program_shape()
    result = shape.result_shape()
    return module.name, serialized, shape.parameter_shapes(), list(result.tuple_shapes()) if result.is_tuple() else [result]
