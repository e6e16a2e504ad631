"""Tidemill: a copy of the app without the example, with one job type more, deployed to an embedded AWS of its own."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from demo.observe import all_jobs
from tests.benchmarks.peers import cpu, installed
from tests.benchmarks.peers.journal import Journal
from tests.benchmarks.peers.processes import child_environment
from tests.benchmarks.peers.system import WORKERS, Running, System
from tests.e2e.copied_app import copy_app
from tidemill.domain.states import State
from tidemill.local import environment, processes
from tidemill.local.deployed_app import App
from tidemill.local.wait import wait_until
from tidemill.names import Output
from tools.paths import ROOT

_HERE: Final = Path(__file__).parent
#: By the file here: where it goes.
_FILES: Final = {"tidemill_jobs/bench.py": "functions/jobs/bench.py", "work.py": "shared/bench_work/__init__.py"}
_DEPLOY: Final = """
import json, sys
from tidemill.local.lifecycle import deployed
with deployed() as app:
    print(json.dumps([str(app.folder), app.endpoint, dict(app.outputs)]), flush=True)
    sys.stdin.read()
"""
_KILL_PATIENCE_SECONDS: Final = 30
#: The function of the default lane.
_WORK: Final = "work"


class LambdaWorkers:
    """Implements `system.Workers`. The emulator starts and replaces the processes of the functions."""

    def __init__(self, app: App, journal: Journal) -> None:
        self._app = app
        self._journal = journal

    def start(self) -> None:
        """The first job starts them."""

    def stop(self) -> None:
        """They are idle without jobs."""

    def pids(self) -> list[int]:
        """Return the processes of all functions: the publisher works for the jobs too."""
        return list(processes.workers(self._app.folder))

    def kill_one(self) -> None:
        """The worker that began the last job: another one may be starting still."""

        def at_work() -> int:
            self._journal.read()
            return self._journal.last_begun_by if self._journal.last_begun_by in self.pids() else 0

        os.kill(wait_until(at_work, _KILL_PATIENCE_SECONDS, "a worker to begin a job"), signal.SIGKILL)


@contextmanager
def _deployed(copy: Path, log: Path) -> Iterator[App]:
    """The app in the folder `copy`, by the code that is there."""
    with log.open("wb") as errors:
        child = subprocess.Popen(
            [sys.executable, "-c", _DEPLOY],
            cwd=copy,
            env=environment.without_aws(os.environ) | {"PYTHONPATH": str(copy / "shared")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert child.stdout
        line = child.stdout.readline()
        assert line, f"the deployment failed: {log} says why"
        folder, endpoint, outputs = json.loads(line)
        yield App(Path(folder), endpoint, outputs)
    finally:
        child.communicate()


def _start(stack: ExitStack, folder: Path) -> Running:
    copy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-tidemill-")))
    copy_app(copy)
    for source, target in _FILES.items():
        (copy / target).parent.mkdir(exist_ok=True)
        shutil.copyfile(_HERE / source, copy / target)
    app = stack.enter_context(_deployed(copy, folder / "tidemill.log"))
    app.client("lambda").update_event_source_mapping(
        UUID=app.mapping(_WORK), ScalingConfig={"MaximumConcurrency": WORKERS}
    )
    journal = Journal(folder / "tidemill.journal")
    settings = child_environment(journal, BENCH_TABLE=app.outputs[Output.JOBS_TABLE]) | app.root.environment()
    emulator = json.loads((app.folder / "emulator.json").read_text(encoding="utf-8"))["pid"]

    def stored() -> Mapping[int, float]:
        ended = (job for job in all_jobs(app) if job.state is State.SUCCEEDED and job.payload.text and job.finished_at)
        return {
            json.loads(job.payload.text or "")["number"]: job.finished_at.timestamp()
            for job in ended
            if job.finished_at
        }

    return Running(
        workers=LambdaWorkers(app, journal),
        submits="tests.benchmarks.peers.tidemill_submit",
        python=Path(sys.executable),
        environment=settings | {"PYTHONPATH": os.pathsep.join(map(str, (copy / "shared", ROOT)))},
        journal=journal,
        service_seconds=lambda: cpu.own(emulator),
        round_trips=lambda: math.nan,
        stored=stored,
    )


TIDEMILL: Final = System(
    name="Tidemill",
    setting="two workers of a lane of the local stage; visibility timeout 18 s",
    guarantee="at least once; a worker that has lost its job cannot end it; reconcile finds jobs without a message",
    lacks=installed.without_proc,
    start=_start,
)
