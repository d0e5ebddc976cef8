"""One pytest process over one of JAX's test files, which can be started again after a test has ended it.

    python session.py TEST_FILE PARTIAL XML TIMEOUT EXPRESSION EVERY

EVERY: only every so-many-th test.
Writes a line to PARTIAL when a test starts and another when it ends. Tests that PARTIAL knows already are not run again. At the end,
everything in PARTIAL becomes XML in JUnit's format: a test that has started and not ended has crashed the process.
"""

from __future__ import annotations

import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import pytest


class Recorder:
    """A pytest plugin that keeps the journal."""

    def __init__(self, journal: pathlib.Path, every: int) -> None:
        self.journal = journal
        self.every = every
        self.known = {entry["test"] for entry in read(journal)}

    def write(self, **entry: Any) -> None:
        with self.journal.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def pytest_sessionstart(self) -> None:
        from jax._src import test_util  # not before pytest has taken over standard output: it remembers what that is

        test_util.request_cpu_devices = lambda devices: None  # plain CPU JAX gets as many as it was given, as Everstep does

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items[:: self.every] if _id(item.nodeid) not in self.known]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.write(test=_id(item.nodeid), outcome="crashed", detail="the process ended in this test")
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            detail = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
            self.write(test=_id(report.nodeid), outcome=report.outcome, detail=detail[-4000:], seconds=report.duration)


def read(journal: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def write_junit(journal: pathlib.Path, path: pathlib.Path) -> None:
    """What the journal says last of each test, as JUnit."""
    suite = ElementTree.Element("testsuite", name=path.stem)
    for entry in {entry["test"]: entry for entry in read(journal)}.values():
        group, _, name = entry["test"].rpartition("::")
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=name, time=f"{entry.get('seconds', 0):.3f}")
        if entry["outcome"] == "skipped":
            ElementTree.SubElement(case, "skipped", message=_printable(entry["detail"]))
        elif entry["outcome"] != "passed":
            element = ElementTree.SubElement(case, "failure" if entry["outcome"] == "failed" else "error")
            element.text = _printable(entry["detail"])
    ElementTree.ElementTree(suite).write(path, encoding="unicode", xml_declaration=True)


def _id(nodeid: str) -> str:
    return nodeid.partition("::")[2]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def main() -> int:
    file, journal, xml, timeout, select, every = sys.argv[1:7]
    options = f"-q --tb=short -p no:cacheprovider --timeout={timeout} --timeout-method=thread -o addopts= -c /dev/null --capture=no".split()
    recorder = Recorder(pathlib.Path(journal), int(every))
    code = pytest.main([file, *options, "-k", select, "--rootdir", str(pathlib.Path(file).parent)], [recorder])
    if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        write_junit(pathlib.Path(journal), pathlib.Path(xml))
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
