"""Finds JAX's tests at the version that is installed."""

from __future__ import annotations

import importlib.metadata
import io
import pathlib
import subprocess
import sys
import tarfile

_VERSIONS = 50  # so many changes of jax/version.py are looked at


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
    commit = _git(source, "rev-parse", f"{revision or _closest(source, version)}^{{commit}}").decode().strip()
    target = directory / f"jax-{commit[:12]}"
    if not (target / "tests").is_dir():
        with tarfile.open(fileobj=io.BytesIO(_git(source, "archive", commit, "tests"))) as archive:
            archive.extractall(target, filter="data")
    return target / "tests"


def _closest(source: pathlib.Path, version: str) -> str:
    """The tag of a version; without one, the newest commit that calls itself a version of the same minor; without that, the newest."""
    if _git(source, "tag", "--list", f"jax-v{version}"):
        return f"jax-v{version}"
    minor = ".".join(version.split(".")[:2])
    later = ""
    for commit in _git(source, "log", f"-{_VERSIONS}", "--format=%H", "HEAD", "--", "jax/version.py").decode().split():
        if f'\n_version = "{minor}.'.encode() in _git(source, "show", f"{commit}:jax/version.py"):
            chosen = f"{later}^" if later else "HEAD"
            print(f"{source} has no tag jax-v{version}: using the newest commit of {minor}")
            return chosen
        later = commit
    print(f"{source} has neither jax-v{version} nor another {minor}: using its newest commit, whose tests may expect another JAX")
    return "HEAD"


def _git(source: pathlib.Path, *arguments: str) -> bytes:
    try:
        return subprocess.run(["git", "-C", str(source), *arguments], check=True, capture_output=True).stdout
    except subprocess.CalledProcessError as error:
        sys.exit(f"{source}: {error.stderr.decode().strip()}")
