"""Runs test files of JAX with pytest, each in a process of its own, on plain CPU JAX or under `everstep run`."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Sequence

_TEST_TIMEOUT = 300  # seconds; ends the process
_HERE = pathlib.Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Job:
    """A test file on one side. Leaves FILE.xml (JUnit) and FILE.log in `directory`."""

    side: str
    file: str
    path: pathlib.Path
    directory: pathlib.Path
    select: str
    cases: int
    devices: int
    every: int

    def is_done(self) -> bool:
        return (self.directory / f"{self.file}.xml").exists()

    def run(self) -> None:
        """Run all tests of the file. Tests that end the process count as failed, and those after them are run in another."""
        self.directory.mkdir(parents=True, exist_ok=True)
        xml = self.directory / f"{self.file}.xml"
        partial = xml.with_suffix(".partial")
        for former in (xml, partial):
            former.unlink(missing_ok=True)
        command = [sys.executable, str(_HERE / "session.py"), str(self.path), str(partial), str(xml), str(_TEST_TIMEOUT)]
        command += [self.select, str(self.every)]
        environment = {
            **os.environ,
            "JAX_NUM_GENERATED_CASES": str(self.cases),
            "JAX_SKIP_SLOW_TESTS": "1",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={self.devices}",  # on Everstep: of the program's own cpu backend
        }
        if self.side == "cpu":
            environment["JAX_PLATFORMS"] = "cpu"
        with xml.with_suffix(".log").open("w") as log:
            while not xml.exists():
                before = partial.stat().st_size if partial.exists() else -1
                start = (
                    [] if self.side == "cpu" else [sys.executable, "-m", "everstep", "run", "--devices-per-worker", str(self.devices), "--"]
                )
                subprocess.run([*start, *command], env=environment, stdout=log, stderr=subprocess.STDOUT, check=False)
                if not xml.exists() and before == (partial.stat().st_size if partial.exists() else -1):
                    print(f"{self.side} {self.file}: no test could be run, see {log.name}", flush=True)
                    return


def run_all(jobs: Sequence[Job], at_once: int) -> None:
    """Run jobs, the longest files first."""

    def run(job: Job) -> None:
        start = time.monotonic()
        job.run()
        print(f"{job.side:8}  {job.file:28}  {time.monotonic() - start:6.0f} s", flush=True)

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        list(pool.map(run, sorted(jobs, key=lambda job: -job.path.stat().st_size)))
