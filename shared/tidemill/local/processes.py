"""Finds and ends the processes of one instance by their command lines, since a process id may have been reused."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidemill.local import launcher
from tidemill.local.wait import WaitError, wait_until

PROC: Final = Path("/proc")
#: The module that watches the alarms of an instance. It is named here, since it imports this module.
WATCH: Final = "tidemill.local.alarm_watch"
SIGTERM_PATIENCE_SECONDS: Final = 2.0
SIGKILL_PATIENCE_SECONDS: Final = 5.0


def emulators(folder: Path) -> list[int]:
    """Process ids of the launchers of the instance in `folder`: one or none."""
    return [pid for pid, command in _running() if f"{launcher.__file__} {folder} " in f"{command} "]


def workers(folder: Path, function_name: str = "") -> dict[int, Path]:
    """Process ids and folders of the Lambda workers of an instance. `function_name` selects those of one function.

    The emulator gives each worker a folder, named after the function and eight random characters.
    """
    start = str(folder / "tmp" / f"ministack-lambda-{function_name}")
    found = {}
    for pid, command in _running():
        _, is_worker, rest = command.partition(start)
        drawn, is_script, _ = rest.partition("/_worker.py")
        if is_worker and is_script and (not function_name or len(drawn) == len("-01234567")):
            found[pid] = Path(start + drawn)
    return found


def watches(folder: Path) -> list[int]:
    """Process ids of the watch of the alarms of an instance: one or none."""
    return [pid for pid, command in _running() if f"-m {WATCH} {folder} " in f"{command} "]


def end_watch(folder: Path) -> None:
    """End the watch of alarms of an instance. Raises WaitError."""

    def all_ended() -> bool:
        _signal(found := watches(folder), signal.SIGKILL)
        return not found

    wait_until(all_ended, SIGKILL_PATIENCE_SECONDS, f"the watch of the alarms of {folder} to end")


def end(folder: Path) -> None:
    """End the emulator of an instance, its workers, also orphaned ones, and its watch of alarms. Raises WaitError."""
    end_watch(folder)
    _signal(emulators(folder), signal.SIGTERM)
    with contextlib.suppress(WaitError):
        wait_until(lambda: not emulators(folder), SIGTERM_PATIENCE_SECONDS, "the emulator to end")

    def all_ended() -> bool:
        left = [*emulators(folder), *workers(folder)]
        _signal(left, signal.SIGKILL)
        return not left

    wait_until(all_ended, SIGKILL_PATIENCE_SECONDS, f"the processes of {folder} to end")


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _running() -> Iterator[tuple[int, str]]:
    """Process id and command line of each running process. Small Linux images lack `ps`; macOS lacks `/proc`."""
    if (PROC / "self" / "cmdline").exists():
        for folder in PROC.glob("[0-9]*"):
            with contextlib.suppress(OSError):
                yield int(folder.name), (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return
    listing = subprocess.run(["/bin/ps", "-axwwo", "pid=,command="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        pid, _, command = line.strip().partition(" ")
        yield int(pid), command.strip()
