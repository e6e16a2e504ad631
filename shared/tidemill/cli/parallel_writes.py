"""Writes many jobs in parallel, one write per job, and counts the results."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tidemill.cli.formatting import count
from tidemill.domain.job import Job

#: Each write goes to an item of its own, so this bounds the duration rather than the load on one partition.
_THREADS: Final = 8


class ParallelWrites:
    """Calls `write` for each job. `write` returns False if the job changed since it was read.

    The counts are exact whenever it stops, also after Ctrl-C or an error. `verb` begins the summary, such as "Deleted".
    """

    def __init__(self, write: Callable[[Job], bool], jobs: Sequence[Job], *, verb: str) -> None:
        self._write = write
        self._jobs = jobs
        self._verb = verb
        self._lock = threading.Lock()
        self.written = 0
        self.skipped = 0

    @property
    def summary(self) -> str:
        text = f"{self._verb} {self.written} of {count(len(self._jobs), 'job')}."
        if self.skipped:
            text += f" Skipped {count(self.skipped, 'job')} that changed in the meantime."
        return text

    def run(self, advance: Callable[[], object]) -> None:
        """Call `advance` after each job. Return or raise only when all writes in progress have finished."""
        pool = ThreadPoolExecutor(_THREADS)
        try:
            for _ in pool.map(self._write_one, self._jobs):
                advance()
        finally:
            pool.shutdown(cancel_futures=True)

    def _write_one(self, job: Job) -> None:
        written = self._write(job)
        with self._lock:
            if written:
                self.written += 1
            else:
                self.skipped += 1
