"""`MeasuredRun`: the time that counts, and which ends of a run tell something of its downstream."""

import math
import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.single_job import Clock
from tidemill.application.limits.measured_run import MeasuredRun
from tidemill.application.ports import Entered
from tidemill.domain.attempt.outcomes import Continued, Failed, Outcome, Snoozed, Stopped, Succeeded
from tidemill.domain.breakers.downstream_errors import Classify, ErrorClass
from tidemill.domain.errors import JobTimeoutError, PermanentJobError, RetryAfter
from tidemill.domain.limits.adaptive_limit import Adapted, RunSample, Trouble
from tidemill.domain.records import replace

ENTERED = Entered(adapted=Adapted(allowed=4, falls=1), taken=3)
DONE = Succeeded(result=None)


def sample(seconds: float, trouble: Trouble | None = None) -> RunSample:
    assert ENTERED.adapted
    return RunSample(entered=ENTERED.adapted, taken=3, seconds=seconds, trouble=trouble)


def run_of(seconds: float = 2, *, entered: Entered = ENTERED, rules: Classify | None = None) -> MeasuredRun:
    clock = Clock()
    run = MeasuredRun(entered, clock, rules)
    run.begin()
    clock.now += seconds * SECOND
    run.end()
    return run


@pytest.mark.parametrize(
    "outcome",
    [DONE, Snoozed(after=SECOND), Continued(checkpoint=None)],
    ids=lambda each: type(each).__name__,
)
def test_a_handler_that_came_back_tells_how_long_it_took(outcome: Outcome) -> None:
    assert run_of(2).sample(outcome) == sample(2)


@pytest.mark.parametrize(("seconds", "taken"), [(2, 2), (0, 0), (-5, 0)])
def test_a_clock_that_was_set_back_takes_no_time(seconds: float, taken: float) -> None:
    assert run_of(seconds).sample(DONE) == sample(taken)


def test_a_run_whose_handler_did_not_begin_tells_nothing() -> None:
    run = MeasuredRun(ENTERED, Clock())
    run.end()
    assert run.sample(DONE) is None


def test_a_run_that_has_not_ended_has_taken_no_time() -> None:
    run = MeasuredRun(ENTERED, Clock())
    run.begin()
    assert run.sample(DONE) == sample(0)


def test_a_run_under_a_fixed_concurrency_tells_nothing() -> None:
    assert run_of(entered=replace(ENTERED, adapted=None)).sample(DONE) is None


@pytest.mark.parametrize(
    ("reports", "seconds", "trouble"),
    [
        ([(0.25, False)], 0.25, None),
        ([(0.25, False), (0.75, False), (0.5, False)], 0.75, None),
        ([(5.0, False)], 5.0, None),
        ([(0, False)], 0, None),
        ([(None, True)], 2, Trouble.THROTTLED),
        ([(None, False)], 2, None),
        ([(0.5, True), (0.25, False)], 0.5, Trouble.THROTTLED),
    ],
)
def test_the_slowest_reported_call_counts_instead_of_the_handler(
    reports: list[tuple[float | None, bool]], seconds: float, trouble: Trouble | None
) -> None:
    clock = Clock()
    run = MeasuredRun(ENTERED, clock)
    run.begin()
    for reported, throttled in reports:
        run.observed(reported, throttled)
    clock.now += 2 * SECOND
    run.end()
    assert run.sample(DONE) == sample(seconds, trouble)


def test_a_report_after_the_end_of_the_handler_still_counts_instead_of_it() -> None:
    run = run_of(2)
    run.observed(0.5, throttled=False)
    assert run.sample(DONE) == sample(0.5)


@pytest.mark.parametrize("seconds", [-0.001, math.inf, math.nan, True, timedelta(seconds=1)])
def test_a_time_that_no_call_can_take_is_refused(seconds: Any) -> None:
    run = run_of(2)
    with pytest.raises(ValueError, match=f"seconds is {re.escape(repr(seconds))}; it must be a number, 0 or above"):
        run.observed(seconds, throttled=True)
    assert run.sample(DONE) == sample(2)


def failed(cause: BaseException | None, error_class: str = "") -> Failed:
    return Failed(error_class=error_class or type(cause).__name__, message="no", cause=cause)


def always(name: str) -> Any:
    return lambda _error: name


@pytest.mark.parametrize(
    ("outcome", "rules", "trouble"),
    [
        # The attempt ended at its deadline, while its handler still ran: no exception was raised.
        (failed(None, JobTimeoutError.__name__), None, Trouble.TIMEOUT),
        (failed(None, "ValueError"), None, None),
        (failed(TimeoutError()), None, Trouble.TIMEOUT),
        (failed(ConnectionError()), None, Trouble.ERROR),
        (failed(RetryAfter(1, "busy")), None, Trouble.THROTTLED),
        (failed(PermanentJobError("no")), None, None),
        (failed(KeyError("bug")), None, None),
        (failed(KeyError("bug")), always(ErrorClass.TRANSIENT), Trouble.ERROR),
        (failed(KeyError("bug")), always(ErrorClass.THROTTLED), Trouble.THROTTLED),
        (failed(TimeoutError()), always(ErrorClass.PERMANENT), None),
        (Stopped(), None, None),
    ],
)
def test_a_failure_counts_if_the_downstream_is_to_blame_for_it(
    outcome: Outcome, rules: Classify | None, trouble: Trouble | None
) -> None:
    assert run_of(2, rules=rules).sample(outcome) == (sample(2, trouble) if trouble else None)


def test_a_throttled_call_counts_with_every_end_of_the_run() -> None:
    run = run_of(2)
    run.observed(None, throttled=True)
    assert run.sample(failed(KeyError("bug"))) == sample(2, Trouble.THROTTLED)


def test_the_run_has_its_time_from_the_clock_that_it_is_given() -> None:
    clock = Clock(NOW + SECOND)
    run = MeasuredRun(ENTERED, clock)
    run.begin()
    clock.now = NOW + 4 * SECOND
    run.end()
    assert run.sample(DONE) == sample(3)
