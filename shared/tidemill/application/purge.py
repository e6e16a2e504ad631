"""Purge: delete finished jobs before they expire, on an operator's request."""

from collections.abc import Iterator

from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import Clock, PurgeStore, Unreadable, ignore_unreadable
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job


class Purger:
    """Each method may be repeated, and two callers may work at once."""

    def __init__(self, *, store: PurgeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def plan(self, wanted: JobFilter, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """The finished jobs that match, by a scan of the whole table. Changes nothing."""
        ended = self._store.ended(before=self._clock(), unreadable=unreadable)
        return (job for job in ended if job.state.terminal and job in wanted)

    def purge(self, job: Job) -> bool:
        """False when the job has changed since it was read: redriven, or redriven and ended again.

        Publish deletes its payload when the stream reports the deletion of the document.
        """
        try:
            self._store.forget(job)
        except WriteRefusedError:
            return False
        if job.group is not None:
            # The job may have been the dead job that blocked its group.
            self._store.advance(job.tenant, job.group, now=self._clock())
        return True
