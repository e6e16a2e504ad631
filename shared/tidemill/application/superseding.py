"""Supersede: a late correction runs after the effect of the earlier job has been undone, or has not come about.

The document of the earlier job names the job that supersedes it. The worker that claims that one looks after the rest.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from tidemill.application.job_store import SupersedeStore
from tidemill.application.ports import Clock, Payloads
from tidemill.application.submit import Accepted, keyed_job_id, replay
from tidemill.application.undo import undo_id, undo_job
from tidemill.application.unnamed_payloads import delete_unnamed
from tidemill.domain.errors import SupersedeRefusedError, UndoFailedError, WriteRefusedError
from tidemill.domain.job import OWNER, Job
from tidemill.domain.states import State
from tidemill.domain.undo import Undo, Undone

#: A job without effect, for good.
_WITHOUT_EFFECT: Final = frozenset({State.CANCELLED, State.EXPIRED})
#: The longest pause between two looks at an undo that is under way.
LONGEST_HOLD: Final = timedelta(minutes=5)
_LONGEST_ID: Final = 100


class Superseder:
    """For the functions that accept jobs, and for the worker."""

    def __init__(self, *, store: SupersedeStore, payloads: Payloads, clock: Clock) -> None:
        self._store = store
        self._payloads = payloads
        self._clock = clock

    def accept(self, job: Job) -> Accepted:
        """Write a prepared job whose `supersedes` is a key or an id, and mark the earlier job, or neither.

        Raises `SupersedeRefusedError`, and as `Submit.insert`.
        """
        stored: Job | None = None
        while (known := self._find(job.tenant, job.id)) is None:
            delete_unnamed(stored, None, self._payloads)
            earlier = self._earlier(job)
            self._check(earlier, job)
            stored = self._payloads.put_away(_superseding(job, earlier))
            try:
                known = self._store.supersede(earlier, stored)
            except WriteRefusedError:
                continue  # the earlier job has changed since it was read, so another answer may be right
            if (known.trace, known.created_at) == (job.trace, job.created_at):
                return Accepted(job=known, replayed=False)
            break
        delete_unnamed(stored, known, self._payloads)
        return replay(known, job.body_hash)

    def ready(self, job: Job) -> bool:
        """Whether this claimed job, which supersedes another, may run. Else it must look again later.

        The earlier job is cancelled if it has not succeeded, and undone if it has. Raises `UndoFailedError` when that
        will not come about by itself, and `StoreUnavailableError`.
        """
        while (earlier := self._store.get(job.tenant, job.supersedes or "")) is not None:
            if earlier.superseded_by != job.id or earlier.state in _WITHOUT_EFFECT:
                return True
            try:
                if earlier.state is not State.SUCCEEDED:
                    stopped = self._store.cancel(
                        earlier, now=self._clock(), by=OWNER, reason=f"superseded by job {job.id}"
                    )
                    return stopped.state is State.CANCELLED
                if earlier.undone is not None:
                    return self._undone(job)
                if earlier.undo is None:
                    raise UndoFailedError(f"job {earlier.id}, which it supersedes, recorded no undo")
                self._undo(earlier, earlier.undo, by=job)
            except WriteRefusedError:
                continue  # it has changed since it was read
            return False
        # It has ended and was deleted, perhaps before its undo has ended.
        return self._undone(job)

    def stands_down(self, job: Job) -> bool:
        """Whether this claimed job must not run, since another one supersedes it."""
        if job.superseded_by is None:
            return False
        later = self._store.get(job.tenant, job.superseded_by)
        # One that ran has cancelled this job first, so one that was deleted since had no effect.
        return later is not None and later.state not in _WITHOUT_EFFECT

    def _earlier(self, job: Job) -> Job:
        name = job.supersedes or ""
        found = self._find(job.tenant, keyed_job_id(job.tenant, name))
        if found is None and len(name) <= _LONGEST_ID:
            found = self._find(job.tenant, name)
        if found is None:
            raise SupersedeRefusedError(f"you have no job with the key or id {name}, so nothing can be superseded")
        return found

    def _check(self, earlier: Job, job: Job) -> None:
        """Raises `SupersedeRefusedError`."""
        if (other := earlier.superseded_by) is not None:
            later = self._find(job.tenant, other)
            # One that was deleted has run only if the earlier job is undone, cancelled or expired.
            ran = earlier.undone is not None or earlier.state in _WITHOUT_EFFECT
            if later.state not in _WITHOUT_EFFECT if later else ran:
                raise SupersedeRefusedError(f"job {other} supersedes job {earlier.id} already; supersede that one")
        if earlier.group is not None and earlier.group != job.group:
            raise SupersedeRefusedError(
                f"job {earlier.id} is of the group {earlier.group}; the job that supersedes it must be, too"
            )
        if earlier.supersedes is not None and earlier.state is not State.SUCCEEDED:
            raise SupersedeRefusedError(
                f"job {earlier.id} is {earlier.state}, and supersedes job {earlier.supersedes} itself; cancel it, and "
                "supersede that one"
            )
        if earlier.state is State.SUCCEEDED:
            self._check_success(earlier)

    def _check_success(self, earlier: Job) -> None:
        if earlier.undone is None:
            if earlier.undo is None:
                raise SupersedeRefusedError(
                    f"job {earlier.id} has succeeded and recorded no undo, so nothing is known that would undo it"
                )
            return
        undo = self._store.get(earlier.tenant, earlier.undone.job_id)
        if undo is not None and undo.state is not State.SUCCEEDED:
            raise SupersedeRefusedError(
                f"job {earlier.id} is undone by job {undo.id}, which is {undo.state}; submit again after its success"
            )

    def _undone(self, job: Job) -> bool:
        undo = self._store.get(job.tenant, job.after_undo or "")
        if undo is not None and undo.state in {State.DEAD, *_WITHOUT_EFFECT}:
            raise UndoFailedError(f"job {undo.id}, which undoes job {job.supersedes}, is {undo.state}")
        return undo is None or undo.state is State.SUCCEEDED

    def _undo(self, earlier: Job, undo: Undo, *, by: Job) -> None:
        """In the turn of `by`, so in no group: at the end of the same group it would wait for that turn to end."""
        now = self._clock()
        job = self._payloads.put_away(undo_job(earlier, undo, now=now, group=None))
        entry = Undone(job_id=job.id, at=now, by=OWNER, reason=f"superseded by job {by.id}")
        self._store.undo(earlier, job, entry)

    def _find(self, tenant: str, job_id: str) -> Job | None:
        job = self._store.get(tenant, job_id)
        return None if job is None or job.retention_over(self._clock()) else job


def _superseding(job: Job, earlier: Job) -> Job:
    if job.id == earlier.id:
        raise SupersedeRefusedError("a job cannot supersede itself")
    return replace(job, supersedes=earlier.id, after_undo=undo_id(earlier))
