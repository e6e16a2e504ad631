"""The work of one job, the same for each system: note the begin, wait, note the end.

Imports the standard library only: it runs in the processes of every system.
"""

import os
import time

#: The variable with the path of the journal, where the job itself does not carry it.
JOURNAL = "BENCH_JOURNAL"


def work(number: int, milliseconds: float, journal: str = "") -> None:
    note("begin", number, journal)
    time.sleep(milliseconds / 1000)
    note("end", number, journal)


def note(what: str, number: int = 0, journal: str = "") -> None:
    """One line of the journal, in one write, so that lines of different processes do not mix."""
    line = f"{what} {number} {time.time():.6f} {os.getpid()}\n"
    descriptor = os.open(journal or os.environ[JOURNAL], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
