"""Writes a stream of jobs in parallel, one write per job, and counts the results."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import timedelta
from itertools import islice
from typing import Final

from tidemill.application.groups.group_order import Group, group_of
from tidemill.application.passes.pace import Pace
from tidemill.cli.control.unreadable_jobs import UnreadableJobs
from tidemill.cli.formatting import count
from tidemill.domain.errors import MalformedDocumentError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.system import clock

#: The writes of different groups go to items of their own, so this bounds the duration rather than the load.
_THREADS: Final = 8
#: How many jobs are held at a time. Few enough to hold, and enough for the threads.
BATCH: Final = 400
#: How often a write is tried that conflicts with others to its group. The store pauses and retries within each try.
CONFLICT_TRIES: Final = 5
#: How many of the jobs that were left are named.
_LEFT_NAMED: Final = 100


class ParallelWrites:
    """Calls `write` for each job. `write` returns False if the job changed since it was read.

    The jobs of one group are written one after another, in their order in the stream. If other writes to their group
    are always faster, the rest of the group is left, so that a repeat still keeps the order. The counts are exact
    whenever it stops, also after Ctrl-C or an error. `verb` begins the summary, such as "Deleted".

    `rate` is the most jobs per second. `unreadable` has the jobs of which something could not be read: their documents,
    which the stream leaves out, their payloads, or the next jobs of their groups.
    """

    def __init__(
        self,
        write: Callable[[Job], bool],
        *,
        verb: str,
        rate: int | None = None,
        unreadable: UnreadableJobs | None = None,
    ) -> None:
        self._write = write
        self._verb = verb
        self._batch = min(BATCH, rate or BATCH)
        self._pace = Pace(rate, clock=clock.steady, pause=time.sleep) if rate else None
        self._lock = threading.Lock()
        #: Jobs of the last batch, for which the next one waits.
        self._unpaid = 0
        self._stopped = False
        self._busy: set[Group] = set()
        #: Jobs taken from the stream.
        self.taken = 0
        self.written = 0
        self.skipped = 0
        self.unreadable = UnreadableJobs() if unreadable is None else unreadable
        #: Jobs of groups that other writers keep busy: their number, and the first ones.
        self.left_count = 0
        self.left: list[Job] = []

    @property
    def summary(self) -> str:
        text = f"{self._verb} {self.written} of {count(self.taken, 'job')}."
        if self.skipped:
            text += f" Skipped {count(self.skipped, 'job')} that changed in the meantime."
        if self.unreadable:
            text += f" Left {count(len(self.unreadable), 'job')} that could not be read."
        if self.left_count:
            text += f" Left {count(self.left_count, 'job')} of busy groups."
        return text

    @property
    def numbers(self) -> dict[str, int]:
        return {"written": self.written, "skipped": self.skipped, "left": self.left_count} | self.unreadable.counts

    @property
    def counts(self) -> dict[str, object]:
        """For a program."""
        counts = {"written": self.written, "skipped": self.skipped, "left": [job.id for job in self.left]}
        return counts | self.unreadable.counts

    def run(self, jobs: Iterable[Job], advance: Callable[[], object] = lambda: None) -> None:
        """Call `advance` after each job. Return or raise only when all writes in progress have finished."""
        self._stopped = False
        pool = ThreadPoolExecutor(_THREADS)
        try:
            for batch in _batches(jobs, self._batch):
                if self._pace and self._unpaid:
                    # Here, and not in a thread, so that Ctrl-C ends the wait. A single batch waits for nothing.
                    self._pace.spend(self._unpaid, within=timedelta.max)
                self._unpaid = len(batch)
                self.taken += len(batch)
                for chain in as_completed([pool.submit(self._write_in_order, chain) for chain in _chains(batch)]):
                    for _ in range(chain.result()):
                        advance()
        finally:
            self._stopped = True
            pool.shutdown(cancel_futures=True)

    def _write_in_order(self, jobs: Sequence[Job]) -> int:
        """The number of jobs."""
        group = group_of(jobs[0])
        if group in self._busy:
            self._leave(jobs)
            return len(jobs)
        for index, job in enumerate(jobs):
            if self._stopped:
                break
            try:
                written = self._written(job)
            except TransactionConflictError:
                self._leave(jobs[index:])
                break
            except MalformedDocumentError as error:
                # The other jobs have nothing to do with that.
                self.unreadable.job(job.tenant, job.id, error)
                continue
            with self._lock:
                self.written += written
                self.skipped += not written
        return len(jobs)

    def _leave(self, jobs: Sequence[Job]) -> None:
        with self._lock:
            if group := group_of(jobs[0]):
                self._busy.add(group)
            self.left_count += len(jobs)
            self.left += jobs[: _LEFT_NAMED - len(self.left)]

    def _written(self, job: Job) -> bool:
        for _ in range(CONFLICT_TRIES - 1):
            try:
                return self._write(job)
            except TransactionConflictError:
                continue
        return self._write(job)


def _batches(jobs: Iterable[Job], size: int) -> Iterator[list[Job]]:
    stream = iter(jobs)
    while batch := list(islice(stream, size)):
        yield batch


def _chains(jobs: Iterable[Job]) -> list[list[Job]]:
    """The jobs of each group in the order of the stream, and each job without a group by itself."""
    chains: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        chains.setdefault(group_of(job) or ("", job.tenant, job.id), []).append(job)
    return list(chains.values())
