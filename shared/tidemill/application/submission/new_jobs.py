"""Writes a new job with its payload, or finds the job of an earlier submission with the same id."""

from collections.abc import Callable

from msgspec import Struct

from tidemill.application.ports import Clock, SubmitStore, WriterPayloads
from tidemill.application.submission.unnamed_payloads import delete_unnamed, deleted_on_conflict
from tidemill.domain.errors import KeyReusedError, TidemillError, WriteRefusedError
from tidemill.domain.job import Job


class Accepted(Struct, frozen=True, kw_only=True):
    """The job of a submission. `replayed` if an earlier submission made it, `deferred` if strain delays it."""

    job: Job
    replayed: bool
    deferred: bool = False


#: Inserts a checked job; as `Submit.insert`.
Insert = Callable[[Job], Accepted]


class NewJobs:
    """For `Submit`, and for the placements that insert in a way of their own."""

    def __init__(self, *, store: SubmitStore, payloads: WriterPayloads, clock: Clock) -> None:
        self._store = store
        self.payloads = payloads
        self._clock = clock

    def insert(self, job: Job, *, write: Callable[[Job], Job] | None = None) -> Accepted:
        """Store a large payload and write the document, or return the job that has its id.

        `write` inserts the document together with other items. Raises `KeyReusedError` if the job that exists has
        another body, and what `write` raises.
        """
        stored = self.payloads.put_away(job)
        try:
            with deleted_on_conflict(stored, self.payloads):
                return Accepted(job=(write or self._store.insert_if_absent)(stored), replayed=False)
        except WriteRefusedError as refused:
            # Nothing was written, so the payload belongs to no job.
            delete_unnamed(stored, None, self.payloads)
            if refused.current:
                return replay(refused.current, job.body_hash)
            raise

    def find(self, tenant: str, job_id: str) -> Job | None:
        """The job of this id that has not expired."""
        job = self._store.get(tenant, job_id)
        return None if job is None or job.lifetime.over(self._clock()) else job

    def earlier(self, tenant: str, job_id: str, body_hash: str, *, refused: TidemillError) -> Accepted:
        """The job that an earlier submission made. Raises `refused` without one."""
        if (job := self.find(tenant, job_id)) is None:
            raise refused
        return replay(job, body_hash)


def replay(job: Job, body_hash: str) -> Accepted:
    """The answer to a submission whose job exists. Raises `KeyReusedError` if that has another body."""
    if job.body_hash != body_hash:
        raise KeyReusedError(
            "this idempotency key was used before with another body; a number in another form differs: 1, 1.0"
        )
    return Accepted(job=job, replayed=True)
