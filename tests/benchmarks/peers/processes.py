"""The worker processes of a system that has no others: started, killed and replaced here, by their process ids."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.benchmarks.peers.journal import Journal
from tests.benchmarks.peers.system import WORKERS
from tests.benchmarks.peers.work import JOURNAL
from tidemill.local import environment
from tidemill.local.wait import wait_until
from tools.paths import ROOT

_START_PATIENCE_SECONDS: Final = 60
#: No job is left then, and Celery would wait for the end of a receive.
_STOP_PATIENCE_SECONDS: Final = 3
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "TMPDIR")


class WorkerProcesses:
    """Implements `system.Workers`. Each process notes `ready` when it takes jobs."""

    def __init__(
        self,
        command: Callable[[int], Sequence[str | Path]],
        *,
        environment: Mapping[str, str],
        journal: Journal,
        log: Path,
    ) -> None:
        """`command` is that of the worker with this index."""
        self._command = command
        self._environment = environment
        self._journal = journal
        self._log = log
        self._running: list[subprocess.Popen[bytes]] = []
        self._killed = 0

    def start(self) -> None:
        before = self._journal.read().count("ready")
        self._running = [self._start(index) for index in range(WORKERS)]
        wait_until(
            lambda: self._journal.read().count("ready") - before >= WORKERS,
            _START_PATIENCE_SECONDS,
            f"the workers to be ready, see {self._log}",
        )

    def stop(self) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            try:
                process.wait(_STOP_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running = []

    def pids(self) -> list[int]:
        return [process.pid for process in self._running]

    def kill_one(self) -> None:
        index = self._killed % WORKERS
        self._killed += 1
        os.kill(self._running[index].pid, signal.SIGKILL)
        self._running[index].wait()
        self._running[index] = self._start(index)

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(word) for word in self._command(index)],
                cwd=ROOT,
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


def child_environment(journal: Journal, **settings: str) -> dict[str, str]:
    """For a process with the packages of the peers, and without the settings and AWS profiles of this one."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    quiet = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "NO_PROXY": environment.LOOPBACK}
    return kept | quiet | {JOURNAL: str(journal.path)} | settings
