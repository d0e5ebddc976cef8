"""Host callbacks of programs on the proxy backend. The only file that reaches into how JAX compiles.

jaxlib's proxy client can't carry Python callbacks. So they stay in this process, where callbacks.py answers for them; the module that
goes to the head names them in an attribute, and whichever worker compiles it puts its own functions in their place, which call us.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax as _jax
from jax._src import compilation_cache, compiler, dispatch

from everstep.jax_plugin import backend, effects

jax: Any = _jax  # hardly typed, and not the same in all versions

ATTRIBUTE = "everstep.host_callbacks"  # of the module: an array of ids, in the order in which the module numbers its callbacks

_PARAMETERS = ("backend", "module", "executable_devices", "options", "host_callbacks")

_lock = threading.Lock()
_server: Any = None  # a CallbackServer, once there is a callback


def install() -> None:
    """Wrap the function with which JAX hands a module to a backend. Warns if this JAX has no such function."""
    original = getattr(compiler, "backend_compile_and_load", None)
    if hasattr(original, "_everstep"):
        return
    has_tokens = hasattr(dispatch, "wait_for_tokens") and all(hasattr(dispatch.RuntimeTokenSet, name) for name in effects.NEEDS)
    if original is None or tuple(inspect.signature(original).parameters) != _PARAMETERS or not has_tokens:
        warnings.warn(
            "host callbacks (pure_callback, io_callback, debug.print) won't work on Everstep: "
            f"JAX {jax.__version__} compiles in another way than this release of Everstep knows "
            f"(jax._src.compiler.backend_compile_and_load{_PARAMETERS}, jax._src.dispatch.wait_for_tokens, RuntimeTokenSet)",
            RuntimeWarning,
            stacklevel=2,
        )
        return

    @functools.wraps(original)
    def compile_and_load(client: Any, module: Any, executable_devices: Any, options: Any, host_callbacks: Sequence[Any]) -> Any:
        here = functools.partial(original, client, module, executable_devices, options)
        if not host_callbacks or not _is_proxy(client):
            return here(host_callbacks)
        return _compile(client, module, host_callbacks, here)

    compile_and_load._everstep = True  # type: ignore[attr-defined]
    compiler.backend_compile_and_load = compile_and_load
    effects.install(lambda client: _is_proxy(client))
    _disable_persistent_cache()


def _disable_persistent_cache() -> None:
    """JAX would ask the client for serialized executables, which it can't give, and warn at every program. The head keeps them itself."""
    cache: Any = compilation_cache
    original = getattr(cache, "is_cache_used", None)
    if original is not None:
        cache.is_cache_used = lambda client: not _is_proxy(client) and original(client)


def _is_proxy(client: Any) -> bool:
    return backend.is_ours(client)


def _compile(client: Any, module: Any, callbacks: Sequence[Any], compile: Callable[[Sequence[Any]], Any]) -> Any:
    server = _connected()
    if server is None:  # not an Everstep head
        return compile(callbacks)
    ids = server.add([_remote(callback) for callback in callbacks])
    attributes = module.operation.attributes
    try:
        with module.context:
            attributes[ATTRIBUTE] = _array_of_strings(ids)
        try:
            executable = compile([])  # the module is serialized when this returns
        finally:
            del attributes[ATTRIBUTE]
    except BaseException:
        server.remove(ids)
        raise
    _executables.note(client, executable, server, ids)
    return executable


class _Executables:
    """Which callbacks are still needed. jaxlib's executables take no weak references, but their client can list them."""

    _SOME = 256

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: dict[int, tuple[Any, list[str]]] = {}  # address of the executable -> server, ids
        self._gone: list[tuple[Any, list[str]]] = []
        self._enough = self._SOME

    def note(self, client: Any, executable: Any, server: Any, ids: list[str]) -> None:
        """The server answers for these ids as long as the executable lives, and a while longer: it may be dropped while it runs."""
        with self._lock:
            if (former := self._of.pop(id(executable), None)) is not None:  # the address is used again
                self._gone.append(former)
            self._of[id(executable)] = server, ids
            if len(self._of) + len(self._gone) > self._enough:
                self._sweep({id(living) for living in client.live_executables()})

    def _sweep(self, living: set[int]) -> None:
        for server, ids in self._gone:  # since the last sweep or longer
            server.remove(ids)
        self._gone = [self._of.pop(address) for address in self._of.keys() - living]
        self._enough = len(self._gone) + 2 * len(self._of) + self._SOME


_executables = _Executables()


def _array_of_strings(values: Sequence[str]) -> Any:
    from jaxlib.mlir import ir

    return ir.ArrayAttr.get([ir.StringAttr.get(value) for value in values])


def _remote(callback: Any) -> Callable[..., Any]:
    """The callback as it is called from a thread of ours. Raises NotImplementedError for kinds that need the device's memory."""
    if not callable(callback):
        raise NotImplementedError("Everstep runs host callbacks on CPU and GPU workers only")
    if getattr(callback, "__module__", "") == "jax._src.buffer_callback":
        raise NotImplementedError("buffer_callback works on the memory of the device, which this process doesn't have: use io_callback")
    x64 = bool(jax.config.jax_enable_x64)

    @functools.wraps(callback)
    def call(*operands: Any) -> Any:
        with jax.enable_x64(x64):  # a setting of the thread that compiled
            return callback(*operands)

    return call


def _connected() -> Any:
    """The server, connected to the head that the backend talks to. None if that is not an Everstep head.

    Raises RuntimeError if it can't be reached.
    """
    global _server
    with _lock:
        if "grpc" not in sys.modules:  # it would print a line whenever the program forks (a data loader, say)
            os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")
        from everstep.jax_plugin.callbacks import CallbackServer, NotAHeadError

        target = backend.target()
        if _server is None or _server.target != target or not _server.is_alive:
            try:
                _server = CallbackServer(target)
            except NotAHeadError:
                return None
            _close_at_exit(_server)
        return _server


def _close_at_exit(server: Any) -> None:
    """When JAX has waited for the last effects: their callbacks need the server. Exit handlers run in reverse order."""
    pid = os.getpid()

    def close() -> None:
        if os.getpid() == pid:  # else a fork: the threads that serve are not in it
            effects.unfinished.wait()
            server.close()

    atexit.unregister(dispatch.wait_for_tokens)
    atexit.register(close)
    atexit.register(dispatch.wait_for_tokens)
