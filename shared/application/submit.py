"""Submit: one conditional write makes a job, and the document is its idempotency record."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from shared.application.job_types import JobType, JobTypes
from shared.application.ports import Clock, JobStore, NewToken, Payloads
from shared.domain.errors import (
    Fault,
    InvalidPayloadError,
    KeyReusedError,
    PayloadTooLargeError,
    WriteRefusedError,
)
from shared.domain.job import Job
from shared.domain.outcomes import parked_until
from shared.domain.states import State
from shared.domain.submission import Submission, Unique
from shared.names import LARGEST_BODY_BYTES, Lane

#: Whoever reads JSON walks it with a stack of limited depth, so what is accepted stays far from every reader's limit.
DEEPEST_NESTING: Final = 100
#: How far ahead a job may be scheduled.
FARTHEST: Final = timedelta(days=366)
LONGEST_NAME: Final = 128
#: A caller's clock may be behind ours, and the request takes its time.
_PAST_ALLOWED: Final = timedelta(minutes=1)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The job of a submission. `replayed` when it was there already."""

    job: Job
    replayed: bool


#: Derived ids live in spaces of their own.
_KEYED_IDS: Final = uuid5(NAMESPACE_OID, "millrace.job")
_UNIQUE_IDS: Final = uuid5(NAMESPACE_OID, "millrace.unique")
_FOLLOW_UP_IDS: Final = uuid5(NAMESPACE_OID, "millrace.follow-up")


def keyed_job_id(tenant: str, key: str) -> str:
    """The id of the one job that this tenant's key stands for."""
    return str(uuid5(_KEYED_IDS, json.dumps([tenant, key])))


