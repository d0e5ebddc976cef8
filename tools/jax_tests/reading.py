"""Reads results of both sides and tells where they differ."""

from __future__ import annotations

import collections
import fnmatch
import pathlib
import xml.etree.ElementTree as ElementTree

Outcomes = dict[str, str]  # test: "passed", "failed", "crashed" or "skipped"
Results = dict[str, dict[str, Outcomes | None]]  # side, file


def read(path: pathlib.Path) -> Outcomes | None:
    """The tests of a JUnit file, None if there is none."""
    if not path.exists():
        return None
    outcomes = {}
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "crashed" if "error" in kinds else "failed" if "failure" in kinds else "skipped" if "skipped" in kinds else "passed"
        outcomes[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return outcomes


def read_allowed(path: pathlib.Path) -> dict[str, str]:
    """Patterns of tests that may fail, "FILE::CLASS::TEST", and the reason: the comment line above them."""
    allowed, reason = {}, ""
    for line in filter(None, map(str.strip, path.read_text().splitlines())):
        if line.startswith("#"):
            reason = line.lstrip("# ")
        else:
            allowed[line] = reason
    return allowed


def table(results: Results) -> str:
    """Passed, failed and skipped on both sides, by file."""
    lines = [f"{'':28}  {'plain CPU JAX':^26}  {'Everstep':^26}", f"{'file':28}" + f"  {'passed':>8} {'failed':>8} {'skipped':>8}" * 2]
    totals: dict[str, collections.Counter[str]] = {side: collections.Counter() for side in results}
    for file in results["cpu"]:
        cells = []
        for side, files in results.items():
            count = collections.Counter((files[file] or {}).values())
            totals[side] += count
            cells.append(_cell(count) if files[file] is not None else f"  {'not run':>26}")
        lines.append(f"{file:28}" + "".join(cells))
    return "\n".join([*lines, f"{'all':28}" + "".join(_cell(totals[side]) for side in results)])


def _cell(count: collections.Counter[str]) -> str:
    return f"  {count['passed']:8} {count['failed'] + count['crashed']:8} {count['skipped']:8}"


def tell_differences(results: Results, allowed: dict[str, str]) -> int:
    """Print the tests that pass on CPU and not on Everstep, or fail only here; 1 if some of them are not allowed to, else 0."""
    expected, unexpected, better = [], [], 0
    for file, outcomes in results["cpu"].items():
        ours = results["everstep"][file]
        if outcomes is None or ours is None:
            continue
        for test, outcome in outcomes.items():
            own = ours.get(test, "not collected")
            name = f"{file}::{test}"
            better += outcome in ("failed", "crashed") and own == "passed"
            if (outcome == "passed" and own != "passed") or (outcome == "skipped" and own in ("failed", "crashed")):
                reason = next((why for pattern, why in allowed.items() if fnmatch.fnmatchcase(name, pattern)), None)
                (unexpected if reason is None else expected).append((own, name, reason))
    print(f"\n{better} tests fail on CPU and pass here; {len(expected)} fail here for a known reason.")
    print(f"{len(unexpected)} others pass (or skip themselves) on CPU and not here:")
    for own, name, _ in unexpected:
        print(f"  {own:13}  {name}")
    for reason in dict.fromkeys(reason for _, _, reason in expected):
        print(f"\nexpected: {reason}")
        for own, name, why in expected:
            if why == reason:
                print(f"  {own:13}  {name}")
    return 1 if unexpected else 0
