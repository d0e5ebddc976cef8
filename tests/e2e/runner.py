"""Run the cases of a program file in one process and write down what each returned.

A case is a public function without parameters; it returns a pytree whose leaves are NumPy arrays, or plain
Python values that must compare equal. The same file is run on plain JAX and on Everstep, in processes of their own,
so this file and the programs import nothing but JAX and what a user would.

    python runner.py PROGRAM.py OUTCOMES.pickle [--skip CASE,CASE...] [--timeout SECONDS]
"""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import gc
import importlib.util
import pathlib
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass
class Outcome:
    """What became of a case: its leaves by path, or the error as a traceback; and how long it took in seconds."""

    case: str
    leaves: dict[str, Any]
    error: str | None
    seconds: float


def cases(path: pathlib.Path) -> dict[str, Callable[[], Any]]:
    """The cases of a program file in the order in which they stand there."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", None) == path.stem
    }


def run(name: str, case: Callable[[], Any]) -> Outcome:
    """Run one case; an exception becomes an error in the outcome."""
    import jax
    import numpy as np

    start = time.monotonic()
    leaves: dict[str, Any] = {}
    error = None
    try:
        for path, leaf in jax.tree_util.tree_flatten_with_path(case())[0]:
            leaves[jax.tree_util.keystr(path)] = np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf
    except Exception:
        error = traceback.format_exc()
    return Outcome(name, leaves, error, time.monotonic() - start)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("outcomes", type=pathlib.Path)
    parser.add_argument("--skip", default="", help="cases not to run, separated by commas")
    parser.add_argument("--only", default="", help="run just these")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds after which a case ends the process")
    options = parser.parse_args()
    skip, only = set(options.skip.split(",")), set(options.only.split(",")) - {""}
    with options.outcomes.open("ab") as file:
        for name, case in cases(options.program).items():
            if name in skip or (only and name not in only):
                continue
            faulthandler.dump_traceback_later(options.timeout, exit=True)
            outcome = run(name, case)
            gc.collect()  # handles of this case go now, not in the middle of the next
            faulthandler.cancel_dump_traceback_later()
            print(f"{outcome.seconds:7.2f} s  {name}  {'' if outcome.error is None else outcome.error}", flush=True)
            pickle.dump(dataclasses.asdict(outcome), file)
            file.flush()


if __name__ == "__main__":
    main()
