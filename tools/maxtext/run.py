"""MaxText, as it comes from PyPI, trains on Everstep while a worker is killed.

    make test-maxtext                 # in an environment of its own, made from python3.12 (MAXTEXT_PYTHON=...)
    python tools/maxtext/run.py [--scenarios NAME...] [--keep DIRECTORY]

Trains a tiny model on two slices several times: undisturbed; with a worker of slice 1 killed by SIGKILL, after which MaxText waits for all
slices (pause and resume), with and without a spare process; and with a worker killed after which it goes on with what is left, until the
slice is back and is taken in again (replica resize). It stays the same process throughout. After pause and resume, the loss of every step
must be that of the undisturbed run, to all printed digits.

Prints what each recovery took. MaxText looks for slices every 10 s, which can't be set: without a spare it finds none at first and waits.
Exits with 1 if something is not as it should be.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
import tempfile

import report
from training import Run, Scenario

STEPS = 25
KILL_AFTER = 12  # this step
SCENARIOS = [
    Scenario("undisturbed"),
    Scenario("pause and resume", kill_after=KILL_AFTER),
    Scenario("pause and resume, spare", kill_after=KILL_AFTER, spares=1),
    Scenario("replica resize", kill_after=KILL_AFTER, minimum_slices=1, grows=True),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--scenarios", nargs="+", default=names, choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIRECTORY", help="keep logs and checkpoints there")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = options.keep or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="everstep-maxtext-")))
        runs: dict[str, Run] = {}
        for scenario in SCENARIOS:
            if scenario.name in options.scenarios:
                print(f"{scenario.name} ...", flush=True)
                runs[scenario.name] = Run(scenario, STEPS, directory.absolute())
                runs[scenario.name].execute()
        print(report.table(list(runs.values())))
        faults = report.faults(runs)
    for fault in faults:
        print(f"WRONG: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
