"""The outcomes of a run, and the pure function from an outcome to the settlement that is written."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from tidemill.domain.attempt.effects import Effect
from tidemill.domain.attempt.error_groups import decisive
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.corrections.undo import Undo
from tidemill.domain.dispatch.dispatch import LONGEST_LANE_DELAY
from tidemill.domain.error_text import class_name, message_of, storable
from tidemill.domain.errors import CancelRequestedError, MissingInput, PermanentJobError, RetryAfter
from tidemill.domain.history import HELD, Transition, Why
from tidemill.domain.job import CRASHED, DEADLINE_PASSED, NO_ATTEMPT_LEFT, TOO_MANY_HOPS, AttemptError, DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write, allowed
from tidemill.domain.waiting.holds import BOUNDED, HoldCause
from tidemill.domain.waiting.signals import WAITS, Awaited, Signal, next_wait, unused, with_used
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Cause, Wait
from tidemill.names import BATCH_TYPE, FLOW_TYPE

LONGEST_MESSAGE_CHARACTERS: Final = 500
#: A job keeps this many of its last errors, and as many of its last redrives.
ERRORS_KEPT: Final = 10


class Succeeded(Struct, frozen=True, kw_only=True):
    """The run succeeded. `result` is JSON text, or None if the handler returned nothing."""

    result: str | None = None
    #: The handler's own writes and its follow-up jobs. They commit together with the success or not at all.
    writes: Sequence[Effect] = ()
    follow_ups: Sequence[Job] = ()
    #: What would undo the effect.
    undo: Undo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The run failed. With `death`, no further attempt is made; `delay` overrides the backoff of the type."""

    error_class: str
    message: str
    death: DeathReason | None = None
    delay: timedelta | None = None
    #: The exception that the handler raised, for its traceback in the log.
    cause: BaseException | None = field(default=None, compare=False, repr=False)
    #: The frames of the handler, if it raised, for the document.
    traceback: str = ""
    #: For a batch: the jobs that commit together with its death, and JSON text for its next run.
    follow_ups: Sequence[Job] = ()
    checkpoint: str | None = None

    @classmethod
    def because(cls, error: BaseException) -> "Failed":
        """A group of errors fails as the one of them that decides, and its message names some of the others."""
        leaf = decisive(error)
        death = DeathReason.PERMANENT if isinstance(leaf, PermanentJobError) else None
        delay = leaf.delay if isinstance(leaf, RetryAfter) else None
        return cls(error_class=class_name(leaf), message=message_of(error, leaf), death=death, delay=delay)


class Snoozed(Struct, frozen=True, kw_only=True):
    """The handler wants to run again after a while. The attempt is given back."""

    after: timedelta


class Continued(Struct, frozen=True, kw_only=True):
    """Another invocation continues from `checkpoint` (JSON text), with all its attempts left."""

    checkpoint: str | None
    after: timedelta = timedelta(0)


class Awaits(Struct, frozen=True, kw_only=True):
    """The run waits for the signal `name`, until `after` has passed. The attempt is given back; the hop is counted."""

    cause: Cause
    name: str
    after: timedelta
    checkpoint: str | None = None
    #: The most consecutive waits for it; None for no bound but that of the hops.
    most: int | None = None
    #: All signals of the job, if more came while it ran.
    arrived: tuple[Signal, ...] | None = None


class Held(Struct, frozen=True, kw_only=True):
    """The job cannot run before `until`, through no fault of its own. The attempt is given back; no hop is counted."""

    until: datetime
    cause: HoldCause
    #: Why it cannot run, where the cause alone does not tell.
    error: str | None = None
    #: The line in which it has that time.
    wait: Wait | None = None


class Parked(Struct, frozen=True):
    """The job waits for something other than its time. The attempt is given back; no hop is counted."""

    wait: Wait


class Stopped(Struct, frozen=True):
    """A cancel was requested, and the job ends without effect."""


class Expired(Struct, frozen=True):
    """The job is too old to be of use, and ends without a run. That does not count as a failure."""


