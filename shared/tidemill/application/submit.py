"""Submit: one conditional write makes a job, and the document is its idempotency record."""

import contextlib
import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.ports import Clock, JobStore, NewToken, Payloads
from tidemill.application.validation import faults, read_payload
from tidemill.domain.errors import (
    InvalidPayloadError,
    KeyReusedError,
    PayloadTooLargeError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.outcomes import parked_until
from tidemill.domain.states import State
from tidemill.domain.submission import Submission, Unique
from tidemill.names import LARGEST_BODY_BYTES

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: What a document can hold: a run begins no earlier than asked, and a deadline is no later.
_MILLISECOND: Final = timedelta(milliseconds=1)
#: What is wrong with a submission may be that it comes again, too late.
REFUSALS: Final = (InvalidPayloadError, UnknownJobTypeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The job of a submission. `replayed` when it was there already."""

    job: Job
    replayed: bool


#: Derived ids live in spaces of their own.
_KEYED_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.job")
_UNIQUE_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.unique")
_FOLLOW_UP_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.follow-up")


def keyed_job_id(tenant: str, key: str) -> str:
    """The id of the one job that this tenant's key stands for."""
    return str(uuid5(_KEYED_IDS, json.dumps([tenant, key])))


def unique_job_id(tenant: str, type_: str, unique: Unique, payload_hash: str, *, now: datetime) -> str:
    """The id of the one job that may be of its kind in the period that `now` lies in."""
    period = _period(unique, now)
    by = ["key", unique.key] if unique.key is not None else ["payload", payload_hash]
    return str(uuid5(_UNIQUE_IDS, json.dumps([tenant, type_, unique.period.total_seconds(), period, *by])))


def period_end(unique: Unique, now: datetime) -> datetime:
    """When the period is over that `now` lies in."""
    return _EPOCH + (_period(unique, now) + 1) * unique.period


def _period(unique: Unique, now: datetime) -> int:
    return (now - _EPOCH) // unique.period


def follow_up_id(parent: Job, index: int) -> str:
    """The same however often the success of `parent` is settled."""
    return str(uuid5(_FOLLOW_UP_IDS, json.dumps([parent.tenant, parent.id, index])))


class Submit:
    """The use case. `new_id` gives ids that sort by time."""

    def __init__(
        self, *, store: JobStore, payloads: Payloads, job_types: JobTypes, clock: Clock, new_id: NewToken
    ) -> None:
        self._store = store
        self._payloads = payloads
        self._job_types = job_types
        self._clock = clock
        self._new_id = new_id

    def prepare(self, submission: Submission, *, tenant: str, trace: str) -> Job:
        """Check a submission and make its document, without writing it.

        `trace` names this call and no other: it tells the SDK's second try of a write from another submission of the
        same. Raises `UnknownJobTypeError`, `InvalidPayloadError` or `PayloadTooLargeError`.
        """
        return self._prepare(submission, tenant=tenant, trace=trace, new_id=self._new_id)

    def prepare_follow_up(self, submission: Submission, parent: Job, *, index: int) -> Job:
        """As `prepare`, for a job that comes into being with the success of `parent`."""
        job = self._prepare(
            submission, tenant=parent.tenant, trace=parent.trace, new_id=lambda: follow_up_id(parent, index)
        )
        return replace(job, parent=parent.id, hops=parent.hops + 1)

    def put_away(self, follow_up: Job) -> Job:
        """As it is to be written, its payload stored. Last of all, since what stays behind belongs to no job."""
        return self._payloads.put_away(follow_up)

    def insert(self, job: Job) -> Accepted:
        """Write a prepared job, or find the one that an earlier submission under the same key made.

        Raises `KeyReusedError` when that one has another body.
        """
        stored = self._payloads.put_away(job)
        try:
            return Accepted(job=self._store.insert_if_absent(stored), replayed=False)
        except (WriteRefusedError, TransactionConflictError) as refused:
            if isinstance(refused, TransactionConflictError) and job.group is None:
                # The SDK's repeat of what was applied may meet the transaction that ends the job's first run.
                raise
            # Nothing was written. What cannot be deleted now belongs to no job, and reconcile finds it.
            with contextlib.suppress(StoreUnavailableError):
                self._payloads.delete(stored)
            if isinstance(refused, WriteRefusedError) and refused.current:
                return _replay(refused.current, job.body_hash)
            raise

    def earlier(self, submission: Submission, *, tenant: str, refused: TidemillError) -> Accepted:
        """The job of a submission that is refused now, if it was accepted before: its times may have passed since.

        Raises `refused` when there is none.
        """
        if submission.key is None:
            raise refused
        try:
            body_hash = _hash(_asked(submission, read_payload(submission.payload)[1]))
        except (InvalidPayloadError, OverflowError):
            # It could not have been accepted at any time.
            raise refused from None
        job = self._store.get(tenant, keyed_job_id(tenant, submission.key))
        if job is None or job.expired(self._clock()):
            raise refused
        return _replay(job, body_hash)

    def __call__(self, submission: Submission, *, tenant: str, trace: str) -> Accepted:
        try:
            job = self.prepare(submission, tenant=tenant, trace=trace)
        except REFUSALS as refused:
            return self.earlier(submission, tenant=tenant, refused=refused)
        return self.insert(job)

    def _prepare(self, submission: Submission, *, tenant: str, trace: str, new_id: NewToken) -> Job:
        job_type = self._job_types.get(submission.type)
        now = self._clock()
        payload, value = _checked(submission, job_type, now=now)
        unique = submission.unique or (Unique(period=job_type.unique) if job_type.unique else None)
        asked = _asked(submission, value)
        if submission.key is not None:
            job_id = keyed_job_id(tenant, submission.key)
        elif unique is not None:
            job_id = unique_job_id(tenant, job_type.name, unique, _hash(value), now=now)
            # Whatever else is asked for, a job that is there already is the one.
            asked = {"unique": job_id}
        else:
            job_id = new_id()
        run_at = submission.run_at or (now + submission.delay if submission.delay else None)
        if run_at is not None:
            run_at = run_at.astimezone(UTC) + (_EPOCH - run_at) % _MILLISECOND
        due = max(run_at or now, now)
        deadline = submission.deadline
        if deadline is not None:
            deadline = deadline.astimezone(UTC) - (deadline - _EPOCH) % _MILLISECOND
        return Job(
            tenant=tenant,
            id=job_id,
            type=job_type.name,
            lane=submission.lane or job_type.lane,
            payload=payload,
            body_hash=_hash(asked),
            trace=trace,
            state=parked_until(due, now=now, otherwise=State.QUEUED),
            generation=1,
            attempt=0,
            created_at=now,
            due=due,
            run_at=run_at,
            deadline=deadline,
            group=submission.group,
            blocks=job_type.blocks and submission.group is not None,
            retention=job_type.retention,
            unique_until=period_end(unique, now) if unique else None,
        )


def _checked(submission: Submission, job_type: JobType, *, now: datetime) -> tuple[str, Any]:
    found = faults(submission, job_type, now=now)
    payload, value = "", None
    try:
        payload, value = read_payload(submission.payload)
        # As its handler will see it: a tuple, say, has become a list.
        job_type.parse(value)
    except InvalidPayloadError as error:
        found += error.faults
    if found:
        raise InvalidPayloadError(found)
    if len(payload) > LARGEST_BODY_BYTES:
        raise PayloadTooLargeError(len(payload), LARGEST_BODY_BYTES)
    return payload, value


def _replay(job: Job, body_hash: str) -> Accepted:
    if job.body_hash != body_hash:
        raise KeyReusedError("this idempotency key was used before with another body")
    return Accepted(job=job, replayed=True)


def _asked(submission: Submission, payload: Any) -> dict[str, Any]:
    """What tells two bodies apart. A delay counts as written: a replay asks for the same, not for the same moment."""
    delay, run_at, deadline = submission.delay, submission.run_at, submission.deadline
    asked = {
        "type": submission.type,
        "payload": payload,
        "lane": submission.lane,
        # None and nothing ask for the same.
        "delay": delay.total_seconds() if delay else None,
        "run_at": run_at.astimezone(UTC).isoformat() if run_at else None,
        "group": submission.group,
        "deadline": deadline.astimezone(UTC).isoformat() if deadline else None,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _hash(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
