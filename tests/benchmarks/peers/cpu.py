"""CPU time of processes, user and system, from Linux's /proc.

https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
#: The places of fields after the name of the program, which may hold spaces.
_PARENT, _USER, _SYSTEM, _USER_OF_ENDED, _SYSTEM_OF_ENDED = 1, 11, 12, 13, 14


class Meter:
    """Sums the CPU time of processes that come and go. Reads each again at every `sample`."""

    def __init__(self, pids: Callable[[], Iterable[int]]) -> None:
        self._pids = pids
        self._last: dict[int, float] = {}

    def sample(self) -> float:
        """Seconds of all processes seen so far. What a process used after its last sample is lost."""
        for pid in self._pids():
            with contextlib.suppress(OSError):
                self._last[pid] = own(pid)
        return sum(self._last.values())


def own(pid: int) -> float:
    """Seconds of one process. Raises OSError if it has ended."""
    fields = _stat(pid)
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS


def tree(pid: int) -> float:
    """Seconds of a process, of its children, and of those that it had."""
    fields = _stat(pid)
    total = own(pid) + (int(fields[_USER_OF_ENDED]) + int(fields[_SYSTEM_OF_ENDED])) / _TICKS
    for child in children(pid):
        with contextlib.suppress(OSError):
            total += own(child)
    return total


def children(parent: int) -> list[int]:
    found = []
    for folder in _PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(_stat(int(folder.name))[_PARENT]) == parent:
                found.append(int(folder.name))
    return found


def _stat(pid: int) -> list[str]:
    return (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
