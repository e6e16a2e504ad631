"""Debounce: a submission becomes part of the job of its burst that has not begun, or begins the next burst.

An item for each debounce key names the job of its last burst. The job itself says whether it still takes submissions,
and the write to it is conditional on that. So a submission that comes as its job begins makes the next job, and none is
lost.
"""

from typing import Final

from tidemill.application.ports import Clock, DebounceStore, WriterPayloads
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.unnamed_payloads import delete_unnamed, deleted_on_conflict
from tidemill.domain.debounce.debounce import moved, takes_submissions, useful_longer
from tidemill.domain.errors import (
    MalformedDocumentError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.job_parts import StoredPayload
from tidemill.domain.records import replace

#: How often one submission looks at a job that others write at the same time. Each look takes some milliseconds, so the
#: caller has its answer, or is asked to submit again, within a second.
MOST_LOOKS: Final = 12


class Debouncer:
    """For the functions and programs that accept jobs."""

    def __init__(self, *, store: DebounceStore, payloads: WriterPayloads, clock: Clock) -> None:
        self._store = store
        self._payloads = payloads
        self._clock = clock

    def accept(self, job: Job) -> Accepted:
        """Write a prepared job with a burst, or make it part of the job of an earlier submission (`replayed`).

        Raises `TransactionConflictError` or `StoreUnavailableError` if other submissions were faster: submit again.
        Raises `MalformedDocumentError` if the last job cannot be read: it may run, so another one must not begin.
        """
        if job.burst is None or job.due is None:
            raise AssertionError("a debounced job has a burst, and a time")
        # The admission may have made it later than its debounce.
        burst = replace(job.burst, until=max(job.burst.until, job.due), sent_for=job.due, last=job.id)
        job = replace(job, burst=burst)
        for _ in range(MOST_LOOKS):
            last_id = self._store.debounced_job_id(job.tenant, burst.name)
            last = None if last_id is None else self._store.get(job.tenant, last_id)
            begins = last is None or not takes_submissions(last)
            if accepted := self._begun(job, after=last_id) if begins or last is None else self._joined(last, job):
                return accepted
        raise StoreUnavailableError(f"other submissions with this debounce key were faster {MOST_LOOKS} times")

    def _begun(self, job: Job, *, after: str | None) -> Accepted | None:
        """None if another burst has begun since `after` was read."""
        stored = self._payloads.put_away(job)
        try:
            with deleted_on_conflict(stored, self._payloads):
                return Accepted(job=self._store.begin_debounce(stored, after=after), replayed=False)
        except WriteRefusedError:
            delete_unnamed(stored, None, self._payloads)
            return None

    def _joined(self, last: Job, job: Job) -> Accepted | None:
        """None if the last job has changed since it was read.

        Without a change there is nothing to write: the job begins after it was read.
        """
        if last.due is None:
            # No run would begin, so a submission that became part of it would be lost.
            raise MalformedDocumentError(f"the field 'due' of job {last.id} is missing")
        now = self._clock()
        replaces = job.burst is not None and job.burst.replaces
        joined = useful_longer(moved(last, job.run_at, now=now), job, now=now)
        if replaces:
            joined = self._payloads.put_away(replace(joined, payload=StoredPayload(text=job.payload.text)), now=now)
        if joined == last and not replaces:
            return Accepted(job=last, replayed=True)
        try:
            written = self._store.join_debounce(last, joined, by=job.id, now=now, replaces=replaces)
        except (WriteRefusedError, TransactionConflictError):
            # Perhaps the first send was applied, and another submission has moved the job since.
            if replaces:
                delete_unnamed(joined, self._store.get(last.tenant, last.id), self._payloads)
            return None
        # Publish deletes the replaced payload. No run has it, since a claim would have refused the write.
        return Accepted(job=written, replayed=True)
