"""A job as one immutable document. Times are aware UTC datetimes; only the store uses epoch numbers."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct

from tidemill.domain.corrections.undo import Correction
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.flows.flow_place import FlowPlace, FlowState
from tidemill.domain.history import HELD, Transition, Why, insert, with_attempts
from tidemill.domain.job_parts import Cancel, GroupPlace, Lease, Lifetime, Nudges, Progress, StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.steps.steps import RecordedSteps
from tidemill.domain.waiting.holds import HoldCause, Holds
from tidemill.domain.waiting.signals import JobSignals
from tidemill.domain.waiting.waiting import Wait
from tidemill.names import Lane

#: The error class of a run whose worker exited without reporting a result.
CRASHED: Final = "Crashed"
#: The error classes of jobs that died before a run, since their deadline had passed, they had too many hops, or their
#: type allows fewer attempts than before.
DEADLINE_PASSED: Final = "DeadlinePassed"
TOO_MANY_HOPS: Final = "TooManyHops"
NO_ATTEMPT_LEFT: Final = "NoAttemptLeft"
_NO_RESULT: Final = (
    "the worker exited without reporting a result: killed, out of memory, out of time, or cut off from the store"
)


class DeathReason(StrEnum):
    """The reason of a job's death."""

    #: The handler raised `PermanentJobError`, or all workers rejected its type or payload for longer than a deployment.
    PERMANENT = "permanent error"
    #: The last attempt that the type allows failed, or it allows fewer by now than have failed.
    EXHAUSTED = "attempts used up"
    #: More attempts began than are allowed: earlier ones ended without a result (killed, out of memory, timed out).
    CRASHED = "crashed too often"
    #: The handler succeeded, but its return value cannot be stored.
    RESULT_UNSTORABLE = "result cannot be stored"
    #: The handler returned `GiveUp`.
    GAVE_UP = "gave up"
    #: A chain of snoozes, continuations and follow-ups is longer than the type allows.
    HOPS = "too many hops"
    #: The deadline of the submission passed before a run began.
    DEADLINE = "deadline passed"
    #: No worker claimed the job after many nudges.
    UNDELIVERABLE = "undeliverable"
    #: The handler raised `MissingInput` for one input in more consecutive runs than it allows.
    MISSING_INPUT = "missing input"


class AttemptError(Struct, frozen=True, kw_only=True):
    """The error of one failed attempt."""

    attempt: int
    at: datetime
    error_class: str
    #: Cut at 500 characters.
    message: str
    retryable: bool
    #: When the next attempt may start. None for the last attempt, and for a run whose worker exited without a result.
    next_due: datetime | None = None
    #: The frames of the handler. Kept of the last error only, and dropped when the job succeeds.
    traceback: str = ""


class Redrive(Struct, frozen=True, kw_only=True):
    """The audit entry of one redrive."""

    #: Fresh for each call, so that an SDK retry of an applied redrive recognizes its own success. The members that a
    #: batch redrives, and the nodes that a flow does, have the token of its own redrive.
    token: str
    at: datetime
    #: `OWNER`, or who else: see `CancelRequest.by`.
    by: str
    #: Why the job was dead before the redrive.
    death: DeathReason | None = None
    #: Why it was redriven, in the operator's words.
    reason: str = ""
    #: Whether the operator replaced the payload.
    edited: bool = False


#: The attributes that runs and callers of a job gave to its payload. They end with it: a redrive with another payload
#: clears them, and a debounced submission replaces no payload that has one. A migration changes the form of a payload
#: and not its meaning, so it keeps them.
GIVEN_TO_PAYLOAD: Final = ("steps", "checkpoint", "checkpoint_at", "progress_done", "progress_total", "signals")

#: In an audit entry: the tenant of the job, over HTTP.
OWNER: Final = "owner"
#: In an audit entry: an operator whose name is not known, or not shown.
OPERATOR: Final = "operator"


