"""Writes many jobs in parallel, one write per job, and counts the results."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final

from tidemill.cli.formatting import count
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.job import Job

#: The writes of different groups go to items of their own, so this bounds the duration rather than the load.
_THREADS: Final = 8
#: How often a write is tried that conflicts with others to its group. The store pauses and retries within each try.
CONFLICT_TRIES: Final = 5


class ParallelWrites:
    """Calls `write` for each job. `write` returns False if the job changed since it was read.

    The jobs of one chain are written in order. If other writes to their group are always faster, the rest of the chain
    is left, so that a repeat still keeps the order. The counts are exact whenever it stops, also after Ctrl-C or an
    error. `verb` begins the summary, such as "Deleted".
    """

    def __init__(self, write: Callable[[Job], bool], chains: Sequence[Sequence[Job]], *, verb: str) -> None:
        self._write = write
        self._chains = chains
        self._verb = verb
        self._lock = threading.Lock()
        self._stopped = False
        self.written = 0
        self.skipped = 0
        #: Jobs of groups that other writers keep busy.
        self.left: list[Job] = []

    @property
    def summary(self) -> str:
        text = f"{self._verb} {self.written} of {count(sum(map(len, self._chains)), 'job')}."
        if self.skipped:
            text += f" Skipped {count(self.skipped, 'job')} that changed in the meantime."
        if self.left:
            text += f" Left {count(len(self.left), 'job')} of busy groups."
        return text

    @property
    def counts(self) -> dict[str, object]:
        """For a program."""
        return {"written": self.written, "skipped": self.skipped, "left": [job.id for job in self.left]}

    def run(self, advance: Callable[[], object]) -> None:
        """Call `advance` after each job. Return or raise only when all writes in progress have finished."""
        pool = ThreadPoolExecutor(_THREADS)
        try:
            for chain in as_completed([pool.submit(self._write_in_order, jobs) for jobs in self._chains]):
                for _ in range(chain.result()):
                    advance()
        finally:
            self._stopped = True
            pool.shutdown(cancel_futures=True)

    def _write_in_order(self, jobs: Sequence[Job]) -> int:
        """The number of jobs."""
        for index, job in enumerate(jobs):
            if self._stopped:
                break
            try:
                written = self._written(job)
            except TransactionConflictError:
                with self._lock:
                    self.left += jobs[index:]
                break
            with self._lock:
                self.written += written
                self.skipped += not written
        return len(jobs)

    def _written(self, job: Job) -> bool:
        for _ in range(CONFLICT_TRIES - 1):
            try:
                return self._write(job)
            except TransactionConflictError:
                continue
        return self._write(job)


def in_order(jobs: Iterable[Job]) -> list[list[Job]]:
    """The jobs of each group by position, and each job without a group by itself."""
    chains: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        alone = ("job", job.tenant, job.id)
        chains.setdefault(alone if job.group is None else ("group", job.tenant, job.group), []).append(job)
    return [sorted(chain, key=lambda job: job.sequence or 0) for chain in chains.values()]
