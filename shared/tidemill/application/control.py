"""Control: find, cancel and redrive a caller's own job. Conditional writes decide between concurrent requests."""

from contextlib import suppress
from typing import Final

from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import Clock, ControlStore, NewToken
from tidemill.domain.errors import NotAllowedNowError, WriteRefusedError
from tidemill.domain.job import OWNER, Job
from tidemill.domain.states import State

#: Every id is a UUID. DynamoDB rejects keys that are far longer.
_LONGEST_ID: Final = 36


class Control:
    """Returns None for a job that is missing, expired or of another tenant, without a difference."""

    def __init__(self, *, store: ControlStore, clock: Clock, new_token: NewToken) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token

    def find(self, tenant: str, job_id: str) -> Job | None:
        job = self._store.get(tenant, job_id) if len(job_id) <= _LONGEST_ID else None
        return None if job is None or job.expired(self._clock()) else job

    def cancel(self, tenant: str, job_id: str, *, by: str = OWNER, reason: str = "") -> Job | None:
        """End the job at once, or request its end if it runs, and return it. A cancelled job stays as it is.

        `by` and `reason` are for the audit entry.

        Raises `NotAllowedNowError` for a job that succeeded.
        """
        job = self.find(tenant, job_id)
        if job is None or job.state is State.CANCELLED:
            return job
        try:
            return self._store.cancel(job, now=self._clock(), by=by, reason=reason)
        except WriteRefusedError as refused:
            if refused.current is None:
                return None
            raise NotAllowedNowError("cancelled", refused.current) from refused

    def cancel_found(self, job: Job, wanted: JobFilter, *, by: str, reason: str = "") -> bool:
        """As `cancel`, for a job that was found by a filter. False if the filter does not match it any more."""
        while job in wanted:
            try:
                self._store.cancel(job, now=self._clock(), by=by, reason=reason, as_read=True)
            except WriteRefusedError as refused:
                current = refused.current
                if current is None or current.created_at != job.created_at:
                    return False
                if (current.state, current.generation) == (job.state, job.generation):
                    return False  # its state permits no cancel
                job = current
            else:
                return True
        return False

    def redrive(self, tenant: str, job_id: str) -> Job | None:
        """Requeue a dead job with a fresh set of attempts, and return it.

        Raises `NotAllowedNowError` for a job that is not dead, also when a concurrent redrive requeued it.
        """
        while (job := self.find(tenant, job_id)) is not None and job.state is State.DEAD:
            # A refused write means that the job changed after the read. If it died again, redrive that death.
            with suppress(WriteRefusedError):
                return self._store.redrive(job, token=self._new_token(), now=self._clock(), by=OWNER)
        if job is None:
            return None
        raise NotAllowedNowError("redriven", job)
