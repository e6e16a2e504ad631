"""Control: find, cancel and retry a caller's own job. The documents decide, however many ask at once."""

from contextlib import suppress
from typing import Final

from tidemill.application.ports import Clock, ControlStore, NewToken
from tidemill.domain.errors import NotAllowedNowError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State

#: Every id is a UUID; a store may refuse to be asked for what is far longer.
_LONGEST_ID: Final = 36


class Control:
    """The use case. Another tenant's job, a missing one and one past its time are all the same: None."""

    def __init__(self, *, store: ControlStore, clock: Clock, new_token: NewToken) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token

    def find(self, tenant: str, job_id: str) -> Job | None:
        job = self._store.get(tenant, job_id) if len(job_id) <= _LONGEST_ID else None
        return None if job is None or job.expired(self._clock()) else job

    def cancel(self, tenant: str, job_id: str) -> Job | None:
        """End the job at once, or ask it to end if it runs; as it then is. One that is cancelled already stays so.

        Raises `NotAllowedNowError` for one that succeeded.
        """
        job = self.find(tenant, job_id)
        if job is None or job.state is State.CANCELLED:
            return job
        try:
            return self._store.cancel(job, now=self._clock())
        except WriteRefusedError as refused:
            if refused.current is None:
                return None
            raise NotAllowedNowError("cancelled", refused.current) from refused

    def retry(self, tenant: str, job_id: str, *, by: str) -> Job | None:
        """Give a dead job another life; as it then is. `by` is for the audit entry.

        Raises `NotAllowedNowError` for one that is not dead, even if another redrive made it so a moment ago.
        """
        while (job := self.find(tenant, job_id)) is not None and job.state is State.DEAD:
            # Refused, it has moved since it was read. It may have died again: then that death is redriven.
            with suppress(WriteRefusedError):
                return self._store.redrive(job, token=self._new_token(), now=self._clock(), by=by)
        if job is None:
            return None
        raise NotAllowedNowError("retried", job)
