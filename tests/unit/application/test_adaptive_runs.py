"""What a run under an adaptive concurrency measures, and what its end tells the limit."""

import re
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import INVOCATION, NOW, SECOND, a_job, a_job_type
from tests.support.one_job import attempt_at
from tests.support.single_job import Clock, carried_out
from tidemill import Continue, GiveUp, PermanentJobError, RetryAfter, Run, Snooze
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.breakers.downstream_errors import Classify
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import Adapted, Adaptive, ConcurrencyChange, RunSample, Trouble
from tidemill.domain.limits.limits import Limit
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Line
from tidemill.in_memory.single_job import OneJob, Unlimited

FOUND = Adapted(allowed=4, falls=1)
ADAPTIVE = Limit(adaptive=Adaptive(floor=1, ceiling=9, target_seconds=1))


class Roomy(Unlimited):
    """Lets each run in, and keeps how it left."""

    def __init__(self) -> None:
        self.left: list[tuple[LimitSlot, ConcurrencyChange | None]] = []

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Entered | datetime | Line:
        return Entered(adapted=FOUND, taken=3)

    def release(self, slot: LimitSlot, change: ConcurrencyChange | None = None) -> bool:
        self.left.append((slot, change))
        return False


class Observer:
    """A `RunObserver` that keeps its reports."""

    def __init__(self) -> None:
        self.reported: list[tuple[Job, Line, ConcurrencyChange]] = []

    def claimed(self, job: Job) -> None:
        pass

    def ended(self, reference: Any, report: Any) -> None:
        pass

    def lowered(self, job: Job, line: Line, change: ConcurrencyChange) -> None:
        self.reported.append((job, line, change))


class Ran:
    """One run of a handler that takes some seconds, and how it left the limit."""

    def __init__(
        self, act: Any, *, seconds: float = 0.5, limit: Limit = ADAPTIVE, rules: Classify | None = None
    ) -> None:
        self.clock, self.limits, self.observer = Clock(), Roomy(), Observer()

        def handler(_payload: Any, run: Run) -> Any:
            self.clock.now += seconds * SECOND
            return act(run)

        job_type = replace(a_job_type(handler), limit=limit, classify=rules)
        carried_out(attempt_at(OneJob(a_job(id="j")), job_type, self.clock, limits=self.limits, observer=self.observer))
        ((self.slot, self.change),) = self.limits.left


def raising(error: BaseException) -> Any:
    def act(_run: Run) -> None:
        raise error

    return act


def answered(status: int) -> Exception:
    """The error of a client, as of `requests`, for this HTTP status."""
    error = Exception(f"it answered {status}")
    error.status_code = status  # type: ignore[attr-defined]
    return error


@pytest.mark.parametrize("returned", [None, {"n": 1}, Snooze(SECOND), Continue(1)])
def test_a_run_that_returns_gives_the_time_of_its_handler(returned: Any) -> None:
    ran = Ran(lambda _run: returned)

    assert ran.slot.sample == RunSample(entered=FOUND, taken=3, seconds=0.5)
    assert ran.change == ConcurrencyChange(step=0.25, sample=ran.slot.sample)


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (RetryAfter(5), Trouble.THROTTLED),
        (answered(429), Trouble.THROTTLED),
        (answered(503), Trouble.ERROR),
        (TimeoutError("read"), Trouble.TIMEOUT),
        (ConnectionError("reset"), Trouble.ERROR),
    ],
)
def test_a_failure_that_may_pass_lowers_the_number_and_is_reported(error: Exception, trouble: Trouble) -> None:
    ran = Ran(raising(error))

    assert ran.change is not None
    assert ran.change.lowered == Adapted(allowed=4 * 0.7, falls=2, fell_at=ran.clock.now, why=trouble)
    ((job, line, change),) = ran.observer.reported
    assert (job.id, line, change) == ("j", ran.slot.line, ran.change)


def test_a_slow_run_lowers_the_number() -> None:
    ran = Ran(lambda _run: None, seconds=1.5)

    assert ran.change is not None
    assert ran.change.lowered is not None
    assert ran.change.lowered.why is Trouble.SLOW


@pytest.mark.parametrize("act", [raising(PermanentJobError("no")), lambda _run: GiveUp("no")])
def test_a_job_that_ends_for_good_says_nothing_of_its_downstream(act: Any) -> None:
    assert Ran(act).slot.sample is None


@pytest.mark.parametrize("error", [answered(404), KeyError("a defect"), FileNotFoundError("no network error")])
def test_an_error_that_is_not_the_downstreams_fault_says_nothing_of_it(error: Exception) -> None:
    assert Ran(raising(error)).slot.sample is None


@pytest.mark.parametrize(
    ("named", "trouble"), [("throttled", Trouble.THROTTLED), ("transient", Trouble.ERROR), ("defect", None)]
)
def test_the_rules_of_the_type_come_first(named: str, trouble: Trouble | None) -> None:
    sample = Ran(
        raising(ConnectionError("reset") if trouble is None else KeyError("k")), rules=lambda _: named
    ).slot.sample

    assert (sample.trouble if sample else None) is trouble


def test_the_slowest_reported_call_counts_instead_of_the_handler() -> None:
    def act(run: Run) -> None:
        run.observed(0.2)
        run.observed(0.9)
        run.observed(0.1)

    assert Ran(act, seconds=60).slot.sample == RunSample(entered=FOUND, taken=3, seconds=0.9)


def test_a_handler_may_report_throttling_and_succeed() -> None:
    ran = Ran(lambda run: run.observed(throttled=True))

    assert ran.slot.sample == RunSample(entered=FOUND, taken=3, seconds=0.5, trouble=Trouble.THROTTLED)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_a_reported_time_is_a_number(seconds: float) -> None:
    def act(run: Run) -> None:
        with pytest.raises(ValueError, match=re.escape(f"seconds is {seconds!r}; it must be a number, 0 or above")):
            run.observed(seconds)

    Ran(act)


def test_a_run_under_a_fixed_limit_measures_nothing() -> None:
    ran = Ran(lambda run: run.observed(9, throttled=True), limit=Limit(concurrency=2))

    assert (ran.slot.sample, ran.change) == (None, None)


def test_a_run_whose_time_runs_out_counts_as_a_timeout_although_its_handler_comes_back() -> None:
    clock, limits = Clock(), Roomy()
    attempt = attempt_at(OneJob(a_job(id="j")), replace(a_job_type(), limit=ADAPTIVE), clock, limits=limits)
    assert attempt.claim(remaining=INVOCATION)
    outcome = attempt.run()

    attempt.expire()
    attempt.finish(outcome)

    ((slot, _),) = limits.left
    assert slot.sample == RunSample(entered=FOUND, taken=3, seconds=0.0, trouble=Trouble.TIMEOUT)
    assert clock.now == NOW
