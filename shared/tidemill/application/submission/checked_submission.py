"""The check of a submission: it becomes one value with the type, the payload, the id and the hash of its job."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from tidemill.application.job_types import JobType
from tidemill.application.ports import NewToken
from tidemill.application.submission.job_ids import keyed_job_id, period_end, submitted_job_id, unique_job_id
from tidemill.application.submission.validation import Rule, faults, read_payload, require_short_paths
from tidemill.domain.attempt.outcomes import state_until
from tidemill.domain.errors import InvalidPayloadError, PayloadTooLargeError
from tidemill.domain.job import Job
from tidemill.domain.job_parts import Lifetime, StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import DerivedKey, Submission, Unique
from tidemill.domain.time_constants import EPOCH, MILLISECOND


class CheckedSubmission(Struct, frozen=True, kw_only=True):
    """A submission without faults, and what was computed from it."""

    submission: Submission
    tenant: str
    #: It is unique to the call.
    trace: str
    #: When it was checked.
    now: datetime
    type: JobType
    #: The payload as JSON text in ASCII, and the value decoded from it.
    payload: str
    value: Mapping[str, Any]
    #: The uniqueness that the submission asks for, or else its type.
    unique: Unique | None
    #: The id of its job. A repeated submission has the same one, if it has a key or is unique.
    id: str
    #: The hash of what a repeated submission must have in common with this one.
    body_hash: str

    @property
    def repeatable(self) -> bool:
        """Whether an earlier submission may have made its job."""
        return self.submission.key is not None or self.unique is not None


def check(
    submission: Submission,
    job_type: JobType,
    *,
    tenant: str,
    trace: str,
    now: datetime,
    new_id: NewToken,
    rules: Sequence[Rule],
) -> CheckedSubmission:
    """Check a submission whose members have their types. Raises `InvalidPayloadError` and `PayloadTooLargeError`."""
    payload, value = read_sound_payload(submission, job_type, now=now, rules=rules)
    unique = submission.unique or (Unique(period=job_type.unique) if job_type.unique else None)
    body: Mapping[str, Any] = body_of(submission, value)
    if submission.key is not None:
        job_id = id_of_key(submission, submission.key, tenant)
    elif unique is not None:
        job_id = unique_job_id(tenant, job_type.name, unique, hash_of(value), now=now)
        # The existing job is the answer to every submission of this id, also to one with other options.
        body = {"unique": job_id}
    else:
        job_id = new_id()
    return CheckedSubmission(
        submission=submission,
        tenant=tenant,
        trace=trace,
        now=now,
        type=job_type,
        payload=payload,
        value=value,
        unique=unique,
        id=job_id,
        body_hash=hash_of(body),
    )


def new_job(checked: CheckedSubmission) -> Job:
    """The job of a checked submission, without the members that its placements give it."""
    submission, job_type, now = checked.submission, checked.type, checked.now
    deadline = _rounded_down(submission.deadline.astimezone(UTC)) if submission.deadline else None
    run_at = submission.run_at or (now + submission.delay if submission.delay else None)
    if run_at is not None:
        run_at = run_at.astimezone(UTC) + (EPOCH - run_at) % MILLISECOND
    job = Job(
        tenant=checked.tenant,
        id=checked.id,
        type=job_type.name,
        lane=submission.lane or job_type.lane,
        payload=StoredPayload(text=checked.payload),
        body_hash=checked.body_hash,
        trace=checked.trace,
        state=State.QUEUED,
        generation=1,
        attempt=0,
        created_at=now,
        due=now,
        lifetime=Lifetime(
            deadline=deadline,
            retention=job_type.retention,
            unique_until=period_end(checked.unique, now) if checked.unique else None,
        ),
        tags=tuple(sorted(submission.tags)),
    )
    return timed(job, checked, run_at=run_at)


def timed(job: Job, checked: CheckedSubmission, *, run_at: datetime | None) -> Job:
    """The job as it begins at `run_at`, or at once, and expires its maximum age later."""
    now, max_age = checked.now, checked.submission.max_age or checked.type.max_age
    due = max(run_at or now, now)
    return replace(
        job,
        state=state_until(due, now=now, otherwise=State.QUEUED),
        due=due,
        run_at=run_at,
        lifetime=replace(job.lifetime, useful_until=_rounded_down(due + max_age) if max_age else None),
    )


def read_sound_payload(
    submission: Submission, job_type: JobType, *, now: datetime, rules: Sequence[Rule]
) -> tuple[str, dict[str, Any]]:
    """The payload as JSON text, and decoded from it. Raises `InvalidPayloadError` and `PayloadTooLargeError`."""
    found = faults(submission, job_type, now=now, rules=rules)
    payload, value = "", dict[str, Any]()
    try:
        payload, value = read_payload(submission.payload)
        if not submission.built:
            require_short_paths(payload, value)
        if job_type.reads_payload:
            job_type.parse(payload)
    except InvalidPayloadError as error:
        found += error.faults
    if found:
        raise InvalidPayloadError(found)
    # Without the facts of job types, which a deployment may change before the event is published again.
    sent = submission.identity(value)
    size = len(payload) if sent is value else len(json.dumps(sent, separators=(",", ":")))
    if size > submission.largest:
        raise PayloadTooLargeError(size, submission.largest)
    return payload, value


def id_of_key(submission: Submission, key: str, tenant: str) -> str:
    """The id of the job of a submission with this key."""
    return keyed_job_id(tenant, key) if isinstance(submission, DerivedKey) else submitted_job_id(tenant, key)


def body_of(submission: Submission, payload: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a submission that a replay must repeat. It holds the delay as given, not the resulting time.

    `payload` is decoded JSON: a handler may give names of members that are not text.
    """
    delay, run_at, deadline = submission.delay, submission.run_at, submission.deadline
    body = {
        "type": submission.type,
        "payload": submission.identity(payload),
        "lane": submission.lane,
        # A delay of zero is the same as none.
        "delay": delay.total_seconds() if delay else None,
        "run_at": run_at.astimezone(UTC).isoformat() if run_at else None,
        "group": submission.group,
        "deadline": deadline.astimezone(UTC).isoformat() if deadline else None,
        "max_age": submission.max_age.total_seconds() if submission.max_age else None,
        # Their order means nothing.
        "tags": sorted(submission.tags) or None,
        "supersedes": submission.supersedes,
        "batch": submission.batch,
    }
    return {name: value for name, value in body.items() if value is not None}


def body_hash_of(submission: Submission) -> str:
    """Raises `InvalidPayloadError` and `OverflowError`."""
    return hash_of(body_of(submission, read_payload(submission.payload)[1]))


def hash_of(value: Any) -> str:
    """Equal for equal JSON, in any order of members.

    1 and 1.0 differ, as they do for a handler. The numbers of RFC 8785 would make one of 2**53 and 2**53 + 1, and a
    hash unlike that of a live job would refuse its repeat.
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _rounded_down(moment: datetime) -> datetime:
    """To the milliseconds that a document keeps."""
    return moment - (moment - EPOCH) % MILLISECOND
