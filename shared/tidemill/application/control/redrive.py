"""Redrive: requeue dead jobs with a fresh set of attempts."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import Clock, NewToken, Payloads, RedriveStore, Unreadable, ignore_unreadable
from tidemill.application.submission.unnamed_payloads import delete_unnamed
from tidemill.domain.errors import TidemillError, TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.job_parts import StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import State

#: Gets a job that was not redriven, as it was read and as it is now; None if it is gone.
Refused = Callable[[Job, Job | None], None]


class Redriver:
    """Each method may be repeated, and two callers may work at once: the job documents decide.

    It reads and writes documents only. The sweep of reconcile deletes the DLQ messages of jobs that are no longer dead.
    """

    def __init__(self, *, store: RedriveStore, clock: Clock, new_token: NewToken) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token

    def dead_jobs(
        self, wanted: JobFilter, *, unreadable: Unreadable = ignore_unreadable, began: datetime | None = None
    ) -> Iterator[Job]:
        """The dead jobs that match, the earliest death first, without the expired ones. Changes nothing.

        It holds some hundred jobs at a time. Without the jobs that were redriven since `began` and have died again: a
        redrive that goes through these jobs meets them at its end, and must not redrive them for ever.
        """
        now = self._clock()
        for job in self._dead(wanted, unreadable):
            again = began and job.redrives and job.redrives[-1].at >= began
            if not again and not job.lifetime.over(now):
                yield job

    def _dead(self, wanted: JobFilter, unreadable: Unreadable) -> Iterable[Job]:
        if not wanted.ids or wanted.tenant is None:
            return self._store.dead(wanted, unreadable=unreadable)
        found = self._store.get_many([(wanted.tenant, job_id) for job_id in wanted.ids], unreadable=unreadable)
        dead = (job for job in found if job.state is State.DEAD and job in wanted)
        return sorted(dead, key=lambda job: (job.finished_at or job.created_at, job.id))

    def redrive(self, job: Job, *, by: str, reason: str = "", refused: Refused = lambda _job, _current: None) -> bool:
        """False when the job has changed since it was read, for example by another redrive. Then calls `refused`."""
        return self._redrive(job, by=by, reason=reason, refused=refused)

    def redrive_with(
        self,
        job: Job,
        payload: str,
        payloads: Payloads,
        *,
        by: str,
        reason: str = "",
        refused: Refused = lambda _job, _current: None,
    ) -> bool:
        """Redrive with another payload: JSON in ASCII, which the caller has compared with the model of the type.

        The idempotency key still stands for the submission, so a replay of that finds this job.
        """
        stored = payloads.put_away(replace(job, payload=StoredPayload(text=payload)), now=self._clock())
        edited = replace(job, payload=stored.payload)
        try:
            if self._redrive(edited, by=by, reason=reason, refused=refused, edited=True):
                return True
        except TransactionConflictError:
            # The first send may have been applied, and a run may have begun: the document decides.
            with suppress(TidemillError):
                for current in self._store.get_many([(job.tenant, job.id)]):
                    delete_unnamed(stored, current, payloads)
            raise
        delete_unnamed(stored, None, payloads)
        return False

    def _redrive(self, job: Job, *, by: str, reason: str, refused: Refused, edited: bool = False) -> bool:
        try:
            self._store.redrive(job, token=self._new_token(), now=self._clock(), by=by, reason=reason, edited=edited)
        except WriteRefusedError as error:
            refused(job, error.current)
            return False
        return True
