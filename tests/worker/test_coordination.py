"""The end of a coordination service does not end who has met there."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import time
from everstep.worker import coordination
service = coordination.Coordination()
address = service.open()
if {immunised}:
    coordination.join(address)
    service.immunise()
agent = coordination.join(address)  # listens last
time.sleep(0.2)  # it begins to listen in a thread of its own, and nothing tells when
service.close()
time.sleep(2)  # so long it would take to hear of the end, and to die of it
print("alive")
"""


@pytest.mark.parametrize("immunised", [True, False])
def test_whoever_listens_last(immunised: bool) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(immunised=immunised)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stdout) == (0, "alive\n"), result.stderr[-2000:]
