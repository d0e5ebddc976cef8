"""What the runs have shown: a table of the recoveries, and what is wrong."""

from __future__ import annotations

from training import Run

from everstep.observe.events import Event, Kind

_HEADINGS = ["", "detected", "free", "replaced", "first op.", "exception", "first step", "redone", "full size", "losses"]
_LEGEND = """Times are from the signal on. detected: by the head. free: survivors can run programs. first op.: an operation has ended that
was dispatched after the loss. exception: in the program. first step: that it logs as completed. full size: likewise, on both slices.
redone: steps that were done before, and again after the restore. losses: of all steps, beside those of the undisturbed run, as printed."""


def table(runs: list[Run]) -> str:
    """One line per run in which a worker was killed."""
    undisturbed = next((run for run in runs if run.scenario.kill_after is None), None)
    rows = [_HEADINGS, *(_row(run, undisturbed) for run in runs if run.scenario.kill_after is not None)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_line(row, widths) for row in rows]
    return "\n".join(["", *lines, "", _LEGEND])


def faults(runs: dict[str, Run]) -> list[str]:
    """What is not as it should be, in words."""
    undisturbed = next((run for run in runs.values() if run.scenario.kill_after is None), None)
    found = []
    for name, run in runs.items():
        found += [f"{name}: {fault}" for fault in _faults(run, undisturbed)]
    return found


def _faults(run: Run, undisturbed: Run | None) -> list[str]:
    found = []
    expected_end = 143 if run.scenario.grows else 0  # we end it with SIGTERM
    if run.exit_code != expected_end:
        found.append(f"exit code {run.exit_code}, see {run.log}")
    numbers = {step.number for step in run.steps}
    last = max(numbers, default=-1)
    if numbers != set(range(last + 1)) or (not run.scenario.grows and last != run.total - 1):
        found.append(f"steps are missing: there are {sorted(numbers)}")
    if run.scenario.kill_after is None:
        return found
    if len(run.exceptions) != 1:
        found.append(f"{len(run.exceptions)} exceptions, not one")
    sizes = [next(step.slices for step in run.steps if step.attempt == attempt) for attempt in sorted({step.attempt for step in run.steps})]
    if sizes != ([2, 1, 2] if run.scenario.grows else [2, 2]):
        found.append(f"attempts ran on {sizes} slices")
    if undisturbed is not None and not run.scenario.grows:
        found += _differences(run, undisturbed)
    return found


def _differences(run: Run, undisturbed: Run) -> list[str]:
    expected = {step.number: step.loss for step in undisturbed.steps}
    return [
        f"step {step.number} of attempt {step.attempt}: {step.loss}, undisturbed {expected.get(step.number)}"
        for step in run.steps
        if step.loss != expected.get(step.number)
    ]


def _row(run: Run, undisturbed: Run | None) -> list[str]:
    killed = _event(run, Kind.KILLED)
    recovered = _event(run, Kind.RECOVERED)
    if killed is None:
        return [run.scenario.name, *["-"] * (len(_HEADINGS) - 1)]
    lost = _event(run, Kind.LOST)
    detected = (lost.time - killed.time) * 1e3 if lost else 0.0
    stages = {name: stage["ms"] + detected for name, stage in recovered.details["stages"].items()} if recovered else {}
    after = [step for step in run.steps if step.attempt == 2]
    grown = [step for step in run.steps if step.attempt == 3]
    before = max((step.number for step in run.steps if step.attempt == 1), default=-1)
    if run.scenario.grows or undisturbed is None:
        losses = "-"
    else:
        losses = "different" if _differences(run, undisturbed) else "equal"
    return [
        run.scenario.name,
        f"{detected:.0f} ms",
        *(f"{stages[name]:.0f} ms" if name in stages else "-" for name in ("survivors free", "replaced", "first operation done")),
        f"{run.exceptions[0] - killed.time:.2f} s" if run.exceptions else "-",
        f"{after[0].time - killed.time:.1f} s" if after else "-",
        str(sum(step.number <= before for step in after)),
        f"{grown[0].time - killed.time:.1f} s" if grown else "-",
        losses,
    ]


def _line(row: list[str], widths: list[int]) -> str:
    return "  ".join([row[0].ljust(widths[0]), *(text.rjust(width) for text, width in zip(row[1:], widths[1:], strict=True))])


def _event(run: Run, kind: Kind) -> Event | None:
    return next((event for event in run.events if event.kind is kind), None)