Outcome = Succeeded | Failed | Snoozed | Continued | Awaits | Held | Parked | Stopped | Expired


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a run whose handler raised `error`."""
    match leaf := decisive(error):
        case CancelRequestedError():
            return Stopped()
        case MissingInput():
            return Awaits(cause=Cause.INPUT, name=leaf.name, after=leaf.after, most=leaf.most)
        case _:
            return replace(Failed.because(error), cause=error)


class Settlement(Struct, frozen=True, kw_only=True):
    """The fields that settle writes. None leaves a field unchanged."""

    state: State
    #: For the history of the job.
    cause: str = ""
    result: str | None = None
    #: When the job may run again; None in a terminal state.
    due: datetime | None = None
    death: DeathReason | None = None
    error: AttemptError | None = None
    attempt: int | None = None
    hops: int | None = None
    #: The count of holds in the job, this hold included. 0 for a run that came back.
    holds: int = 0
    hold_cause: HoldCause | None = None
    other_holds: tuple[tuple[HoldCause, int], ...] = ()
    wait: Wait | None = None
    #: The wait for a signal that begins; or the last one, if the next does not follow it directly.
    awaited: Awaited | None = None
    #: The number of signals on which this settlement rests: it is written only if no more have come. None: on none.
    signals_known: int | None = None
    #: For a flow: the outcome rests on the nodes that the run saw, so it is written only if nothing asked for a new
    #: look.
    rests_on_look: bool = False
    #: The signals with those that were used, if that changes.
    signals: tuple[Signal, ...] | None = None
    checkpoint: str | None = None
    writes: Sequence[Effect] = ()
    follow_ups: Sequence[Job] = ()
    undo: Undo | None = None


def settlement(job: Job, outcome: Outcome, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    """The next state of `job`, given as claimed. `draw` in [0, 1) spreads the retries."""
    written = _settlement(job, outcome, policy, now=now, draw=draw)
    if not allowed(Write.SETTLE, State.RUNNING, written.state):
        raise AssertionError(f"settle may not write {written.state}")
    if job.type == FLOW_TYPE and rests_on_look(outcome):
        return replace(written, rests_on_look=True)
    if job.type == BATCH_TYPE and written.state.terminal and rests_on_look(outcome):
        # A cancel of the batch is a signal: it must not end as if none had come.
        return replace(written, signals_known=len(job.signals.received))
    return written


def rests_on_look(outcome: Outcome) -> bool:
    """Whether a flow or a batch with this outcome waits or ends by what it has seen of its jobs."""
    gave_up = isinstance(outcome, Failed) and outcome.death is DeathReason.GAVE_UP
    return gave_up or isinstance(outcome, Succeeded | Awaits)


def new_errors(job: Job, written: Settlement) -> tuple[AttemptError, ...]:
    """The errors that settle adds: those of runs that reported no result, then that of this run.

    A job that is held has not run, so it stays suspect and leaves them to its next run.
    """
    if written.holds:
        return ()
    return (*job.lost, *(() if written.error is None else (written.error,)))


def errors_after(job: Job, written: Settlement) -> tuple[AttemptError, ...]:
    """The errors of `job`, given as claimed, after its settle. Only the last keeps its traceback, until a success."""
    *earlier, last = (*job.errors, *new_errors(job, written))[-ERRORS_KEPT:] or (None,)
    if last is None:
        return ()
    succeeded = written.state is State.SUCCEEDED
    return (*(replace(error, traceback="") for error in earlier), replace(last, traceback="") if succeeded else last)


def history_after(job: Job, written: Settlement, *, now: datetime) -> tuple[Transition, ...]:
    """The history of `job`, given as claimed, then the end of this run."""
    ended = Transition(at=now, state=written.state, cause=written.cause or written.state, attempt=job.attempt)
    return (*job.history, ended)


def open_runs_after(job: Job, written: Settlement) -> int:
    """`open_runs` of `job`, given as claimed: a hold takes its claim back, and any other outcome is a recorded end."""
    return job.lease.open_runs - 1 if written.holds else 0


def state_until(due: datetime, *, now: datetime, otherwise: State) -> State:
    """Scheduled if the lane cannot delay a message until `due`."""
    return State.SCHEDULED if due - now > LONGEST_LANE_DELAY else otherwise


def outcome_before_run(job: Job, policy: RetryPolicy, *, now: datetime) -> Outcome | None:
    """Whether a claimed job may run: None, or the outcome instead of a run. The first of these rules counts.

    Cancelled; past its deadline; too old; more hops than the type allows; more attempts begun than the type allows.
    """
    if job.cancel.requested_at:
        return Stopped()
    if job.lifetime.deadline and job.lifetime.deadline < now:
        message = f"no run began before the deadline {job.lifetime.deadline.isoformat()}"
        return Failed(error_class=DEADLINE_PASSED, message=message, death=DeathReason.DEADLINE)
    if job.lifetime.useful_until and job.lifetime.useful_until < now:
        return Expired()
    return _used_up(job, policy)


def _used_up(job: Job, policy: RetryPolicy) -> Failed | None:
    """The death of a job that has no hop or no attempt left."""
    if job.hops > policy.max_hops:
        message = f"{job.hops} snoozes, continuations and follow-ups; the job type allows {policy.max_hops}"
        return Failed(error_class=TOO_MANY_HOPS, message=message, death=DeathReason.HOPS)
    if job.attempt > policy.max_attempts and not job.suspect:
        # The type allows fewer attempts than before: by an override, or in another version of the code.
        message = f"{job.attempt - 1} attempts failed; the job type allows {policy.max_attempts} by now"
        return Failed(error_class=NO_ATTEMPT_LEFT, message=message, death=DeathReason.EXHAUSTED)
    if job.attempt > policy.max_attempts:
        # The job dies before it can kill another worker.
        message = f"{job.attempt - 1} runs began, and the last did not end: killed, out of memory or out of time"
        return Failed(error_class=CRASHED, message=message, death=DeathReason.CRASHED)
    return None


def _settlement(job: Job, outcome: Outcome, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    match outcome:
        case Succeeded():
            return Settlement(
                state=State.SUCCEEDED,
                result=outcome.result,
                writes=outcome.writes,
                follow_ups=outcome.follow_ups,
                undo=outcome.undo,
            )
        case Failed():
            return _after_failure(job, outcome, policy, now=now, draw=draw)
        case Snoozed():
            snoozed = {"cause": Why.SNOOZED, "attempt": job.attempt - 1, "hops": job.hops + 1}
            return _again(now + outcome.after, now=now, **snoozed, awaited=_wait_ended(job))
        case Continued():
            continued = {"cause": Why.CONTINUED, "attempt": 0, "hops": job.hops + 1}
            saved = {"checkpoint": outcome.checkpoint, "awaited": _wait_ended(job)}
            return _again(now + outcome.after, now=now, **continued, **saved)
        case Awaits():
            return _awaits(job, outcome, policy, now=now, draw=draw)
        case Held() | Parked() | Stopped() | Expired():
            return _not_run(job, outcome, now=now)


def _awaits(job: Job, outcome: Awaits, policy: RetryPolicy, *, now: datetime, draw: float) -> Settlement:
    """Parked until the end of the wait, or queued if the lane can delay it for so long.

    A signal that is there already starts it again at once. But if the last wait was for the same name and this run has
    its signal, then that one is used, and the job waits for another.
    """
    known = job.signals.received if outcome.arrived is None else outcome.arrived
    waited_for_it = job.signals.awaited is not None and job.signals.awaited.name == outcome.name
    seen = unused(job.signals.received, outcome.name) if waited_for_it else None
    came = unused(known, outcome.name) is not None and not seen
    awaited = next_wait(job.signals.awaited, outcome.cause, outcome.name, after=outcome.after, now=now)
    if outcome.most is not None and awaited.times > outcome.most:
        if not came:
            message = f"the input {outcome.name} did not come in {outcome.most} waits"
            failure = Failed(error_class=MissingInput.__name__, message=message, death=DeathReason.MISSING_INPUT)
            died = _after_failure(job, failure, policy, now=now, draw=draw)
            return replace(died, signals_known=len(known))
        # It ends before it has begun, so it does not count.
        awaited = replace(awaited, times=outcome.most)
    due = now if came else awaited.until
    parked = state_until(due, now=now, otherwise=State.QUEUED) is State.SCHEDULED
    return Settlement(
        state=State.PARKED if parked else State.QUEUED,
        cause=WAITS + outcome.name,
        due=due,
        attempt=job.attempt - 1,
        hops=job.hops + 1,
        wait=awaited.wait if parked else None,
        awaited=awaited,
        signals_known=len(known),
        signals=with_used(known, outcome.name) if seen else None,
        checkpoint=outcome.checkpoint,
    )


def _wait_ended(job: Job) -> Awaited | None:
    """The last wait, after which the job went on without another: the next one counts from 1. None: no change."""
    return replace(job.signals.awaited, times=0) if job.signals.awaited and job.signals.awaited.times else None


def _not_run(job: Job, outcome: Held | Parked | Stopped | Expired, *, now: datetime) -> Settlement:
    """The job waits or ends, and uses up no attempt."""
    match outcome:
        case Held():
            return _held(job, outcome.until, outcome.cause, now=now, wait=outcome.wait)
        case Parked():
            cause = HoldCause(outcome.wait.cause)
            parked = _held(job, now + LONGEST_PARKED, cause, now=now, wait=outcome.wait)
            return replace(parked, state=State.PARKED)
        case Stopped():
            return Settlement(state=State.CANCELLED)
        case Expired():
            return Settlement(state=State.EXPIRED)


def _held(job: Job, until: datetime, cause: HoldCause, *, now: datetime, wait: Wait | None) -> Settlement:
    before = job.held_by_cause
    others = tuple((other, times) for other, times in before.items() if other in BOUNDED - {cause})
    held = _again(until, now=now, attempt=job.attempt - 1, holds=before.get(cause, 0) + 1, other_holds=others)
    return replace(held, cause=f"{HELD}{cause}", hold_cause=cause, wait=wait)


def _again(due: datetime, *, now: datetime, **fields: Any) -> Settlement:
    return Settlement(state=state_until(due, now=now, otherwise=State.QUEUED), due=due, **fields)


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
        message=storable(failure.message[:LONGEST_MESSAGE_CHARACTERS]),
        retryable=failure.death is None,
        next_due=due,
        traceback=failure.traceback,
    )
    state = state_until(due, now=now, otherwise=State.RETRYING) if due else State.DEAD
    return Settlement(
        state=state,
        cause=death or error.error_class,
        due=due,
        death=death,
        error=error,
        follow_ups=failure.follow_ups,
        checkpoint=failure.checkpoint,
    )
