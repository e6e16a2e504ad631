"""Starts the watch of alarms beside an instance. `processes.end` ends it with the emulator."""

import os
import subprocess
import sys
from pathlib import Path

from tidemill.local import processes
from tidemill.local.alarm_watch.watch import MINUTE_SECONDS

LOG = "alarms.log"


def restart(folder: Path, *, minute_seconds: float = MINUTE_SECONDS) -> None:
    """Watch the alarms of the instance in `folder`, by its current code. What it sees goes to the log `LOG`."""
    processes.end_watch(folder)
    with (folder / LOG).open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", processes.WATCH, str(folder), "--minute-seconds", str(minute_seconds)],
            env=dict(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    process.returncode = 0  # prevents the warning about a process that nothing waits for
