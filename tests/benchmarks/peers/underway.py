"""A system that runs, with the producer of its jobs."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.load import Due, Load, at_once, evenly
from tests.benchmarks.peers.system import Running
from tools.paths import ROOT

#: From the making of a plan to its first job.
_LEAD_SECONDS = 0.5


class Producer:
    """A process that submits one plan after another."""

    def __init__(self, running: Running, log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [str(running.python), "-m", "tests.benchmarks.peers.producer", running.submits],
                cwd=ROOT,
                env=dict(running.environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def submit(self, plan: Sequence[Due]) -> tuple[Load, float]:
        """What the system accepted, and the CPU seconds of the producer, when it has submitted all."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([(due.number, due.at) for due in plan]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the producer has ended; its log says why"
        answer: dict[str, Any] = json.loads(line)
        accepted = {int(number): at for number, at in answer["accepted"].items()}
        return Load(accepted, answer["error"]), answer["cpu"]

    def stop(self) -> None:
        self._process.communicate()


class Underway:
    def __init__(self, stack: ExitStack, running: Running, log: Path) -> None:
        self.running = running
        self.producer = Producer(running, log)
        stack.callback(self.producer.stop)
        self._next = 1

    def evenly(self, *, rate: float, seconds: float) -> list[Due]:
        return self._planned(lambda first, start: evenly(first, rate=rate, seconds=seconds, start=start))

    def at_once(self, jobs: int) -> list[Due]:
        return self._planned(lambda first, start: at_once(first, jobs=jobs, start=start))

    def _planned(self, plan: Callable[[int, float], list[Due]]) -> list[Due]:
        """With numbers that no job has had."""
        made = plan(self._next, time.time() + _LEAD_SECONDS)
        self._next += len(made)
        return made
