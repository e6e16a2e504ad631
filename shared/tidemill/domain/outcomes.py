"""What a run came to, and the one pure function from that to what is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.domain.dispatch import LONGEST_LANE_DELAY
from tidemill.domain.errors import CancelRequestedError, PermanentJobError, RetryAfter
from tidemill.domain.job import CRASHED, AttemptError, DeathReason, Job
from tidemill.domain.retry import RetryPolicy
from tidemill.domain.states import State, Write, allowed

LONGEST_MESSAGE_CHARACTERS: Final = 500
#: Of its errors a job keeps the last, and of its redrives as many.
ERRORS_KEPT: Final = 10

#: One entry of a DynamoDB transaction, as the low-level client takes it: `{"Put": {…}}`, `{"Update": {…}}`, …
TransactWrite = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """The run succeeded. `result` is JSON text, or None if there is none."""

    result: str | None = None
    #: The handler's own writes and its follow-up jobs: they commit with the success or not at all.
    writes: Sequence[TransactWrite] = ()
    follow_ups: Sequence[Job] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run failed. With `death`, no further attempt is made; `delay` overrides the backoff of the type."""

    error_class: str
    message: str
    death: DeathReason | None = None
    delay: timedelta | None = None

    @classmethod
    def because(cls, error: BaseException) -> "Failed":
        death = DeathReason.PERMANENT if isinstance(error, PermanentJobError) else None
        delay = error.delay if isinstance(error, RetryAfter) else None
        return cls(error_class=type(error).__name__, message=_text(error), death=death, delay=delay)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snoozed:
    """Not now: again after a while. The attempt is given back."""

    after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """Another invocation goes on from `checkpoint` (JSON text), with all attempts before it."""

    checkpoint: str | None
    after: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """It cannot run before `until`, which is no fault of its own. The attempt is given back, and no hop counted."""

    until: datetime
    #: What stands in its way, if not the limits of its key.
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """Somebody asked for the job to end, and it did without effect."""


Outcome = Succeeded | Failed | Snoozed | Continued | Held | Stopped


def outcome_of(error: BaseException) -> Outcome:
    """What an exception that left the handler means."""
    return Stopped() if isinstance(error, CancelRequestedError) else Failed.because(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What settle writes. None leaves a field as it is."""

    state: State
    result: str | None = None
    #: When the job may run again; None in a terminal state.
    due: datetime | None = None
    death: DeathReason | None = None
    error: AttemptError | None = None
    attempt: int | None = None
    hops: int | None = None
    holds: int = 0
    checkpoint: str | None = None
    writes: Sequence[TransactWrite] = field(default=())
    follow_ups: Sequence[Job] = field(default=())


def settlement(job: Job, outcome: Outcome, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    """Outcome → next state. `job` is as claimed; `draw` in [0, 1) spreads the retry."""
    written = _settlement(job, outcome, policy, now=now, draw=draw)
    if not allowed(Write.SETTLE, State.RUNNING, written.state):
        raise AssertionError(f"settle may not write {written.state}")
    return written


def errors_after(job: Job, written: Settlement) -> tuple[AttemptError, ...]:
    """The errors of `job`, as claimed, with its run's own and before it those that earlier runs did not leave.

    A run that is given back leaves these to the next, and a continuation, whose attempts begin anew, to nobody.
    """
    own = () if written.error is None else (written.error,)
    if not own and not written.state.terminal:
        return job.errors
    return (*job.errors, *job.lost, *own)[-ERRORS_KEPT:]


def parked_until(due: datetime, *, now: datetime, otherwise: State) -> State:
    """Scheduled if the lane cannot delay a message for so long."""
    return State.SCHEDULED if due - now > LONGEST_LANE_DELAY else otherwise


def outcome_before_run(job: Job, policy: RetryPolicy, *, now: datetime) -> Outcome | None:
    """Right after a claim, in this order: what ends the run before it begins. None lets it begin."""
    if job.cancel_requested_at:
        return Stopped()
    if job.deadline and job.deadline < now:
        message = f"no run of it had begun by {job.deadline.isoformat()}"
        return Failed(error_class="DeadlinePassed", message=message, death=DeathReason.DEADLINE)
    if job.hops > policy.max_hops:
        message = f"{job.hops} snoozes, continuations and follow-ups, and its type allows {policy.max_hops}"
        return Failed(error_class="TooManyHops", message=message, death=DeathReason.HOPS)
    if job.attempt > policy.max_attempts:
        # It dies instead of killing another worker.
        message = f"{job.attempt - 1} runs began and none of the last ended: killed, out of memory or out of time"
        return Failed(error_class=CRASHED, message=message, death=DeathReason.CRASHED)
    return None


def _settlement(job: Job, outcome: Outcome, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    match outcome:
        case Succeeded():
            return Settlement(
                state=State.SUCCEEDED, result=outcome.result, writes=outcome.writes, follow_ups=outcome.follow_ups
            )
        case Failed():
            return _after_failure(job, outcome, policy, now=now, draw=draw)
        case Snoozed():
            return _again(now + outcome.after, now=now, attempt=job.attempt - 1, hops=job.hops + 1)
        case Continued():
            return _again(now + outcome.after, now=now, attempt=0, hops=job.hops + 1, checkpoint=outcome.checkpoint)
        case Held():
            return _again(outcome.until, now=now, attempt=job.attempt - 1, holds=job.holds + 1)
        case Stopped():
            return Settlement(state=State.CANCELLED)


def _again(due: datetime, *, now: datetime, **fields: Any) -> Settlement:
    return Settlement(state=parked_until(due, now=now, otherwise=State.QUEUED), due=due, **fields)


def _after_failure(job: Job, failure: Failed, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    death = failure.death
    if death is None and job.attempt >= policy.max_attempts:
        death = DeathReason.EXHAUSTED
    delay = failure.delay if failure.delay is not None else timedelta(seconds=policy.delay_seconds(job.attempt, draw))
    due = None if death else now + delay
    error = AttemptError(
        attempt=job.attempt,
        at=now,
        error_class=failure.error_class,
        message=_storable(failure.message[:LONGEST_MESSAGE_CHARACTERS]),
        retryable=failure.death is None,
        next_due=due,
    )
    state = parked_until(due, now=now, otherwise=State.RETRYING) if due else State.DEAD
    return Settlement(state=state, due=due, death=death, error=error)


def _text(error: BaseException) -> str:
    """What an error says of itself, which is code of the handler's and may fail as well."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return "it could not say what it is"


def _storable(text: str) -> str:
    """Half a surrogate pair is no Unicode text, and the store refuses it."""
    return text.encode(errors="replace").decode()
