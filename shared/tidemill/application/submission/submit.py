"""Submit a job with one conditional write. The job document is also the idempotency record.

A submission is checked, placed and admitted, and its job is inserted. The features take part by their rules and
placements, which `submit_features` declares.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.ports import Clock, NewToken
from tidemill.application.submission.built_in_types import require_submittable
from tidemill.application.submission.checked_submission import (
    CheckedSubmission,
    body_hash_of,
    check,
    id_of_key,
    new_job,
    read_sound_payload,
)
from tidemill.application.submission.job_ids import callback_id, follow_up_id
from tidemill.application.submission.new_jobs import Accepted, Insert, NewJobs
from tidemill.application.submission.placements import Placement
from tidemill.application.submission.validation import Rule, require_types, type_faults
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.errors import (
    InvalidPayloadError,
    NewJobRefusedError,
    TidemillError,
    UnknownJobTypeError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import PinnedSubmission, Submission
from tidemill.names import Lane

#: A repeated submission may raise these only because it is late: its times have passed, or its type was removed.
_REFUSALS: Final = (InvalidPayloadError, UnknownJobTypeError)

#: Calls the `Insert` at most once with the job, and returns its answer. The Lambda functions add Powertools here.
InsertOnce = Callable[[Insert, Job], Accepted]


class PendingSubmission(Struct, frozen=True, kw_only=True):
    """A checked submission that is not written yet."""

    #: Insert submissions that share one of these in their order: it is a group or a job. Without any: in any order.
    serial_keys: Sequence[str] = ()
    #: Writes the job, or finds the earlier one. Raises what `Submit.insert` raises, or why the check refused it.
    insert: Callable[[], Accepted]
    #: Returns the answer, if one conditional write of the document is all that `insert` does. Then others may go with
    #: it. Call it only if they can: it encodes the document.
    plain: Callable[[], Accepted | None] = lambda: None


#: Called with each checked job before it is written, except follow-ups and the nodes of flows. It raises
#: `NewJobRefusedError` to refuse the job, and may return it with a later time.
Admit = Callable[[Job], Job]


def admit_all(job: Job) -> Job:
    """`Admit` that refuses none."""
    return job


def insert_directly(insert: Insert, job: Job) -> Accepted:
    """`InsertOnce` without a wrapper."""
    return insert(job)


class Submit:
    """The use case, and the only path on which a submission becomes a job.

    `new_id` gives ids that sort by time. `insert_once` wraps the write. The faults of a submission come in the order of
    `rules`, and the first of the `placements` that holds a job inserts it.
    """

    def __init__(
        self,
        *,
        jobs: NewJobs,
        job_types: JobTypes,
        clock: Clock,
        new_id: NewToken,
        rules: Sequence[Rule],
        placements: Sequence[Placement],
        insert_once: InsertOnce = insert_directly,
        admit: Admit = admit_all,
    ) -> None:
        self._jobs = jobs
        self.job_types = job_types
        self._clock = clock
        self._new_id = new_id
        self._rules = rules
        self._placements = placements
        self._insert_once = insert_once
        self._admit = admit

    def __call__(self, submission: Submission, *, tenant: str, trace: str) -> Accepted:
        """Raises what `prepare` and `insert` raise."""
        return self.pending(submission, tenant=tenant, trace=trace).insert()

    def pending(self, submission: Submission, *, tenant: str, trace: str) -> PendingSubmission:
        """Check, place and admit a submission now, and insert its job later.

        Raises `PayloadTooLargeError`, and what `Admit` raises for a submission without idempotency key or `unique`.
        `PendingSubmission.insert` raises the other refusals, because it first looks for the job of an earlier
        submission with the same idempotency key or unique key.
        """
        require_types(submission)
        try:
            checked = self._checked(submission, tenant=tenant, trace=trace, new_id=self._new_id)
        except _REFUSALS as refused:
            key = submission.key
            return PendingSubmission(
                serial_keys=[] if key is None else [_serial_key(id_of_key(submission, key, tenant))],
                insert=partial(self.earlier, submission, tenant=tenant, refused=refused),
            )
        job = self._placed(checked)
        serial_keys = [_serial_key(job.id), *self._serial_keys(job)]
        try:
            admitted = self._admit(job)
        except NewJobRefusedError as refused:
            if not checked.repeatable:
                # Its id is new, so no earlier submission can have made its job.
                raise
            earlier = partial(self._jobs.earlier, tenant, job.id, job.body_hash, refused=refused)
            return PendingSubmission(serial_keys=serial_keys, insert=earlier)
        return PendingSubmission(
            serial_keys=serial_keys,
            insert=partial(self._insert_admitted, admitted, asked=job),
            plain=partial(self._plain, admitted, asked=job),
        )

    def insert(self, job: Job) -> Accepted:
        """Write a prepared job, or return the job that an earlier submission with the same id made.

        Raises `KeyReusedError` if the earlier one has another body, and what the placement of the job raises.
        """
        placement = next((each for each in self._placements if each.holds(job)), None)
        return placement.insert(job) if placement else self._jobs.insert(job)

    def earlier(self, submission: Submission, *, tenant: str, refused: TidemillError) -> Accepted:
        """The job of an earlier submission with the same key, which was accepted before its times passed.

        Raises `refused` if no such job exists.
        """
        if submission.key is None or type_faults(submission):
            raise refused
        try:
            body_hash = body_hash_of(submission)
        except (InvalidPayloadError, OverflowError):
            # No earlier check can have accepted this body.
            raise refused from None
        return self._jobs.earlier(tenant, id_of_key(submission, submission.key, tenant), body_hash, refused=refused)

    def check(self, submission: Submission) -> JobType:
        """Check a submission that is kept for later, and return its type. Raises as `prepare`."""
        require_types(submission)
        # Nothing is written, so the tenant does not matter.
        job_type = self._type_of(submission, "")
        read_sound_payload(submission, job_type, now=self._clock(), rules=self._rules)
        return job_type

    def prepare(self, submission: Submission, *, tenant: str, trace: str, job_id: str | None = None) -> Job:
        """Check a submission and make its document, without writing it.

        `trace` is unique to this call. With it, the store tells an SDK retry of this write from another submission with
        the same content. `job_id` is the id of a submission without key or `unique`, if the engine derives it. Raises
        `UnknownJobTypeError`, `InvalidPayloadError` or `PayloadTooLargeError`.
        """
        new_id = self._new_id if job_id is None else lambda: job_id
        return self._prepared(submission, tenant=tenant, trace=trace, new_id=new_id)

    def prepare_follow_up(self, submission: Submission, parent: Job, *, index: int) -> Job:
        """Prepare a job that commits with the success of `parent`."""
        for placement in self._placements:
            if fault := placement.follow_up_fault(submission):
                raise InvalidPayloadError([fault])
        callback = submission.callback
        job_id = follow_up_id(parent, index) if callback is None else callback_id(parent, callback)
        job = self._prepared(submission, tenant=parent.tenant, trace=parent.trace, new_id=lambda: job_id)
        # The looks of a batch do not count as links of a chain.
        return replace(job, parent=parent.id, hops=parent.hops + 1 if callback is None else 0)

    def put_away(self, follow_up: Job) -> Job:
        """Store a large payload; return the job as it is to be written. Call it last: an error leaves an orphan."""
        return self._jobs.payloads.put_away(follow_up)

    def _prepared(self, submission: Submission, *, tenant: str, trace: str, new_id: NewToken) -> Job:
        require_types(submission)
        return self._placed(self._checked(submission, tenant=tenant, trace=trace, new_id=new_id))

    def _checked(self, submission: Submission, *, tenant: str, trace: str, new_id: NewToken) -> CheckedSubmission:
        """Check a submission whose members have their types."""
        job_type = self._type_of(submission, tenant)
        now = self._clock()
        return check(submission, job_type, tenant=tenant, trace=trace, now=now, new_id=new_id, rules=self._rules)

    def _type_of(self, submission: Submission, tenant: str) -> JobType:
        if isinstance(submission, PinnedSubmission):
            return _pinned_type(submission)
        require_submittable(submission, tenant=tenant)
        return self.job_types.get(submission.type)

    def _placed(self, checked: CheckedSubmission) -> Job:
        job = new_job(checked)
        for placement in self._placements:
            job = placement.place(job, checked)
        return job

    def _serial_keys(self, job: Job) -> list[str]:
        return [key for each in self._placements if each.holds(job) and (key := each.serial_key(job))]

    def _plain(self, job: Job, *, asked: Job) -> Accepted | None:
        if any(each.holds(job) for each in self._placements) or not self._jobs.payloads.stays_inline(job):
            return None
        return Accepted(job=job, replayed=False, deferred=job.run_at != asked.run_at)

    def _insert_admitted(self, job: Job, *, asked: Job) -> Accepted:
        accepted = self._insert_once(self.insert, job)
        return replace(accepted, deferred=not accepted.replayed and job.run_at != asked.run_at)


def _pinned_type(submission: PinnedSubmission) -> JobType:
    """The type as it was: this code may not know it. Its run decides whether the payload fits."""
    return JobType(
        name=submission.type,
        lane=submission.lane or Lane.DEFAULT,
        retry=RetryPolicy(max_attempts=1),
        parse=lambda payload: payload,
        handler=lambda _payload, _run: None,
        blocks=submission.blocks,
        retention=submission.retention,
    )


def _serial_key(job_id: str) -> str:
    return f"job {job_id}"
