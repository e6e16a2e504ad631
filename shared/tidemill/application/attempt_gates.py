"""The gates between a claim and its handler.

A gate takes the claimed job and returns None to let it pass, or the outcome that the job has instead of a run.
`Attempt._pass_gates_then_run` names the gates in their order.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from tidemill.application.attempt_context import AttemptContext, AttemptHooks
from tidemill.application.breaker_use import BreakerUse, SharedCall
from tidemill.application.job_types import JobType
from tidemill.application.measured_run import MeasuredRun
from tidemill.application.ports import Entered, LimitSlot
from tidemill.application.superseding import LONGEST_HOLD
from tidemill.domain.adaptive_limit import ConcurrencyChange
from tidemill.domain.error_groups import decisive
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import (
    BatchCallError,
    InvalidPayloadError,
    JobTimeoutError,
    NewerSchemaError,
    RetryAfter,
    StrayBesideError,
    TidemillError,
    TransactionConflictError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.holds import HoldCause
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.limits import Limit, Rate
from tidemill.domain.outcomes import Failed, Held, Outcome, Parked, outcome_before_run
from tidemill.domain.pauses import DRAIN_PER_SECOND, Pause
from tidemill.domain.retry import LARGEST_MAX_HOPS, RetryPolicy
from tidemill.domain.waiting import Line, Wait
from tidemill.names import LARGEST_MAX_ATTEMPTS

#: Submit has checked the type and the payload of each job. If this worker does not know the type, or its model refuses
#: the payload, then one of the two is of another version, as in every deployment. The job is held for a random time
#: below a ceiling that doubles with each hold up to this. After so many holds, an hour and a half on average, it dies:
#: no deployment takes that long.
LONGEST_VERSION_HOLD_SECONDS: Final = 900.0
MOST_HOLDS_OF_A_VERSION: Final = 20
#: A suspect job may have killed the worker of its last run. It runs alone, so that it cannot use up the attempts of
#: other jobs of its batch again and again. A busy worker may never have the time for that, so after so many holds in a
#: row the job runs beside others.
MOST_HOLDS_OF_A_SUSPECT: Final = 5
LONGEST_SUSPECT_HOLD_SECONDS: Final = 3.0
#: When the store does not respond to a claimed job, it is held for a random time below the first number. The ceiling
#: doubles with each hold up to the second, so that the jobs of a throttled limit do not keep it throttled.
FIRST_OUTAGE_HOLD_SECONDS: Final = 60.0
LONGEST_OUTAGE_HOLD_SECONDS: Final = 900.0
#: After so many holds in a row the job fails: an error that occurs every time is not an outage.
MOST_HOLDS_OF_AN_OUTAGE: Final = 20
#: Another version of the code may know a type that this one does not, and may allow it the most that any type may have.
UNKNOWN_TYPE_POLICY: Final = RetryPolicy(max_attempts=LARGEST_MAX_ATTEMPTS, max_hops=LARGEST_MAX_HOPS)

#: How fast the jobs of a type start once it is loaded again: as after a pause. The line of a breaker has its own rate.
_RATE_OF_A_LINE: Final = Rate(count=DRAIN_PER_SECOND, period=timedelta(seconds=1))

#: The error of an attempt whose handler has not started.
OUT_OF_TIME: Final = "the time of the attempt ran out before its handler could start"


class Gates:
    """The gates of one attempt, and what a job gets while it passes them: type, payload, limit slot and deadline."""

    def __init__(
        self,
        context: AttemptContext,
        *,
        deadline: datetime,
        has_ended: Callable[[], bool],
        hooks: AttemptHooks,
    ) -> None:
        self._context = context
        self._has_ended = has_ended
        self._hooks = hooks
        self._slot: LimitSlot | None = None
        self._entered = Entered()
        #: For a run that has entered an adaptive limit.
        self.measured: MeasuredRun | None = None
        #: The line of the limit that the job asked for a slot, if it did.
        self._asked: Line | None = None
        self.deadline = deadline
        #: Set by `time_of_type`; None while the time of the lane counts.
        self.type_timeout: timedelta | None = None
        #: One of them is set by `read_type`.
        self._job_type: JobType | None = None
        self._unknown: UnknownJobTypeError | None = None
        self._declared_limit: Limit | None = None
        #: Set by `read_type`, if the worker counts calls of downstreams.
        self.breaker_use: BreakerUse | None = None
        #: Set by `payload_fits`.
        self.payload: Any = None

    def read_type(self, job: Job) -> None:
        """The type with the overrides of this moment. They hold until the run has ended."""
        try:
            declared = self._context.job_types.get(job.type)
        except UnknownJobTypeError as unknown:
            self._unknown = unknown
            return
        configuration = self._context.configuration()
        overrides = configuration.overrides_of(job.type, shares=declared.shared_limit, now=self._context.clock())
        self._job_type, self._declared_limit = declared.overridden(overrides), declared.limit
        if self._context.breakers:
            self.breaker_use = BreakerUse(
                self._context.breakers,
                job,
                depends_on=declared.depends_on,
                rules=declared.classify,
                deadline=lambda: self.wall_deadline,
            )

    @property
    def wall_deadline(self) -> datetime:
        """The deadline by the wall clock of this moment, to compare with other times of that."""
        return self._context.clock() + (self.deadline - self._context.steady())

    @property
    def policy(self) -> RetryPolicy:
        return self._job_type.retry if self._job_type else UNKNOWN_TYPE_POLICY

    def on_time(self, _job: Job) -> None:
        """Raises `JobTimeoutError` when the attempt has ended: its job may be running elsewhere already."""
        if self._has_ended():
            raise JobTimeoutError(OUT_OF_TIME)

    def allowed_to_run(self, job: Job) -> Outcome | None:
        """Cancelled, past its deadline, too many hops, or crashed too often: see `outcome_before_run`."""
        return outcome_before_run(job, self.policy, now=self._context.clock())

    def not_paused(self, job: Job) -> Outcome | None:
        """Its message was sent before the pause. A pause of its limit key counts in `within_limits`."""
        configuration = self._context.configuration()
        pause = configuration.pause_of(job, now=self._context.clock())
        return self._parked_for_pause(job, pause, stale=configuration.stale) if pause else None

    def type_known(self, job: Job) -> Outcome | None:
        if isinstance(self._unknown, UnloadedJobTypeError):
            return self.parked_for_type(job, self._unknown)
        if self._unknown:
            return self.left_to_another_version(job, self._unknown)
        return None

    def parked_for_type(self, job: Job, unloaded: UnloadedJobTypeError) -> Outcome:
        """The job waits until the deployed code can load the type: its own, or that of a job which follows it."""
        return self._parked_in_listed_line(job, Line.for_type(unloaded.name))

    def _parked_for_pause(self, job: Job, pause: Pause, *, stale: bool) -> Outcome:
        line = pause.target.line
        if stale:
            return self._parked_in_listed_line(job, line, pause.rate)
        # The operator has listed it with the pause.
        return _parked(line, self._context.clock())

    def _parked_in_listed_line(self, job: Job, line: Line, rate: Rate = _RATE_OF_A_LINE) -> Outcome:
        now = self._context.clock()
        # Before the park, so that wake knows the line even if this worker dies.
        self._context.limits.list_line(line, rate, job=(job.tenant, job.id), now=now)
        return _parked(line, now)

    def alone_if_suspect(self, job: Job) -> Outcome | None:
        held_enough = job.held_by(HoldCause.SUSPECT) >= MOST_HOLDS_OF_A_SUSPECT
        if job.suspect and not held_enough:
            if (deadline := self._hooks.wait_until_alone(self.deadline)) is None:
                return self._context.held_below(LONGEST_SUSPECT_HOLD_SECONDS, HoldCause.SUSPECT)
            self.deadline = deadline
        return None

    def time_of_type(self, _job: Job) -> None:
        """Bring the deadline forward if the job type allows less time than the lane."""
        job_type = self.known_type()
        self.type_timeout = job_type.timeout
        if job_type.timeout:
            self.deadline = min(self.deadline, self._context.steady() + job_type.timeout)
            self._hooks.deadline_moved()

    def time_allowed(self, job: Job, lane_timeout: timedelta | None) -> str:
        """How long a run may take, and which setting says so."""
        if self.type_timeout and (lane_timeout is None or self.type_timeout < lane_timeout):
            return f"the {self.type_timeout.total_seconds():g} s that `timeout_seconds` of {job.type} allows"
        if lane_timeout:
            return f"the {lane_timeout.total_seconds():g} s that lane {job.lane} allows"
        return "its worker had time"

    def payload_fits(self, job: Job) -> Outcome | None:
        if not self.known_type().reads_payload:
            return None
        try:
            self.payload = self.known_type().parse(self._context.payloads.load(job))
        except InvalidPayloadError as refusal:
            return self.left_to_another_version(job, refusal)
        return None

    def downstreams_work(self, _job: Job) -> None:
        """Raises `BreakerOpenError`: see `parked_for_breaker`."""
        if self.breaker_use:
            self.breaker_use.require_depends_on()

    def may_call_downstreams(self, _job: Job) -> None:
        """The job may be a probe now. The last gate: a probe that makes no call costs its breaker an interval."""
        if self.breaker_use:
            self.breaker_use.admit_depends_on()

    def record_call_result(self, error: Exception | None) -> str | None:
        """For the breakers, once the handler has ended. Returns the name of the open one that its error belongs to."""
        return self.breaker_use.handler_ended(error) if self.breaker_use and not self._has_ended() else None

    def share_call(self, call: SharedCall) -> None:
        """Its breakers count the call once, and not for each of its jobs."""
        if self.breaker_use:
            self.breaker_use.share(call)

    def parked_for_breaker(self, job: Job, name: str) -> Outcome:
        """The job waits until the breaker closes, or until it is elected to probe the downstream."""
        return self._parked_in_listed_line(job, Line.for_breaker(name))

    def within_limits(self, job: Job) -> Outcome | None:
        """Take a slot of the job's limit, or else one of its tenant. `release_slot` gives it back."""
        now, configuration = self._context.clock(), self._context.configuration()
        slot = _limit_slot(self.known_type(), self._declared_limit, self.payload, job, now)
        # If the run held two slots, it would have to give one back whenever the other is full, and wait again.
        if slot is None and (cap := configuration.cap_of(job.tenant, now=now)) is not None:
            slot = _slot(Line.for_cap(job.tenant, job.lane), Limit(concurrency=cap), job, now)
        if slot is None:
            return None
        if pause := configuration.pause_of_limit(slot.line, now=now):
            return self._parked_for_pause(job, pause, stale=configuration.stale)
        # Before the call: if its answer is lost, the slot may be taken.
        self._slot = slot
        entered = self._context.limits.acquire(slot, now=now)
        self._asked = slot.line
        if isinstance(entered, Entered):
            self._entered = entered
            if slot.limit.adaptive:
                self.measured = MeasuredRun(entered, self._context.steady, self.known_type().classify)
            return None
        self._slot = None
        parked = _parked(slot.line, now)
        return parked if isinstance(entered, Line) else Held(until=entered, cause=HoldCause.LIMIT, wait=parked.wait)

    def without_stray(self, _job: Job) -> None:
        """Raises `StrayBesideError`: see `held_for_stray`."""
        if self._hooks.stray_beside():
            raise StrayBesideError

    def held_for_stray(self) -> Outcome:
        """A process with a stray thread is slow and about to end. The job runs in another."""
        return self._context.held_below(LONGEST_SUSPECT_HOLD_SECONDS, HoldCause.STRAY)

    def held_for_outage(self, job: Job) -> Outcome | None:
        """An outage is not the job's failure, nor is a transaction of others. None after `MOST_HOLDS_OF_AN_OUTAGE`."""
        if (holds := job.held_by(HoldCause.OUTAGE)) >= MOST_HOLDS_OF_AN_OUTAGE:
            return None
        ceiling_seconds = min(FIRST_OUTAGE_HOLD_SECONDS * 2.0**holds, LONGEST_OUTAGE_HOLD_SECONDS)
        return self._context.held_below(ceiling_seconds, HoldCause.OUTAGE)

    def held_apart(self, error: Exception) -> Outcome:
        """A call of this job and others failed, which costs it no attempt. Its next run is alone, and counts."""
        meant = decisive(error.error) if isinstance(error, BatchCallError) else error
        if isinstance(meant, RetryAfter):
            held = Held(until=self._context.clock() + meant.delay, cause=HoldCause.CALL)
        else:
            held = self._context.held_below(self.policy.backoff_seconds, HoldCause.CALL)
        return replace(held, error=f"{type(error).__name__}: {error}")

    def ended_with(self, outcome: Outcome) -> None:
        """For an adaptive limit. The first outcome counts: a run that timed out may still return something."""
        if self._slot and self.measured and self._slot.sample is None:
            self._slot = replace(self._slot, sample=self.measured.sample(outcome))

    def release_slot(self, job: Job, lowered: Callable[[Line, ConcurrencyChange], None]) -> None:
        """Give back the slot of the run, and the turn that the job did not use. Best effort: both end by themselves.

        `lowered` gets the decrease of an adaptive concurrency that the run caused, and its line.
        """
        if self._slot and self._slot.limit.has_slots:
            self._context.releaser.leave(
                self._slot, line_stands=self._entered.line_stands, lowered=partial(lowered, self._slot.line)
            )
        if self.breaker_use:
            self.breaker_use.give_up()
        if job.wait and job.wait.line != self._asked:
            self._context.releaser.pass_on(job)
        for line in self.breaker_use.closed() if self.breaker_use else ():
            # A probe out of the line has just passed on its turn.
            if job.wait is None or job.wait.line != line:
                self._context.releaser.drain(line)

    def after_undo(self, job: Job) -> Outcome | None:
        """What the job supersedes has no effect any more. Raises as `Superseder.ready`."""
        superseder = self._context.superseder
        try:
            if superseder is None or job.supersedes is None or superseder.ready(job):
                return None
        except NewerSchemaError as newer:
            # The version that wrote the other document can tell.
            return self.left_to_another_version(job, newer)
        except TransactionConflictError:
            # Others write the earlier job at this moment: look again.
            pass
        seconds = min(2.0 ** min(job.held_by(HoldCause.UNDO), 30), LONGEST_HOLD.total_seconds())
        return self._context.held_below(seconds, HoldCause.UNDO)

    def known_type(self) -> JobType:
        """The type of the job, once `type_known` has let it pass."""
        if self._job_type is None:
            raise AssertionError("the gate `type_known` comes before this")
        return self._job_type

    def left_to_another_version(self, job: Job, refusal: TidemillError) -> Outcome:
        """Held for a worker of another version, without using up an attempt. Dead after `MOST_HOLDS_OF_A_VERSION`."""
        if (holds := job.held_by(HoldCause.VERSION)) >= MOST_HOLDS_OF_A_VERSION:
            return replace(Failed.because(refusal), death=DeathReason.PERMANENT)
        held = self._context.held_below(min(2.0 ** (holds + 1), LONGEST_VERSION_HOLD_SECONDS), HoldCause.VERSION)
        return replace(held, error=error_text(refusal))


def _parked(line: Line, now: datetime) -> Parked:
    return Parked(Wait(cause=line.cause, key=line.key, since=now))


def _limit_slot(job_type: JobType, declared: Limit | None, payload: Any, job: Job, now: datetime) -> LimitSlot | None:
    line = job_type.limit_line(payload, tenant=job.tenant, lane=job.lane)
    if line is None or job_type.limit is None:
        return None
    return replace(_slot(line, job_type.limit, job, now), declared=declared)


def _slot(line: Line, limit: Limit, job: Job, now: datetime) -> LimitSlot:
    return LimitSlot(
        line=line,
        limit=limit,
        token=job.owner or "",
        until=job.due or now,
        job=(job.tenant, job.id),
        released=job.wait is not None and job.wait.line == line,
    )
