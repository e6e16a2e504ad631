"""Submit a job with one conditional write. The job document is also the idempotency record."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from tidemill.application.built_in_types import require_submittable
from tidemill.application.bursts import burst_of
from tidemill.application.job_ids import (
    callback_id,
    follow_up_id,
    keyed_job_id,
    node_job_id,
    period_end,
    submitted_job_id,
    unique_job_id,
)
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.ports import Clock, NewToken, SubmitStore, WriterPayloads
from tidemill.application.submission_body import body_hash_of, body_of, checked, hash_of
from tidemill.application.unnamed_payloads import delete_unnamed, deleted_on_conflict
from tidemill.application.validation import require_types, type_faults
from tidemill.domain.batches import Callback, closed_at, is_batch
from tidemill.domain.debounce import quiet_after
from tidemill.domain.errors import (
    BatchRefusedError,
    Fault,
    InvalidPayloadError,
    KeyReusedError,
    QuotaExceededError,
    SubmissionPausedError,
    SubmissionShedError,
    TidemillError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.events import Delivery
from tidemill.domain.flow_place import FlowPlace
from tidemill.domain.flows import NodeStart
from tidemill.domain.job import Job
from tidemill.domain.outcomes import state_until
from tidemill.domain.pauses import CATCH_UP_TAG
from tidemill.domain.retry import RetryPolicy
from tidemill.domain.states import State
from tidemill.domain.submission import DerivedKey, Submission, Unique
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.names import SCHEDULE_TENANT, Lane

#: A repeated submission may raise these only because it is late: its times have passed, or its type was removed.
_REFUSALS: Final = (InvalidPayloadError, UnknownJobTypeError)
#: What `Admit` raises. It refuses new jobs, and so no repeated submission.
_NOT_NOW: Final = (SubmissionPausedError, SubmissionShedError, QuotaExceededError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The job of a submission. `replayed` if an earlier submission made it, `deferred` if strain delays it."""

    job: Job
    replayed: bool
    deferred: bool = False


#: Inserts a checked job; as `Submit.insert`.
Insert = Callable[[Job], Accepted]
#: Calls the `Insert` at most once with the job, and returns its answer. The Lambda functions add Powertools here.
InsertOnce = Callable[[Insert, Job], Accepted]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingSubmission:
    """A checked submission that is not written yet."""

    #: Insert submissions that share one of these in their order: it is a group or a job. Without any: in any order.
    serial_keys: Sequence[str] = ()
    #: Writes the job, or finds the earlier one. Raises what `Submit.insert` raises, or why the check refused it.
    insert: Callable[[], Accepted]
    #: Returns the answer, if one conditional write of the document is all that `insert` does. Then others may go with
    #: it. Call it only if they can: it encodes the document.
    plain: Callable[[], Accepted | None] = lambda: None


#: Called with each checked job before it is written, except follow-ups and the nodes of flows. It raises to refuse the
#: job, and may return it with a later time.
Admit = Callable[[Job], Job]


def admit_all(job: Job) -> Job:
    """`Admit` that refuses none."""
    return job


def insert_directly(insert: Insert, job: Job) -> Accepted:
    """`InsertOnce` without a wrapper."""
    return insert(job)


