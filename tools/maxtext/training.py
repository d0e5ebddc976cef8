"""One run of MaxText on Everstep: starts it, reads what it logs, kills a worker, and asks the head what happened."""

from __future__ import annotations

import collections
import dataclasses
import os
import pathlib
import re
import secrets
import signal
import subprocess
import sys
import threading
import time

from everstep.cli.rundirectory import root
from everstep.control import client
from everstep.observe.events import Event, Kind
from everstep.wire.errors import Code, Failure

VICTIM = "s1w0"
TIMEOUT = 600  # seconds for one run
HOLD_TIMEOUT = 10
ENDLESS = 10_000  # steps of a run that is ended when it has shown what it should
MORE_STEPS = 5  # with fewer slices, and again after it has grown

_STEP = re.compile(r"completed step: (?P<step>\d+), .*live slice count: (?P<slices>\d+), .*total_weights: \d+, (?P<loss>loss: .*)")
_ATTEMPT = re.compile(r"Elastic attempt (\d+)")
_EXCEPTION = "Elastic event detected"

_MODEL = """
    enable_single_controller=true elastic_enabled=true elastic_timeout_seconds=120 elastic_max_retries=10
    dataset_type=synthetic packing=false per_device_batch_size=1 max_target_length=128 learning_rate_schedule_steps=100
    base_emb_dim=128 base_num_decoder_layers=2 base_num_query_heads=4 base_num_kv_heads=4 base_mlp_dim=256 head_dim=32 vocab_size=1024
    attention=dot_product enable_checkpointing=true async_checkpointing=true checkpoint_period=5
    enable_goodput_recording=false enable_checkpoint_cloud_logger=false log_config=false jax_cache_dir=
"""


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What is done to a run. minimum_slices: with fewer it waits; -1 for all of them.

    grows: the successor is held until some steps have been done without it, and the run is ended some steps after it is back.
    """

    name: str
    kill_after: int | None = None
    spares: int = 0
    minimum_slices: int = -1
    grows: bool = False


@dataclasses.dataclass
class Step:
    """A step that MaxText says it has completed. time: when it said so, seconds since 1970. loss: all that it prints of it."""

    attempt: int
    number: int
    slices: int
    loss: str
    time: float


class Run:
    """After `execute`: the steps and the attempts with their times, and the head's events."""

    def __init__(self, scenario: Scenario, steps: int, directory: pathlib.Path) -> None:
        self.scenario = scenario
        self.total = ENDLESS if scenario.grows else steps
        self.steps: list[Step] = []
        self.attempts: dict[int, float] = {}
        self.exceptions: list[float] = []
        self.events: list[Event] = []
        self.exit_code: int | None = None
        self.log = directory / f"{scenario.name.replace(' ', '-').replace(',', '')}.log"
        self._name = f"maxtext-{secrets.token_hex(3)}"
        self._checkpoints = directory / "output"
        self._target = f"unix:{root() / self._name / 'head.sock'}"
        self._process: subprocess.Popen[str] | None = None
        self._killed = False
        self._held = False

    def execute(self) -> None:
        """Run it to the end."""
        self._process = process = subprocess.Popen(
            self._command(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment(), start_new_session=True
        )
        watchdog = threading.Timer(TIMEOUT, process.terminate)
        watchdog.start()
        try:
            assert process.stdout is not None
            with self.log.open("w") as log:
                for line in process.stdout:
                    log.write(line)
                    self._read(line, time.time())
            self.exit_code = process.wait()
        finally:
            watchdog.cancel()
            if process.poll() is None:
                process.terminate()
                process.wait()

    def _command(self) -> list[str]:
        everstep = ["-m", "everstep", "run", "--name", self._name, "--slices", "2", "--devices-per-worker", "2"]
        everstep += ["--spares", str(self.scenario.spares)]
        settings = [f"run_name={self._name}", f"base_output_directory={self._checkpoints}", f"steps={self.total}"]
        settings += [*_MODEL.split(), f"elastic_min_slice_count={self.scenario.minimum_slices}"]
        return [sys.executable, *everstep, "--", sys.executable, "-m", "maxtext.trainers.pre_train.train", *settings]

    def _environment(self) -> dict[str, str]:
        return os.environ | {"DECOUPLE_GCLOUD": "TRUE", "PATHWAYS_PROXY_CONNECTION_TIMEOUT_SECS": "30", "PYTHONUNBUFFERED": "1"}

    def _read(self, line: str, now: float) -> None:
        if match := _ATTEMPT.search(line):
            self.attempts[int(match[1])] = now
        elif _EXCEPTION in line:
            self.exceptions.append(now)
            if self.scenario.grows and not self._held:
                self._hold()
        elif match := _STEP.search(line):
            self.steps.append(Step(max(self.attempts), int(match["step"]), int(match["slices"]), match["loss"], now))
            self._act()

    def _act(self) -> None:
        """A step is completed."""
        number = self.steps[-1].number
        if number == self.scenario.kill_after and not self._killed:
            self._killed = True
            client.kill(self._target, VICTIM, signal.SIGKILL)
        if self._killed and len(self.attempts) > 1:
            self.events = list(client.events(self._target))
        if self.scenario.grows:
            if self._held and self._most_steps(slices=1, attempt=2) >= MORE_STEPS:
                self._held = False
                client.kill(self._target, VICTIM, signal.SIGCONT)
            if self._most_steps(slices=2, attempt=3) > MORE_STEPS:
                assert self._process is not None
                self._process.terminate()

    def _most_steps(self, slices: int, attempt: int) -> int:
        """So many steps were done by an attempt of this size: the best one from the given one on."""
        counts = collections.Counter(step.attempt for step in self.steps if step.slices == slices and step.attempt >= attempt)
        return max(counts.values(), default=0)

    def _hold(self) -> None:
        """Stop the successor as soon as it is there: it stands for a machine that takes its time."""
        deadline = time.monotonic() + HOLD_TIMEOUT
        while not any(event.kind is Kind.RESTARTING for event in client.events(self._target)) or not self._stop():
            if time.monotonic() > deadline:
                raise TimeoutError("no successor was started")
            time.sleep(0.01)
        self._held = True

    def _stop(self) -> bool:
        try:
            client.kill(self._target, VICTIM, signal.SIGSTOP)
        except Failure as failure:
            if failure.code is Code.FAILED_PRECONDITION:  # there is no process yet
                return False
            raise
        return True
