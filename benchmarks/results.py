"""Tables for people, result files for later."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import statistics
from collections.abc import Sequence
from typing import Any

_DIRECTORY = pathlib.Path(__file__).parent / "results"


def spread(values: Sequence[float]) -> float:
    """How noisy: the range that holds the middle 80 %, relative to the median."""
    ordered = sorted(values)
    cut = len(ordered) // 10
    inner = ordered[cut : len(ordered) - cut]
    return (inner[-1] - inner[0]) / statistics.median(ordered)


def report(
    name: str, columns: Sequence[str], rows: Sequence[Sequence[str | float]], notes: Sequence[str] = (), samples: Any = None
) -> None:
    """Print a table and write it, with the samples it was made from, to results/NAME-jaxVERSION.json."""
    machine = {
        "cpu": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "jax": importlib.metadata.version("jax"),
        "jaxlib": importlib.metadata.version("jaxlib"),
    }
    text = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(columns), *text]) for i in range(len(columns))]
    print(f"\n{name}: jax {machine['jax']}, {machine['cores']} cores, load {machine['load_average']:.1f}")
    for row in [list(columns), *text]:
        print("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))))
    for note in notes:
        print(note)
    _DIRECTORY.mkdir(exist_ok=True)
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    result = {
        "benchmark": name,
        "when": when,
        "machine": machine,
        "columns": list(columns),
        "rows": rows,
        "notes": list(notes),
        "samples": samples,
    }
    (_DIRECTORY / f"{name}-jax{machine['jax']}.json").write_text(json.dumps(result, indent=1) + "\n")


def _text(cell: str | float) -> str:
    return cell if isinstance(cell, str) else f"{cell:.4g}"
