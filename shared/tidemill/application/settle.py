"""Settle: write what a run came to, insistently, and say what became of its message."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tidemill.application.attempt_report import Ending, Report
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import AttemptStore, Clock, Draw, Limits, NewToken, Payloads
from tidemill.application.submit import Submit
from tidemill.domain.claim_verdict import Verdict, judge
from tidemill.domain.errors import (
    EffectRefusedError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    TransactionTooLargeError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.job import Job, Reference
from tidemill.domain.outcomes import (
    Continued,
    Failed,
    Held,
    Outcome,
    Settlement,
    Snoozed,
    Stopped,
    Succeeded,
    settlement,
)
from tidemill.domain.retry import LARGEST_MAX_HOPS, RetryPolicy
from tidemill.domain.states import State
from tidemill.names import LARGEST_MAX_ATTEMPTS

#: How often a settle that meets another transaction or a store too busy is tried in place, and the ceiling of the first
#: pause between, which doubles.
SETTLE_TRIES: Final = 4
SETTLE_PAUSE_SECONDS: Final = 0.1
#: How often a run is given back, after a random time below a ceiling that doubles, before the conflict counts as its
#: failure: without a bound, a job whose transaction can never commit would run for ever and burn no attempt.
MOST_RELEASES: Final = 8
LONGEST_RELEASE_SECONDS: Final = 60.0
#: A message ahead of its document waits this long for the document to catch up.
AHEAD_DELAY: Final = timedelta(minutes=1)
#: A type unknown here may be known to another version of the code, which may allow as much as any.
UNKNOWN_TYPE_POLICY: Final = RetryPolicy(max_attempts=LARGEST_MAX_ATTEMPTS, max_hops=LARGEST_MAX_HOPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptContext:
    """What every attempt of a worker shares."""

    store: AttemptStore
    payloads: Payloads
    limits: Limits
    job_types: JobTypes
    submit: Submit
    clock: Clock
    new_token: NewToken
    draw: Draw
    pause: Callable[[float], None]

    def policy(self, job: Job) -> RetryPolicy:
        try:
            return self.job_types.get(job.type).retry
        except UnknownJobTypeError:
            return UNKNOWN_TYPE_POLICY

    def held_below(self, ceiling_seconds: float) -> Held:
        """Held for a random time of 1 s to 1 s more than the ceiling."""
        return Held(until=self.clock() + timedelta(seconds=1 + ceiling_seconds * self.draw()))


class Settler:
    """Ends the run that claimed a job from the message `reference`."""

    def __init__(self, reference: Reference, context: AttemptContext) -> None:
        self._reference = reference
        self._context = context

    def settle(self, job: Job, outcome: Outcome) -> Report:
        """Raises `StoreUnavailableError` when it is unknown whether it was written."""
        report = self._settle(job, outcome)
        if report.ending is not Ending.SUCCEEDED:
            self.delete_unused_payloads(job, outcome)
        return report

    def delete_unused_payloads(self, job: Job, outcome: Outcome) -> None:
        """The payloads of follow-up jobs, when another end was written, so that this one never was, nor will be.

        The document says so, and not what became of our calls: behind a conflict may be a success of our own, whose
        answer was lost. Where it cannot be read they stay, which costs nobody a job.
        """
        stored = [each for each in outcome.follow_ups if each.payload_at] if isinstance(outcome, Succeeded) else []
        if not stored:
            return
        with contextlib.suppress(TidemillError):
            current = self._context.store.get(job.tenant, job.id)
            if current and job.settled_in(current) and current.state is not State.SUCCEEDED:
                for follow_up in stored:
                    self._context.payloads.delete(follow_up)

    def _settle(self, job: Job, outcome: Outcome) -> Report:
        now = self._context.clock()
        written = settlement(job, outcome, self._context.policy(job), now=now, draw=self._context.draw())
        for attempt in range(SETTLE_TRIES):
            try:
                # The same settlement each time: a client token that comes again with other content is refused.
                self._context.store.settle(job, written, now=now)
            except WriteRefusedError as refused:
                if refused.current and refused.current.owner == job.owner and refused.current.cancel_requested_at:
                    return self.settle(job, Stopped())
                return self._fenced(job, refused.current, now)
            except (EffectRefusedError, TransactionTooLargeError) as refused:
                return self.settle(job, Failed.because(refused))
            except (StoreUnavailableError, TransactionConflictError) as unsettled:
                trouble = unsettled
                self._context.pause(SETTLE_PAUSE_SECONDS * 2**attempt * self._context.draw())
            else:
                return _report(job, outcome, written, now)
        if isinstance(trouble, StoreUnavailableError):
            raise trouble
        if job.releases >= MOST_RELEASES:
            return self.settle(job, Failed.because(trouble))
        return self._release(job, trouble)

    def _release(self, job: Job, conflict: TransactionConflictError) -> Report:
        now = self._context.clock()
        ceiling_seconds = min(2.0**job.releases, LONGEST_RELEASE_SECONDS)
        try:
            self._context.store.release(job, due=now + timedelta(seconds=ceiling_seconds * self._context.draw()))
        except WriteRefusedError as refused:
            return self._fenced(job, refused.current, now)
        return Report(ending=Ending.RELEASED, job=job, error=str(conflict))

    def _fenced(self, job: Job, current: Job | None, now: datetime) -> Report:
        """Whoever took the job over may have had it from this very message, which stays until theirs is settled."""
        verdict = judge(self._reference, current)
        until = None if verdict.acknowledged else put_back_time(verdict, current, now)
        return Report(ending=Ending.FENCED, job=job, verdict=verdict, put_back_until=until)


def put_back_time(verdict: Verdict, current: Job | None, now: datetime) -> datetime:
    """When a message that was put back can be of use."""
    return current.due if current and current.due and verdict is not Verdict.AHEAD else now + AHEAD_DELAY


def _report(job: Job, outcome: Outcome, written: Settlement, now: datetime) -> Report:
    error = f"{written.error.error_class}: {written.error.message}" if written.error else None
    match outcome:
        case Snoozed():
            ending = Ending.SNOOZED
        case Continued():
            ending = Ending.CONTINUED
        case Held():
            ending, error = Ending.HELD, outcome.error
        case Failed() if not written.state.terminal:
            # With more than the lane can delay it by, its state is scheduled.
            ending = Ending.RETRYING
        case _:
            ending = Ending(written.state.value)
    return Report(
        ending=ending,
        job=job,
        error=error,
        duration_seconds=(now - job.claimed_at).total_seconds() if job.claimed_at else 0.0,
        ended=written.state.terminal,
    )
