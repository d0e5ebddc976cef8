"""What JAX finds when it looks for plugins: in processes of their own, since a process has one JAX."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import jax
import pytest


def _run(program: str, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "IFRT_", "XLA_"))}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        env=inherited | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_nothing_happens_in_programs_that_do_not_use_it():
    program = """
        import sys
        import jax
        import everstep.jax_plugin
        from jax._src import compiler, xla_bridge
        before = compiler.backend_compile_and_load, dict(xla_bridge._backend_factories)
        everstep.jax_plugin.initialize()
        assert (compiler.backend_compile_and_load, dict(xla_bridge._backend_factories)) == before
        assert float(jax.jit(lambda x: x + 1)(1)) == 2
        print([name for name in ("grpc", "google.protobuf", "everstep.wire") if name in sys.modules])
    """
    assert _run(program) == "[]"
    assert _run(program, JAX_PLATFORMS="cpu") == "[]"


def test_importing_it_imports_nothing():
    assert _run("import sys, everstep.jax_plugin; print('jax' in sys.modules, 'grpc' in sys.modules)") == "False False"


@pytest.mark.parametrize(
    "environment", [{"JAX_PLATFORMS": "proxy,cpu"}, {"JAX_PLATFORMS": "proxy"}, {"JAX_BACKEND_TARGET": "grpc://unix:/nowhere"}], ids=str
)
def test_the_backend_is_known_and_the_hook_installed(environment):
    program = """
        import sys
        import everstep.jax_plugin
        everstep.jax_plugin.initialize()
        everstep.jax_plugin.initialize()
        from jax._src import compiler, xla_bridge
        print("proxy" in xla_bridge._backend_factories, hasattr(compiler.backend_compile_and_load, "_everstep"), "grpc" in sys.modules)
    """
    assert _run(program, **environment) == "True True False"


def test_a_factory_that_someone_else_registered_stays():
    program = """
        from jax._src import xla_bridge
        xla_bridge.register_backend_factory("proxy", lambda: None)
        mine = xla_bridge._backend_factories["proxy"]
        import everstep.jax_plugin
        everstep.jax_plugin.initialize()
        print(xla_bridge._backend_factories["proxy"] is mine)
    """
    assert _run(program, JAX_PLATFORMS="proxy") == "True"


def test_without_a_target_the_message_says_what_to_do():
    program = """
        import everstep.jax_plugin, jax
        everstep.jax_plugin.initialize()
        try:
            jax.devices()
        except RuntimeError as error:
            print(error)
    """
    assert "JAX_BACKEND_TARGET" in _run(program, JAX_PLATFORMS="proxy")


@pytest.mark.parametrize(
    ("target", "insecure"),
    [
        ("grpc://unix:/run/Some/Path", "true"),
        ("grpc://localhost:1234", "true"),
        ("grpc://127.0.0.1:1234", "true"),
        ("grpc://[::1]:1234", "true"),
        ("grpc://head.example:1234", "None"),
        ("grpc://127.0.0.1.example:1234", "None"),
    ],
)
def test_capitals_survive_and_credentials_are_dropped_only_on_this_machine(target, insecure):
    program = """
        import os
        import everstep.jax_plugin
        everstep.jax_plugin.initialize()
        from jax._src import xla_bridge
        print(xla_bridge.BACKEND_TARGET.value, os.environ.get("IFRT_PROXY_USE_INSECURE_GRPC_CREDENTIALS"))
    """
    assert _run(program, JAX_PLATFORMS="proxy,cpu", JAX_BACKEND_TARGET=target) == f"{target} {insecure}"


def test_a_target_set_in_the_program_wins():
    program = """
        import jax
        jax.config.update("jax_backend_target", "grpc://unix:/Other")
        import everstep.jax_plugin
        everstep.jax_plugin.initialize()
        from jax._src import xla_bridge
        print(xla_bridge.BACKEND_TARGET.value)
    """
    assert _run(program, JAX_PLATFORMS="proxy", JAX_BACKEND_TARGET="grpc://unix:/first") == "grpc://unix:/Other"


def test_jax_is_supported():
    assert (0, 10, 2) <= jax.__version_info__[:3] < (0, 13)