class Submit:
    """The use case, and the only path on which a submission becomes a job.

    `new_id` gives ids that sort by time. `insert_once` wraps the write. `supersede` inserts a job that supersedes one,
    and `debounce` one that is debounced.
    """

    def __init__(
        self,
        *,
        store: SubmitStore,
        payloads: WriterPayloads,
        job_types: JobTypes,
        clock: Clock,
        new_id: NewToken,
        insert_once: InsertOnce = insert_directly,
        admit: Admit = admit_all,
        supersede: Insert | None = None,
        debounce: Insert | None = None,
    ) -> None:
        self._store = store
        self._payloads = payloads
        self.job_types = job_types
        self._clock = clock
        self._new_id = new_id
        self._insert_once = insert_once
        self._admit = admit
        self._supersede = supersede
        self._debounce = debounce

    def __call__(self, submission: Submission, *, tenant: str, trace: str) -> Accepted:
        """Raises what `prepare` and `insert` raise."""
        return self.pending(submission, tenant=tenant, trace=trace).insert()

    def pending(self, submission: Submission, *, tenant: str, trace: str) -> PendingSubmission:
        """Check a submission now, and write it later.

        Raises `PayloadTooLargeError`, and what `Admit` raises for a submission without idempotency key or `unique`.
        `PendingSubmission.insert` raises the other refusals, because it first looks for the job of an earlier
        submission with the same idempotency key or unique key.
        """
        require_types(submission)
        try:
            job = self._prepare(submission, tenant=tenant, trace=trace, new_id=self._new_id)
        except _REFUSALS as refused:
            earlier = partial(self.earlier, submission, tenant=tenant, refused=refused)
            key = submission.key
            same = [] if key is None else [_serial_key(_id_of_key(submission, key, tenant))]
            return PendingSubmission(serial_keys=same, insert=earlier)
        serial_keys = [_serial_key(job.id)]
        if job.group is not None:
            serial_keys.append(f"group {job.group}")
        if job.burst is not None:
            serial_keys.append(f"burst {job.burst.name}")
        try:
            admitted = self._admit(job)
        except _NOT_NOW as refused:
            if submission.key is None and job.unique_until is None:
                # Its id is new, so no earlier submission can have made its job.
                raise
            earlier = partial(self._found, tenant, job.id, job.body_hash, refused=refused)
            return PendingSubmission(serial_keys=serial_keys, insert=earlier)
        insert = partial(self._insert_admitted, admitted, asked=job)
        plain = partial(self._plain, admitted, asked=job)
        return PendingSubmission(serial_keys=serial_keys, insert=insert, plain=plain)

    def _plain(self, job: Job, *, asked: Job) -> Accepted | None:
        more = (job.group, job.batch, job.supersedes, job.burst, job.flow)
        if any(each is not None for each in more) or not self._payloads.stays_inline(job):
            return None
        return Accepted(job=job, replayed=False, deferred=job.run_at != asked.run_at)

    def _insert_admitted(self, job: Job, *, asked: Job) -> Accepted:
        accepted = self._insert_once(self.insert, job)
        return replace(accepted, deferred=not accepted.replayed and job.run_at != asked.run_at)

    def prepare(self, submission: Submission, *, tenant: str, trace: str) -> Job:
        """Check a submission and make its document, without writing it.

        `trace` is unique to this call. With it, the store tells an SDK retry of this write from another submission with
        the same content. Raises `UnknownJobTypeError`, `InvalidPayloadError` or `PayloadTooLargeError`.
        """
        require_types(submission)
        return self._prepare(submission, tenant=tenant, trace=trace, new_id=self._new_id)

    def check(self, submission: Submission) -> JobType:
        """Check a submission that is kept for later, and return its type. Raises as `prepare`."""
        require_types(submission)
        # Nothing is written, so the tenant does not matter.
        job_type = self._type_of(submission, "")
        checked(submission, job_type, now=self._clock())
        return job_type

    def prepare_follow_up(self, submission: Submission, parent: Job, *, index: int) -> Job:
        """As `prepare`, for a job that commits with the success of `parent`."""
        if submission.supersedes is not None:
            raise InvalidPayloadError([Fault("/supersedes", "a follow-up job supersedes none")])
        if submission.batch is not None:
            raise InvalidPayloadError([Fault("/batch", "a follow-up job joins no batch")])
        if submission.debounce is not None:
            raise InvalidPayloadError([Fault("/debounce_seconds", "a follow-up job is not debounced")])
        require_types(submission)
        callback = submission.name if isinstance(submission, Callback) else None
        job_id = follow_up_id(parent, index) if callback is None else callback_id(parent, callback)
        job = self._prepare(submission, tenant=parent.tenant, trace=parent.trace, new_id=lambda: job_id)
        # The looks of a batch do not count as links of a chain.
        hops = 0 if isinstance(submission, Callback) else parent.hops + 1
        return replace(job, parent=parent.id, hops=hops)

    def prepare_replay(self, delivery: Delivery, event: Job, *, job_id: str, trace: str) -> Job:
        """As `prepare`, for the job of one consumer that gets a stored event again."""
        job = self._prepare(delivery, tenant=event.tenant, trace=trace, new_id=lambda: job_id)
        return replace(job, parent=event.id, hops=event.hops + 1)

    def prepare_node(self, start: NodeStart, flow: Job, node: str) -> Job:
        """As `prepare`, for the job of a node: it has the same id however often it is started."""
        job = self._prepare(start, tenant=flow.tenant, trace=flow.trace, new_id=lambda: node_job_id(flow, node))
        return replace(job, flow=FlowPlace(id=flow.id, node=node))

    def put_away(self, follow_up: Job) -> Job:
        """Store a large payload; return the job as it is to be written. Call it last: an error leaves an orphan."""
        return self._payloads.put_away(follow_up)

    def insert(self, job: Job) -> Accepted:
        """Write a prepared job, or return the job that an earlier submission with the same id made.

        Raises `KeyReusedError` if the earlier one has another body, and `BatchRefusedError` if its batch takes no more.
        """
        if job.supersedes is not None:
            if self._supersede is None:
                raise InvalidPayloadError([Fault("/supersedes", "is not possible here")])
            return self._supersede(job)
        if job.burst is not None:
            if self._debounce is None:
                raise InvalidPayloadError([Fault("/debounce_seconds", "is not possible here")])
            return self._debounce(job)
        try:
            batch = self._joined(job)
        except (BatchRefusedError, InvalidPayloadError) as refused:
            return self._found(job.tenant, job.id, job.body_hash, refused=refused)
        stored = self._payloads.put_away(job)
        try:
            with deleted_on_conflict(stored, self._payloads):
                return Accepted(job=self._store.insert_if_absent(stored, batch=batch), replayed=False)
        except (WriteRefusedError, BatchRefusedError) as refused:
            # Nothing was written, so the payload belongs to no job.
            delete_unnamed(stored, None, self._payloads)
            if isinstance(refused, WriteRefusedError) and refused.current:
                return replay(refused.current, job.body_hash)
            raise

    def _joined(self, job: Job) -> Job | None:
        """The open batch that the job joins; None without one. Raises `BatchRefusedError` and `InvalidPayloadError`."""
        if job.batch is None:
            return None
        batch, now = self._store.get(job.tenant, job.batch), self._clock()
        if batch is None or batch.retention_over(now) or not is_batch(batch):
            raise InvalidPayloadError([Fault("/batch", "you have no batch with this id")])
        closed = closed_at(batch, now=now)
        if closed or batch.state.terminal:
            raise BatchRefusedError(f"the batch {batch.id} is {'closed' if closed else batch.state}")
        return batch

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
        return self._found(tenant, _id_of_key(submission, submission.key, tenant), body_hash, refused=refused)

    def _found(self, tenant: str, job_id: str, body_hash: str, *, refused: TidemillError) -> Accepted:
        """The job that an earlier submission made. Raises `refused` without one."""
        job = self._store.get(tenant, job_id)
        if job is None or job.retention_over(self._clock()):
            raise refused
        return replay(job, body_hash)

    def _type_of(self, submission: Submission, tenant: str) -> JobType:
        if isinstance(submission, Delivery):
            return _as_delivered(submission)
        require_submittable(submission, tenant=tenant)
        return self.job_types.get(submission.type)

    def _prepare(self, submission: Submission, *, tenant: str, trace: str, new_id: NewToken) -> Job:
        """Of a submission whose members have their types."""
        job_type = self._type_of(submission, tenant)
        now = self._clock()
        payload, value = checked(submission, job_type, now=now)
        unique = submission.unique or (Unique(period=job_type.unique) if job_type.unique else None)
        body = body_of(submission, value)
        if submission.key is not None:
            job_id = _id_of_key(submission, submission.key, tenant)
        elif unique is not None:
            job_id = unique_job_id(tenant, job_type.name, unique, hash_of(value), now=now)
            # The existing job is the answer to every submission of this id, also to one with other options.
            body = {"unique": job_id}
        else:
            job_id = new_id()
        run_at = submission.run_at or (now + submission.delay if submission.delay else None)
        if run_at is not None:
            run_at = run_at.astimezone(UTC) + (EPOCH - run_at) % MILLISECOND
        burst = burst_of(submission, value, tenant=tenant, now=now)
        if submission.debounce:
            run_at = quiet_after(now, submission.debounce)
        due = max(run_at or now, now)
        deadline = _rounded_down(submission.deadline.astimezone(UTC)) if submission.deadline else None
        # A correction follows the undo, and a job that makes up for a pause follows its end: neither may expire before.
        makes_up = tenant == SCHEDULE_TENANT and CATCH_UP_TAG in submission.tags
        max_age = None if submission.supersedes or makes_up else submission.max_age or job_type.max_age
        return Job(
            tenant=tenant,
            id=job_id,
            type=job_type.name,
            lane=submission.lane or job_type.lane,
            payload=payload,
            body_hash=hash_of(body),
            trace=trace,
            state=state_until(due, now=now, otherwise=State.QUEUED),
            generation=1,
            attempt=0,
            created_at=now,
            due=due,
            run_at=run_at,
            deadline=deadline,
            useful_until=_rounded_down(due + max_age) if max_age else None,
            group=submission.group,
            tags=tuple(sorted(submission.tags)),
            supersedes=submission.supersedes,
            batch=submission.batch,
            burst=burst,
            blocks=job_type.blocks and submission.group is not None,
            retention=job_type.retention,
            unique_until=period_end(unique, now) if unique else None,
        )


def _as_delivered(delivery: Delivery) -> JobType:
    """The type as it was at the publication: this code may not know it. Its run decides whether the data fits."""
    return JobType(
        name=delivery.type,
        lane=delivery.lane or Lane.DEFAULT,
        retry=RetryPolicy(max_attempts=1),
        parse=lambda payload: payload,
        handler=lambda _payload, _run: None,
        blocks=delivery.blocks,
        retention=delivery.retention,
    )


def _id_of_key(submission: Submission, key: str, tenant: str) -> str:
    return keyed_job_id(tenant, key) if isinstance(submission, DerivedKey) else submitted_job_id(tenant, key)


def _serial_key(job_id: str) -> str:
    return f"job {job_id}"


def _rounded_down(moment: datetime) -> datetime:
    """To the milliseconds that a document keeps."""
    return moment - (moment - EPOCH) % MILLISECOND


def replay(job: Job, body_hash: str) -> Accepted:
    """The answer to a submission whose job exists. Raises `KeyReusedError` if that has another body."""
    if job.body_hash != body_hash:
        raise KeyReusedError(
            "this idempotency key was used before with another body; a number in another form differs: 1, 1.0"
        )
    return Accepted(job=job, replayed=True)
