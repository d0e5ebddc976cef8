"""Run all benchmarks, one after the other, and write their results to benchmarks/results/.

python benchmarks/run.py
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

for name in ("dispatch", "train_step", "transfers", "snapshots", "checkpoints", "recovery", "scale"):
    subprocess.run([sys.executable, str(pathlib.Path(__file__).with_name(f"{name}.py"))], check=True)