class Job(Struct, frozen=True, kw_only=True):
    """One unit of work: record, outbox, lock, idempotency record and error log in one document."""

    tenant: str
    id: str
    type: str
    lane: Lane
    payload: StoredPayload
    #: SHA-256 over the canonical submission. Distinguishes a replay from another body under the same idempotency key.
    body_hash: str
    #: The id of the request that created the job, after the caller's trace context: see `trace_context`.
    trace: str
    state: State
    #: How many dispatches the document has requested. Only rises.
    generation: int
    #: How many runs have begun since submission or redrive. Raised by claim, reset by redrive.
    attempt: int
    created_at: datetime
    #: Not-before time while scheduled, queued or retrying, end of the lease while running, latest time of its release
    #: while parked, None while waiting and when terminal.
    due: datetime | None = None
    #: The submitted not-before time; None for at once. A waiting job keeps it until its turn.
    run_at: datetime | None = None
    lifetime: Lifetime = Lifetime()
    #: The labels of the submission, sorted.
    tags: tuple[str, ...] = ()
    group: GroupPlace = GroupPlace()
    #: The id of the batch that the job belongs to.
    batch: str | None = None
    #: The submissions that it stands for, if it is debounced. Set by insert; changed by those that it takes.
    burst: DebounceWindow | None = None
    #: The node that the job is, of a flow.
    flow: FlowPlace | None = None
    #: For the job of a flow itself.
    flow_state: FlowState = FlowState()
    #: The job whose success created this follow-up; the batch whose end submitted this callback.
    parent: str | None = None
    #: Snoozes and continuations of this job and of the jobs that it follows. Reset by redrive.
    hops: int = 0
    correction: Correction = Correction()
    lease: Lease = Lease()
    nudges: Nudges = Nudges()
    progress: Progress = Progress()
    steps: RecordedSteps = RecordedSteps()
    cancel: Cancel = Cancel()
    holds: Holds = Holds()
    #: What the job waits for while parked, and what it waited for until its next run ends. Set by settle and
    #: park, cleared by settle, release, cancel and redrive. A job that waits in no line loses it when it is queued.
    wait: Wait | None = None
    signals: JobSignals = JobSignals()
    #: JSON text, set on success.
    result: str | None = None
    death: DeathReason | None = None
    #: The last ten failed attempts, oldest first.
    errors: tuple[AttemptError, ...] = ()
    redrives: tuple[Redrive, ...] = ()
    #: The last transitions, oldest first. Each write that makes one adds it; settle and release drop the oldest.
    history: tuple[Transition, ...] = ()
    #: When the job became terminal.
    finished_at: datetime | None = None

    @property
    def run_ends(self) -> bool:
        """Whether its run was asked to end. A lost run leaves the request behind, which then ends nothing by itself."""
        return self.state is State.RUNNING and self.cancel.requested_at is not None

    def was_dead_at(self, asked: Redrive) -> bool:
        """Whether this redrive of its batch or flow is still to redrive this dead member or node.

        The redrive may have the time of a fast clock, before which a job can die once more.
        """
        redriven = any(each.token == asked.token for each in self.redrives)
        return not redriven and self.finished_at is not None and self.finished_at < asked.at

    def without_contents(self) -> "Job":
        """Without what takes most of a large document, for a reader that holds thousands of them."""
        return replace(
            self,
            payload=StoredPayload(location=self.payload.location),
            result=None,
            progress=replace(self.progress, checkpoint=None),
            steps=replace(self.steps, recorded=()),
            correction=replace(self.correction, undo=None),
        )

    @property
    def given_to_payload(self) -> dict[str, object]:
        """Each of `GIVEN_TO_PAYLOAD`."""
        return {
            "steps": self.steps.recorded,
            "checkpoint": self.progress.checkpoint,
            "checkpoint_at": self.progress.checkpoint_at,
            "progress_done": self.progress.done,
            "progress_total": self.progress.total,
            "signals": self.signals.received,
        }

    def held_by(self, cause: HoldCause) -> int:
        """How often this cause has held the job back, as `held_by_cause`."""
        return self.held_by_cause.get(cause, 0)

    @property
    def held_by_cause(self) -> dict[HoldCause, int]:
        """How often each cause has held the job back since a run last came back, or was lost."""
        return {} if self._lost_since_hold else self.holds.by_cause

    @property
    def _lost_since_hold(self) -> bool:
        """A hold takes its attempt back, so the next claim has the same number, unless a run was lost in between."""
        held = next((entry.attempt for entry in reversed(self.history) if entry.cause.startswith(HELD)), None)
        return held is not None and self.attempt > held

    @property
    def suspect(self) -> bool:
        """Whether the runs before this one, back to the last that came back, may have crashed their processes."""
        return bool(self.lost)

    @property
    def lost(self) -> tuple[AttemptError, ...]:
        """An error for each run that ended without a result and is not among `errors` yet, as of when it began.

        The next run that comes back writes them, with any outcome.
        """
        under_way = self.state is State.RUNNING
        last, count = self.attempt - under_way, self.lease.open_runs - under_way
        history = with_attempts(self.history, attempt=self.attempt)
        began = {entry.attempt: entry.at for entry in history if entry.cause == Why.CLAIMED}
        return tuple(
            AttemptError(
                attempt=attempt,
                # The history keeps a hundred entries.
                at=began.get(attempt) or self.lease.claimed_at or self.created_at,
                error_class=CRASHED,
                message=_NO_RESULT,
                retryable=True,
            )
            for attempt in range(max(1, last - count + 1), last + 1)
        )

    @property
    def known_errors(self) -> tuple[AttemptError, ...]:
        """For a reader of the job: `errors`, and `lost` after them."""
        return (*self.errors, *self.lost)

    @property
    def causing_error(self) -> AttemptError | None:
        """The error that explains its state: the last one. None without errors, and for a death as undeliverable.

        That death writes no error: those that are there came before it, and say nothing of it.
        """
        return None if self.death is DeathReason.UNDELIVERABLE else next(reversed(self.known_errors), None)

    @property
    def causing_class(self) -> str | None:
        """The class of `causing_error`."""
        return error.error_class if (error := self.causing_error) else None

    @property
    def known_history(self) -> tuple[Transition, ...]:
        """For a reader of the job: the acceptance, then `history`, with the request to cancel at its time."""
        entries = list(with_attempts(self.history, attempt=self.attempt))
        if self.cancel.requested_at:
            # It is not in `history`, which a settle writes as it was at the claim.
            insert(Transition(at=self.cancel.requested_at, state=State.RUNNING, cause=Why.CANCEL_REQUESTED), entries)
        recorded = {entry.at for entry in self.history if entry.cause == Why.MOVED}
        if self.burst and self.burst.first_moved_at and self.burst.first_moved_at not in recorded:
            # The changes by later submissions may be thousands, so the first of each kind stands for them.
            insert(Transition(at=self.burst.first_moved_at, state=Why.MOVED, cause=Why.MOVED), entries)
        if self.burst and self.burst.first_replaced_at:
            insert(Transition(at=self.burst.first_replaced_at, state=Why.REPLACED, cause=Why.REPLACED), entries)
        if self.correction.undone:
            # It is not in `history` either: the undo leaves the rest of the document as it is.
            entries.append(Transition(at=self.correction.undone.at, state=self.state, cause=Why.UNDONE))
        return (Transition(at=self.created_at, state=Why.ACCEPTED, cause=Why.ACCEPTED), *entries)

    def settled_in(self, current: "Job") -> bool:
        """Whether `current` records the end of the run that holds this job, even if a later run has claimed it."""
        return self.lease.owner is not None and current.lease.last_owner == self.lease.owner

    def settled_as(self, state: State, current: "Job") -> bool:
        """Whether this settle ended the run, and no earlier write, whose answers were lost, did so in another way."""
        other = self.released_in(current) or current.state in {State.SUCCEEDED, State.DEAD} - {state}
        return self.settled_in(current) and not other

    def released_in(self, current: "Job") -> bool:
        """Whether `current` records that the run that holds this job gave it back because of conflicts."""
        return self.settled_in(current) and current.lease.releases > self.lease.releases