def unique_job_id(tenant: str, type_: str, unique: Unique, payload_hash: str, *, now: datetime) -> str:
    """The id of the one job that may be of its kind in the period that `now` lies in."""
    period = (now - _EPOCH) // unique.period
    by = ["key", unique.key] if unique.key is not None else ["payload", payload_hash]
    return str(uuid5(_UNIQUE_IDS, json.dumps([tenant, type_, unique.period.total_seconds(), period, *by])))


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

        Raises `UnknownJobTypeError`, `InvalidPayloadError` or `PayloadTooLargeError`.
        """
        job_type = self._job_types.get(submission.type)
        now = self._clock()
        if faults := _faults(submission, job_type, now=now):
            raise InvalidPayloadError(faults)
        payload = _encoded(submission.payload)
        job_type.parse(submission.payload)
        if len(payload) > LARGEST_BODY_BYTES:
            raise PayloadTooLargeError(len(payload), LARGEST_BODY_BYTES)
        unique = submission.unique or (Unique(period=job_type.unique) if job_type.unique else None)
        if submission.key is not None:
            job_id, asked = keyed_job_id(tenant, submission.key), _asked(submission)
        elif unique is not None:
            job_id = unique_job_id(tenant, job_type.name, unique, _hash(submission.payload), now=now)
            # Whatever else is asked for, a job that is there already is the one.
            asked = {"unique": job_id}
        else:
            job_id, asked = self._new_id(), _asked(submission)
        run_at = submission.run_at or (now + submission.delay if submission.delay else None)
        due = max(run_at or now, now)
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
            deadline=submission.deadline,
            group=submission.group,
            blocks=job_type.blocks and submission.group is not None,
            retention=job_type.retention,
        )

    def prepare_follow_up(self, submission: Submission, parent: Job, *, index: int) -> Job:
        """As `prepare`, for a job that comes into being with the success of `parent`; its payload is put away."""
        job = self.prepare(submission, tenant=parent.tenant, trace=parent.trace)
        if submission.key is None and submission.unique is None:
            job = replace(job, id=follow_up_id(parent, index))
        return self._payloads.put_away(replace(job, parent=parent.id, hops=parent.hops + 1))

    def insert(self, job: Job) -> Accepted:
        """Write a prepared job, or find the one that an earlier submission under the same key made.

        Raises `KeyReusedError` when that one has another body.
        """
        stored = self._payloads.put_away(job)
        try:
            return Accepted(job=self._store.insert_if_absent(stored), replayed=False)
        except WriteRefusedError as refused:
            if refused.current is None:
                raise
            if stored.payload_at != refused.current.payload_at:
                self._payloads.delete(stored)
            if refused.current.body_hash != job.body_hash:
                raise KeyReusedError("this idempotency key was used before with another body") from None
            return Accepted(job=refused.current, replayed=True)

    def __call__(self, submission: Submission, *, tenant: str, trace: str) -> Accepted:
        return self.insert(self.prepare(submission, tenant=tenant, trace=trace))


def _faults(submission: Submission, job_type: JobType, *, now: datetime) -> list[Fault]:
    """What is wrong with how a job is to run; its payload is looked at elsewhere."""
    faults: list[Fault] = []

    def require(holds: bool, path: str, message: str) -> None:  # noqa: FBT001 - reads as a sentence
        if not holds:
            faults.append(Fault(path, message))

    lanes = list(Lane)
    lane, delay, run_at, deadline = submission.lane, submission.delay, submission.run_at, submission.deadline
    require(
        lane is None or lanes.index(lane) >= lanes.index(job_type.lane),
        "/lane",
        f"jobs of this type run on {job_type.lane}, and a submission may only choose a less urgent lane",
    )
    require(delay is None or run_at is None, "/run_at", "give delay_seconds or run_at, not both")
    require(delay is None or timedelta(0) <= delay <= FARTHEST, "/delay_seconds", f"must be 0 to {FARTHEST.days} days")
    require(run_at is None or run_at >= now - _PAST_ALLOWED, "/run_at", "must not lie in the past")
    require(run_at is None or run_at <= now + FARTHEST, "/run_at", f"must be at most {FARTHEST.days} days ahead")
    begins = run_at or now + (delay or timedelta(0))
    require(deadline is None or deadline > begins, "/deadline", "must be after the job may begin")
    require(
        submission.group is None or 1 <= len(submission.group) <= LONGEST_NAME,
        "/group",
        f"must be 1 to {LONGEST_NAME} characters",
    )
    if unique := submission.unique:
        require(submission.key is None, "/unique", "give an idempotency key or unique, not both")
        require(timedelta(seconds=1) <= unique.period <= FARTHEST, "/unique/period_seconds", "must be 1 s to 366 days")
        require(
            unique.key is None or 1 <= len(unique.key) <= LONGEST_NAME,
            "/unique/key",
            f"must be 1 to {LONGEST_NAME} characters",
        )
    return faults


def _encoded(payload: Mapping[str, Any]) -> str:
    if _nesting(payload) > DEEPEST_NESTING:
        raise InvalidPayloadError([Fault("/payload", f"nested deeper than {DEEPEST_NESTING} levels")])
    try:
        return json.dumps(payload, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        # `1e999` is JSON and reads as infinity, which is none.
        raise InvalidPayloadError([Fault("/payload", f"every number must be finite: {error}")]) from error


def _nesting(value: Any) -> int:
    depth, level = 0, [value]
    while containers := [held for held in level if isinstance(held, Mapping | list)]:
        depth += 1
        level = [held for outer in containers for held in (outer.values() if isinstance(outer, Mapping) else outer)]
    return depth


def _asked(submission: Submission) -> dict[str, Any]:
    """What tells two bodies apart. A delay counts as written: a replay asks for the same, not for the same moment."""
    asked = {
        "type": submission.type,
        "payload": submission.payload,
        "lane": submission.lane,
        "delay": submission.delay and submission.delay.total_seconds(),
        "run_at": submission.run_at and submission.run_at.isoformat(),
        "group": submission.group,
        "deadline": submission.deadline and submission.deadline.isoformat(),
    }
    return {name: value for name, value in asked.items() if value is not None}


def _hash(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
