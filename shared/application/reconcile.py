"""Reconcile: find live jobs whose message was lost, and have each dispatched once more."""

from collections.abc import Iterator
from datetime import timedelta

from shared.application.ports import Clock, JobStore
from shared.domain.errors import WriteRefusedError
from shared.domain.job import Job


class Reconciler:
    """The use case. Harmless at any time: a job that is only late gets a second message, and the claim stands that.

    `limit` is how long overdue a job must be, and how long it is left alone after a nudge. Choose it longer than the
    lanes' backlog, or it nudges what is on its way.
    """

    def __init__(self, *, store: JobStore, clock: Clock, limit: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._limit = limit

    def overdue(self) -> Iterator[Job]:
        """The jobs that a nudge would be for. Changes nothing."""
        before = self._clock() - self._limit
        return (job for job in self._store.overdue(before=before) if job.nudged_at is None or job.nudged_at <= before)

    def nudge(self, job: Job) -> bool:
        """False when the job has moved, or somebody else nudged it first."""
        try:
            self._store.nudge(job, now=self._clock(), limit=self._limit)
        except WriteRefusedError:
            return False
        return True
