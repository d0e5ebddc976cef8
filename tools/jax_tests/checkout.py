"""Finds JAX's tests at the version that is installed."""

from __future__ import annotations

import importlib.metadata
import io
import pathlib
import subprocess
import sys
import tarfile


def find(source: pathlib.Path | None, revision: str | None, directory: pathlib.Path) -> pathlib.Path:
    """The tests/ directory of a JAX source: in its work tree, or taken out of the repository into `directory`.

    Ends the process if there is none.
    """
    version = importlib.metadata.version("jax")
    if source is None:
        sys.exit(
            "JAX's tests are not part of its packages. Get its source and say where it is:\n"
            f"    git clone --depth 1 --branch jax-v{version} https://github.com/jax-ml/jax\n"
            "    make test-jax JAX_SOURCE=jax"
        )
    if revision is None and (source / "tests").is_dir():
        return source / "tests"
    tags = _git(source, "tag", "--list", f"jax-v{version}").decode().split()
    if revision is None and not tags:
        revision = "HEAD"
        print(f"{source} has no tag jax-v{version}: using its newest commit, whose tests may expect another JAX")
    chosen = revision or tags[0]
    commit = _git(source, "rev-parse", f"{chosen}^{{commit}}").decode().strip()
    target = directory / f"jax-{commit[:12]}"
    if not (target / "tests").is_dir():
        with tarfile.open(fileobj=io.BytesIO(_git(source, "archive", commit, "tests"))) as archive:
            archive.extractall(target, filter="data")
    return target / "tests"


def _git(source: pathlib.Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", str(source), *arguments], check=True, capture_output=True).stdout
    except subprocess.CalledProcessError as error:
        sys.exit(f"{source}: {error.stderr.decode().strip()}")
