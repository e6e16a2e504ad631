"""A job as one immutable document. Times are aware UTC datetimes; only the store knows epoch numbers."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from tidemill.domain.states import State
from tidemill.names import Lane

#: The error class of a run that ended without a word.
CRASHED: Final = "Crashed"
_WITHOUT_A_WORD: Final = "it ended without a word: killed, out of memory, out of time, or cut off from the store"


class DeathReason(StrEnum):
    """Why a job is dead."""

    #: The handler raised `PermanentJobError`, or no worker has known its type or payload for longer than a deployment.
    PERMANENT = "permanent error"
    #: The last attempt that the type allows failed.
    EXHAUSTED = "attempts used up"
    #: More attempts began than are allowed: earlier ones ended without a word (killed, out of memory, timed out).
    CRASHED = "crashed too often"
    #: The handler succeeded, but what it returned cannot be stored.
    RESULT_UNSTORABLE = "result cannot be stored"
    #: The handler returned `GiveUp`.
    GAVE_UP = "gave up"
    #: More snoozes, continuations and follow-ups in a chain than the type allows.
    HOPS = "too many hops"
    #: The deadline of its submission passed before a run of it could begin.
    DEADLINE = "deadline passed"
    #: Nudged again and again, and never claimed.
    UNDELIVERABLE = "undeliverable"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptError:
    """How one attempt failed."""

    attempt: int
    at: datetime
    error_class: str
    #: Cut at 500 characters.
    message: str
    retryable: bool
    #: When the next attempt may start; None when there is none, or when nobody was left to say.
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
    #: JSON text in ASCII; validated at submission against the type's model. None when it is stored elsewhere.
    payload: str | None
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
    #: Where the payload is, if it is too large for the document.
    payload_at: str | None = None
    #: Not-before time while scheduled, queued or retrying, end of the lease while running, None while waiting and when
    #: terminal.
    due: datetime | None = None
    #: The not-before time that was asked for, if it was not at once. A waiting job keeps it until it is its turn.
    run_at: datetime | None = None
    #: A run that has not begun by then never will. Cleared by redrive.
    deadline: datetime | None = None
    #: Jobs of a group run one at a time, in the order accepted.
    group: str | None = None
    #: The position in the group, from 1 without gaps. Given by the insert, and again by each entry at the tail.
    sequence: int | None = None
    #: Whether the group stands while this job is dead, until a redrive or a cancel.
    blocks: bool = False
    #: Snoozes and continuations so far, and those of the jobs that this one follows. Reset by redrive.
    hops: int = 0
    #: The job whose success made this one.
    parent: str | None = None
    #: JSON text that the handler last saved to resume from. Survives crashes, retries and redrives.
    checkpoint: str | None = None
    #: When the handler last saved one: the run was alive then.
    checkpoint_at: datetime | None = None
    #: How far the job is, of how much, in whatever the handler counts.
    progress_done: int | None = None
    progress_total: int | None = None
    #: When somebody asked the running job to end. Set by cancel, cleared by redrive.
    cancel_requested_at: datetime | None = None
    #: How often in a row the limits of its key held it back. Cleared by an outcome of any other kind.
    holds: int = 0
    #: Until then no other job may be of its kind, so it is kept, however it ends.
    unique_until: datetime | None = None
    #: How long to keep it once terminal; None for as long as the stage says.
    retention: timedelta | None = None
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
    #: How many nudges in a row no claim has answered. Cleared by claim.
    nudges: int = 0
    #: When the job became terminal.
    finished_at: datetime | None = None
    #: When the store may forget the job. Only ever set in a terminal state.
    expires_at: datetime | None = None

    def expired(self, now: datetime) -> bool:
        """DynamoDB deletes days late, so readers hide what is past its time themselves."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def suspect(self) -> bool:
        """Whether the run before this one ended without a word: it may have taken its process down with it.

        A run that ends otherwise leaves its error, or gives its attempt back.
        """
        return self._told < self.attempt - 1

    @property
    def lost(self) -> tuple[AttemptError, ...]:
        """The runs before the present one that ended without a word, as the errors that they did not leave.

        Known since the claim of this run, and written when it fails or ends the job.
        """
        if self.state is not State.RUNNING:
            return ()
        return tuple(
            AttemptError(
                attempt=attempt,
                at=self.claimed_at or self.created_at,
                error_class=CRASHED,
                message=_WITHOUT_A_WORD,
                retryable=True,
            )
            for attempt in range(self._told + 1, self.attempt)
        )

    @property
    def _told(self) -> int:
        """The last attempt before the present one that left its error; 0 if none did."""
        # Errors of the life before a redrive say nothing of this one.
        since = self.redrives[-1].at if self.redrives else self.created_at
        last = self.errors[-1] if self.errors else None
        return last.attempt if last and last.attempt < self.attempt and last.at >= since else 0

    def settled_in(self, current: "Job") -> bool:
        """Whether the run that holds this job has ended in `current`, even if another has claimed it since."""
        return self.owner is not None and current.last_owner == self.owner


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a queue carries: enough to find a job and to tell a late message, and nothing else."""

    tenant: str
    job_id: str
    generation: int
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message in a dead-letter queue for a job that died; for a person to read, never the record."""

    reference: Reference
    type: str
    death: str
    error_class: str
    attempts: int


def reference_to(job: Job) -> Reference:
    """What a message for the job's present generation carries."""
    return Reference(tenant=job.tenant, job_id=job.id, generation=job.generation, trace=job.trace)


def reference_of(body: Reference | DeadLetter) -> Reference:
    """The job that a message of either kind is about."""
    return body.reference if isinstance(body, DeadLetter) else body
