"""What makes an unmodified program run on Everstep. JAX loads it in every process, through the entry point group `jax_plugins`,
and calls `initialize` before it creates its backends.

It does nothing unless the program asks for the proxy backend, and then: it makes that backend known to JAX versions that don't know it
(backend.py), it lets programs on workers call back into this process (compile_hook.py, callbacks.py) and waits for the effects of all of
them (effects.py), it sees to it that NumPy arrays are read when plain JAX would have read them (host_inputs.py) and that arrays
of other backends can be used (foreign_arrays.py), and it answers what jaxlib's client can't (devices.py).
"""

from __future__ import annotations


def initialize() -> None:
    """Called by JAX. Costs nothing in programs that don't use Everstep."""
    from everstep.jax_plugin import backend

    if not backend.is_wanted():
        return
    backend.prepare()

    from everstep.jax_plugin import compile_hook, devices, foreign_arrays, host_inputs

    compile_hook.install()
    host_inputs.install()
    foreign_arrays.install(backend.is_ours)
    devices.install(backend.is_ours)
