"""The gate of limits: a run takes a slot of its limit, and gives it back with what an adaptive limit learns from it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from tidemill.application.attempt.attempt_holds import parked
from tidemill.application.attempt.claimed_run import ClaimedRun
from tidemill.application.attempt.gate import Gate
from tidemill.application.limits.measured_run import MeasuredRun
from tidemill.application.ports import Entered, LimitSlot
from tidemill.application.waiting.pause_gate import parked_for_pause
from tidemill.domain.attempt.outcomes import Held, Outcome
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import Line


class TurnGate(Gate):
    """The turn that a job has in the line in which it waited."""

    def leave(self) -> None:
        """Pass on a turn that the job did not use. After all others: they may want the job that it goes to."""
        job = self.run.job
        if job.wait and job.wait.line != self.run.asked:
            self.run.context.releaser.pass_on(job)


class LimitGate(Gate):
    """It takes a slot of the job's limit, or else one of its tenant."""

    def __init__(self, run: ClaimedRun) -> None:
        super().__init__(run)
        self._slot: LimitSlot | None = None
        self._entered = Entered()
        #: For a run that has entered an adaptive limit.
        self._measured: MeasuredRun | None = None

    def enter(self) -> Outcome | None:
        run, context = self.run, self.run.context
        now, configuration = context.clock(), context.configuration()
        slot = _limit_slot(run, now)
        # If the run held two slots, it would have to give one back whenever the other is full, and wait again.
        if slot is None and (cap := configuration.cap_of(run.job.tenant, now=now)) is not None:
            slot = _slot(Line.for_cap(run.job.tenant, run.job.lane), Limit(concurrency=cap), run.job, now)
        if slot is None:
            return None
        if pause := configuration.pause_of_limit(slot.line, now=now):
            return parked_for_pause(run, pause, stale=configuration.stale)
        # Before the call: if its answer is lost, the slot may be taken.
        self._slot = slot
        entered = context.limits.acquire(slot, now=now)
        run.asked = slot.line
        if isinstance(entered, Entered):
            self._entered = entered
            if slot.limit.adaptive:
                self._measured = MeasuredRun(entered, context.steady, run.job_type.classify)
                run.observe = self._measured.observed
            return None
        self._slot = None
        full = parked(slot.line, now)
        return full if isinstance(entered, Line) else Held(until=entered, cause=HoldCause.LIMIT, wait=full.wait)

    @contextmanager
    def around_call(self) -> Iterator[None]:
        """Measure the call for an adaptive limit."""
        if self._measured is None:
            yield
            return
        self._measured.begin()
        try:
            yield
        finally:
            self._measured.end()

    def ended(self, outcome: Outcome) -> None:
        """For an adaptive limit. The first outcome counts: a run that timed out may still return something."""
        if self._slot and self._measured and self._slot.sample is None:
            self._slot = replace(self._slot, sample=self._measured.sample(outcome))

    def leave(self) -> None:
        """Give back the slot. One that cannot be given back ends by itself."""
        if self._slot and self._slot.limit.has_slots:
            run, line = self.run, self._slot.line
            # The run may have caused a decrease of an adaptive concurrency.
            lowered = partial(run.hooks.observer.lowered, run.job, line)
            run.context.releaser.leave(self._slot, line_stands=self._entered.line_stands, lowered=lowered)


def _limit_slot(run: ClaimedRun, now: datetime) -> LimitSlot | None:
    job, job_type = run.job, run.job_type
    line = job_type.limit_line(run.payload, tenant=job.tenant, lane=job.lane)
    if line is None or job_type.limit is None:
        return None
    return replace(_slot(line, job_type.limit, job, now), declared=run.declared_limit)


def _slot(line: Line, limit: Limit, job: Job, now: datetime) -> LimitSlot:
    return LimitSlot(
        line=line,
        limit=limit,
        token=job.lease.owner or "",
        until=job.due or now,
        job=(job.tenant, job.id),
        released=job.wait is not None and job.wait.line == line,
    )
