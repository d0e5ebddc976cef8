"""JAX's own tests on Everstep, beside the same tests on plain CPU JAX.

    python tools/jax_tests/run.py --source JAX_CHECKOUT [--files array_test pjit_test ...] [--select EXPRESSION] [--cases N]

JAX_CHECKOUT is a clone of JAX, with a work tree or without (then the tests are taken from the tag of the installed version, or from the
newest commit of the same minor version, or from --revision). The environment variable JAX_SOURCE does the same. Both sides have the same
number of devices, 4 unless --devices says otherwise; on Everstep they are one slice with one worker. (Some tests skip themselves without
8.) Prints passed, failed and skipped by file, and every test that passes on CPU and does not on Everstep; those in local_buffers.txt need
the arrays' memory in their own process and are expected. Exits with 1 if there are others.

Results are kept (--results DIRECTORY) and a side that has been run is not run again, unless with --again.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

import checkout
import reading
import running

HERE = pathlib.Path(__file__).parent
FILES = [
    "array_test",
    "pjit_test",
    "shard_map_test",
    "lax_test",
    "api_test",
    "python_callback_test",
    "memories_test",
    "multi_device_test",
    "random_test",
    "linalg_test",
    "layout_test",
    "debugging_primitives_test",
    "string_array_test",
    "aot_test",
    "jaxpr_effects_test",
    "mutable_array_test",
    "pmap_test",
]
SIDES = ["cpu", "everstep"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=os.environ.get("JAX_SOURCE"), help="a clone of JAX")
    parser.add_argument("--revision", help="of the clone; by default the tag of the installed version")
    parser.add_argument("--files", nargs="+", default=FILES, metavar="FILE", help="test files without .py")
    parser.add_argument("--select", default="", metavar="EXPRESSION", help="only tests that match, as for pytest -k")
    parser.add_argument("--cases", type=int, default=3, help="how many of each generated kind of test")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth test of each file: a sample in less time")
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--sides", nargs="+", default=SIDES, choices=SIDES)
    parser.add_argument("--jobs", type=int, default=2, help="test processes at once")
    parser.add_argument("--results", type=pathlib.Path, default=HERE / "results", help="directory for JUnit files and logs")
    parser.add_argument("--again", action="store_true", help="run what there are results of, too")
    options = parser.parse_args()

    tests = checkout.find(options.source, options.revision, options.results)
    limits = options.select, options.cases, options.devices, options.every
    plan = [
        running.Job(side, file, tests / f"{file}.py", options.results / side, *limits) for file in options.files for side in options.sides
    ]
    running.run_all([job for job in plan if options.again or not job.is_done()], options.jobs)
    results = {side: {file: reading.read(options.results / side / f"{file}.xml") for file in options.files} for side in SIDES}
    allowed = reading.read_allowed(HERE / "local_buffers.txt")
    print(reading.table(results))
    return reading.tell_differences(results, allowed)


if __name__ == "__main__":
    sys.exit(main())
