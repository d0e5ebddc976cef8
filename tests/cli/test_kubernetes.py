"""`everstep kubernetes render`: what it writes, and that the commands in it work together. No cluster is there to run them on."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import stat
import subprocess
import sys
from typing import Any

import pytest
import yaml
from processes import everstep

_COMMAND = ("--", sys.executable, "-c", "import jax; print(jax.devices())")


def commands(jobset: dict[str, Any]) -> list[list[str]]:
    """Of the head's container, a slice's, a spare's."""
    pods = [job["template"]["spec"]["template"]["spec"] for job in jobset["spec"]["replicatedJobs"]]
    return [container["command"] for pod in pods for container in pod["containers"]]


def test_the_commands_in_the_manifests_work_together(tmp_path: pathlib.Path) -> None:
    """Run as they are, but for what Kubernetes fills in or provides: names of hosts, the index of a slice, where the secret is mounted."""
    options = ("--image", "image", "--slices", "2", "--devices-per-worker", "2", "--output", os.fspath(tmp_path))
    result = everstep("kubernetes", "render", *options, *_COMMAND)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    secret, jobset = (yaml.safe_load((tmp_path / f"{name}.yaml").read_text()) for name in ("secret", "jobset"))
    assert stat.S_IMODE((tmp_path / "secret.yaml").stat().st_mode) == 0o600
    for key, token in secret["stringData"].items():
        (tmp_path / key).write_text(token)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])

    def start(command: list[str], token: str, index: int = 0) -> subprocess.Popen[str]:
        filled = {
            "/var/run/secrets/everstep/token": os.fspath(tmp_path / token),
            "everstep-head-0-0.everstep": "127.0.0.1",
            "$(POD_IP)": "127.0.0.1",
            ":7000": f":{port}",
            "$(SLICE)": str(index),
        }
        line = list(command)
        for old, new in filled.items():
            line = [argument.replace(old, new) for argument in line]
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-m", *line], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)

    head_command, worker_command = commands(jobset)
    head = start(head_command, "head")
    assert head.stderr is not None
    assert f"waiting for workers at 127.0.0.1:{port}" in head.stderr.readline()
    workers = [start(worker_command, "worker", index) for index in range(2)]
    output, errors = head.communicate(timeout=90)
    assert (head.returncode, output.count("CpuDevice")) == (0, 4), errors
    for worker in workers:
        with contextlib.closing(worker.stdout), contextlib.closing(worker.stderr):  # type: ignore[type-var]
            assert worker.wait(20) == 0


def test_to_standard_output() -> None:
    result = everstep("kubernetes", "render", "--image", "image", "--spares", "2", "--resources", "cpu=4,nvidia.com/gpu=8", *_COMMAND)
    secret, jobset = yaml.safe_load_all(result.stdout)
    assert (secret["kind"], jobset["kind"], len(commands(jobset))) == ("Secret", "JobSet", 3)
    assert "nvidia.com/gpu: '8'" in result.stdout
    assert "everstep1." not in yaml.safe_dump(jobset)  # no token


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--image", "image"), "the command to run is missing"),
        (_COMMAND, "the following arguments are required: --image"),
        (("--image", "image", "--name", "Too_Big", *_COMMAND), "'Too_Big' is not a name for Kubernetes"),
        (("--image", "image", "--resources", "gpu", *_COMMAND), "'gpu' is not NAME=AMOUNT,..., such as cpu=4,nvidia.com/gpu=8"),
    ],
    ids=["command", "image", "name", "resources"],
)
def test_asked_for_wrongly(arguments: tuple[str, ...], message: str) -> None:
    result = everstep("kubernetes", "render", *arguments)
    assert result.returncode == 2
    assert message in result.stderr
