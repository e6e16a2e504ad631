"""Backfill: submits, once for each success that is marked so, the job that makes up for what its handler skipped."""

import hashlib
import json
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from tidemill.application.ports import BackfillStore, Clock, WriterPayloads
from tidemill.application.unnamed_payloads import delete_unnamed, deleted_on_conflict
from tidemill.domain.errors import MalformedDocumentError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.skipped_work import Backfilled, Skipped
from tidemill.domain.states import State
from tidemill.names import Lane

_BACKFILL_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.backfill")


def backfill_id(done: Job, name: str) -> str:
    """One for each job and name, and another for a later job of its key."""
    return str(uuid5(_BACKFILL_IDS, json.dumps([done.tenant, done.id, done.created_at.isoformat(), name])))


class Backfiller:
    """It may be repeated, and two callers may work at once."""

    def __init__(self, *, store: BackfillStore, payloads: WriterPayloads, clock: Clock) -> None:
        self._store = store
        self._payloads = payloads
        self._clock = clock

    def backfill(self, done: Job, name: str) -> bool:
        """Submit the job that makes up for `name`, with the payload of `done`.

        False if `done` has no such mark left: another call was faster, or the job has expired or was deleted. Raises
        `MalformedDocumentError` if its payload is missing.
        """
        mark = done.skipped_without_backfill(name)
        if mark is None:
            return False
        try:
            payload = self._payloads.load(done)
        except MalformedDocumentError:
            current = self._store.get(done.tenant, done.id)
            if current is None or (current.created_at, current.payload_at) != (done.created_at, done.payload_at):
                # It has been deleted with its job, or migrated, since that was read.
                return False
            raise
        job = self._payloads.put_away(self._job(done, mark, payload))
        entry = Backfilled(name=name, job_id=job.id, at=job.created_at)
        try:
            with deleted_on_conflict(job, self._payloads):
                self._store.backfill(done, job, entry)
        except WriteRefusedError:
            delete_unnamed(job, self._store.get(job.tenant, job.id), self._payloads)
            return False
        return True

    def _job(self, done: Job, mark: Skipped, payload: str) -> Job:
        now, job_id = self._clock(), backfill_id(done, mark.name)
        return Job(
            tenant=done.tenant,
            id=job_id,
            type=mark.type,
            # Nothing waits for it, so it yields to all other work.
            lane=Lane.BULK,
            payload=payload,
            body_hash=hashlib.sha256(job_id.encode()).hexdigest(),
            trace=done.trace,
            state=State.QUEUED,
            generation=1,
            attempt=0,
            created_at=now,
            due=now,
            parent=done.id,
            retention=mark.retention,
        )
