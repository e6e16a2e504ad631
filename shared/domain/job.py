"""A job as one immutable document. Times are aware UTC datetimes; only the store knows epoch numbers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.domain.states import State
from shared.names import Lane


class DeathReason(StrEnum):
    """Why a job is dead."""

    #: The handler raised `PermanentJobError`.
    PERMANENT = "permanent error"
    #: The last attempt that the type allows failed.
    EXHAUSTED = "attempts used up"
    #: More attempts began than are allowed: earlier ones ended without a word (killed, out of memory, timed out).
    CRASHED = "crashed too often"
    #: The handler succeeded, but what it returned cannot be stored.
    RESULT_UNSTORABLE = "result cannot be stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptError:
    """How one attempt failed."""

    attempt: int
    at: datetime
    error_class: str
    #: Cut at 500 characters.
    message: str
    retryable: bool
    #: When the next attempt may start; None when there is none.
    next_due: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """The audit entry of one redrive."""

    #: Fresh for each call, so that an SDK retry of an applied redrive knows its own success.
    token: str
    at: datetime
    #: Who asked: a name for a person to read, not an identity that was verified.
    by: str
    #: What the job had died of.
    death: DeathReason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One unit of work: record, outbox, lock, idempotency record and error log at once."""

    tenant: str
    id: str
    type: str
    lane: Lane
    #: JSON text in ASCII; validated at submission against the type's model.
    payload: str
    #: SHA-256 over the canonical submission; tells a replay from another body under the same key.
    body_hash: str
    #: The request that created the job.
    trace: str
    state: State
    #: How many times the document has asked to be dispatched. Only rises.
    generation: int
    #: How many runs have begun since submission or redrive. Raised by claim, reset by redrive.
    attempt: int
    created_at: datetime
    #: Not-before time while queued or retrying, end of the lease while running, None when terminal.
    due: datetime | None = None
    #: What `due` was when the job was last claimed. Set by claim.
    ready_at: datetime | None = None
    #: When the last run began. Set by claim.
    claimed_at: datetime | None = None
    #: The fence: a token fresh for each claim. Set by claim, cleared by whatever ends the run.
    owner: str | None = None
    #: The owner that settled last; tells an SDK retry of an applied settle from a lost lease.
    last_owner: str | None = None
    #: JSON text, set on success.
    result: str | None = None
    death: DeathReason | None = None
    #: The last ten failed attempts, oldest first.
    errors: tuple[AttemptError, ...] = ()
    redrives: tuple[Redrive, ...] = ()
    #: How often a run was given back because other transactions stood in its way. Raised by release, reset by redrive.
    releases: int = 0
    #: When a nudge last asked for another dispatch of the same generation.
    nudged_at: datetime | None = None
    #: When the job became terminal.
    finished_at: datetime | None = None
    #: When the store may forget the job. Only ever set in a terminal state.
    expires_at: datetime | None = None

    def expired(self, now: datetime) -> bool:
        """DynamoDB deletes days late, so readers hide what is past its time themselves."""
        return self.expires_at is not None and self.expires_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a queue carries: enough to find a job and to tell a late message, and nothing else."""

    tenant: str
    job_id: str
    generation: int
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message in a dead-letter queue for a job that died; for a person to read, never the record."""

    reference: Reference
    type: str
    death: str
    error_class: str
    attempts: int


def reference_of(body: Reference | Letter) -> Reference:
    """The job that a message of either kind is about."""
    return body.reference if isinstance(body, Letter) else body
