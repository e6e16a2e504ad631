"""Undo: submits once what would undo the effect of a job that has succeeded."""

import hashlib
import json
from collections.abc import Callable
from datetime import datetime
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from tidemill.application.ports import Clock, UndoStore, WriterPayloads
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Admit, admit_all
from tidemill.application.submission.unnamed_payloads import delete_unnamed, deleted_on_conflict
from tidemill.domain.corrections.undo import Correction, Undo, Undone
from tidemill.domain.errors import UndoRefusedError, WriteRefusedError
from tidemill.domain.job import OWNER, Job
from tidemill.domain.job_parts import GroupPlace, Lifetime, StoredPayload
from tidemill.domain.states import WITHOUT_EFFECT, State

_UNDO_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.undo")


def undo_id(done: Job) -> str:
    """Return the id of the next undo: one for each job, another after one without effect."""
    before = [] if done.correction.undone is None else [done.correction.undone.job_id]
    return str(uuid5(_UNDO_IDS, json.dumps([done.tenant, done.id, done.created_at.isoformat(), *before])))


def undo_job(done: Job, undo: Undo, *, now: datetime, group: str | None) -> Job:
    """The job that undoes `done`, at the end of the group."""
    job_id = undo_id(done)
    return Job(
        tenant=done.tenant,
        id=job_id,
        type=undo.type,
        lane=undo.lane,
        payload=StoredPayload(text=undo.payload),
        body_hash=hashlib.sha256(job_id.encode()).hexdigest(),
        trace=done.trace,
        state=State.QUEUED,
        generation=1,
        attempt=0,
        created_at=now,
        due=now,
        lifetime=Lifetime(useful_until=now + undo.max_age if undo.max_age else None, retention=undo.retention),
        group=GroupPlace(key=group, blocks=undo.blocks and group is not None),
        tags=undo.tags,
        correction=Correction(undoes=done.id),
    )


class Undoer:
    """`find` returns None for a job that is missing or expired, as `Control.find`."""

    def __init__(
        self, *, store: UndoStore, payloads: WriterPayloads, clock: Clock, find: Callable[[str, str], Job | None]
    ) -> None:
        self._store = store
        self._payloads = payloads
        self._clock = clock
        self._find = find

    def __call__(
        self, tenant: str, job_id: str, *, by: str = OWNER, reason: str = "", admit: Admit = admit_all
    ) -> Accepted | None:
        """Submit the job that undoes this one, or return the one that an earlier call submitted. None without a job.

        An undo that was cancelled or has expired is submitted anew. `by` and `reason` are for the audit entry. Raises
        `UndoRefusedError`, and as storing a payload does, and what `admit` raises for the job that undoes.
        """
        while (done := self._find(tenant, job_id)) is not None:
            undo = None if done.correction.undone is None else self._earlier(done, done.correction.undone)
            if undo is not None and undo.state not in WITHOUT_EFFECT:
                return Accepted(job=undo, replayed=True)
            if done.correction.undoes is not None:
                raise UndoRefusedError(
                    f"the job undoes job {done.correction.undoes} itself, so it cannot be undone; "
                    "submit a new job instead"
                )
            if done.state is not State.SUCCEEDED:
                raise UndoRefusedError(f"the job is {done.state}; only a job that has succeeded can be undone")
            if done.correction.undo is None:
                raise UndoRefusedError("the job has recorded no undo, so nothing is known that would undo its effect")
            self._require_no_other(done)
            now = self._clock()
            job = self._payloads.put_away(admit(undo_job(done, done.correction.undo, now=now, group=done.group.key)))
            entry = Undone(job_id=job.id, at=now, by=by, reason=reason)
            # A refused write means that another call was faster, or that the job has expired since.
            try:
                with deleted_on_conflict(job, self._payloads):
                    return Accepted(job=self._store.undo(done, job, entry), replayed=False)
            except WriteRefusedError:
                delete_unnamed(job, self._find(job.tenant, job.id), self._payloads)
        return None

    def _require_no_other(self, done: Job) -> None:
        """The undo of a superseded job runs in the turn of the job that supersedes it, unless that has ended before."""
        later = self._find(done.tenant, done.correction.superseded_by) if done.correction.superseded_by else None
        if later is not None and later.state not in WITHOUT_EFFECT:
            raise UndoRefusedError(f"job {later.id}, which is {later.state}, supersedes the job, and undoes it first")

    def _earlier(self, done: Job, undone: Undone) -> Job:
        job = self._find(done.tenant, undone.job_id)
        if job is None:
            raise UndoRefusedError(f"the job was undone by job {undone.job_id}, which has been deleted since")
        return job
