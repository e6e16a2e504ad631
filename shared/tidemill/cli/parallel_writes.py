"""One write for each of many jobs, several at a time, counted as they go."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tidemill.cli.formatting import count
from tidemill.domain.job import Job

#: Jobs at a time. Each is one write to an item of its own, so this bounds the time and not the load.
_AT_ONCE: Final = 8


class AtOnce:
    """Writes each of `jobs` with `write`, which is False where somebody else moved the job first.

    What it has counted is right whenever it stops, also by Ctrl-C or an error.
    """

    def __init__(self, write: Callable[[Job], bool], jobs: Sequence[Job], *, done: str) -> None:
        self._write = write
        self._jobs = jobs
        self._done = done
        self._lock = threading.Lock()
        self.written = 0
        self.moved_first = 0

    @property
    def summary(self) -> str:
        text = f"{self._done} {self.written} of {count(len(self._jobs), 'job')}."
        if self.moved_first:
            text += f" Somebody else moved {self.moved_first} first."
        return text

    def run(self, advance: Callable[[], object]) -> None:
        """Call `advance` for each job that is done with. Returns or raises once no write is under way any more."""
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            for _ in pool.map(self._one, self._jobs):
                advance()
        finally:
            pool.shutdown(cancel_futures=True)

    def _one(self, job: Job) -> None:
        written = self._write(job)
        with self._lock:
            if written:
                self.written += 1
            else:
                self.moved_first += 1
