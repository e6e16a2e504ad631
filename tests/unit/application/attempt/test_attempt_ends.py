"""The end of an attempt whose handler may go on, and the steps that its end must respect, over one job in memory."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, a_job_type
from tests.support.one_job import attempt_at
from tests.support.single_job import Clock, carried_out
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import JobTimeoutError, StepError, StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.steps.steps import Step
from tidemill.domain.waiting.holds import HoldCause
from tidemill.in_memory.single_job import Inline, OneJob

LATE = JobTimeoutError("it took longer than its worker had time")


class Interrupted(OneJob):
    """Its settle calls this, once."""

    act: Callable[[], None] = staticmethod(lambda: None)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        act, self.act = self.act, lambda: None
        act()
        return super().settle(job, settlement, now=now)


def test_the_first_report_of_an_attempt_counts(clock: Clock) -> None:
    store = Interrupted(a_job())
    attempt = attempt_at(store, a_job_type(), clock)
    store.act = lambda: attempt.unavailable(LATE)

    assert carried_out(attempt).ending is Ending.UNAVAILABLE
    assert store.job.state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("expires", "stray"),
    # A run reports once it is settled. One whose message was put back does not report.
    [(True, [False, True, True]), (False, [False, True])],
)
def test_a_handler_is_stray_from_the_end_of_its_time_on_and_once_its_message_was_put_back(
    clock: Clock, expires: bool, stray: list[bool]
) -> None:
    store, seen = Interrupted(a_job()), list[bool]()

    def look() -> None:
        seen.append(attempt.is_stray())

    def handler(_payload: Any, _run: Any) -> None:
        look()
        if expires:
            attempt.expire()
        else:
            attempt.unavailable(LATE)
        look()

    attempt = attempt_at(store, a_job_type(handler), clock)
    store.act = look
    carried_out(attempt)

    assert seen == stray
    assert not attempt.is_stray()


class Loading(Inline):
    """Payloads that act on each load."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act

    def load(self, job: Job) -> str:
        self._act()
        return super().load(job)


@pytest.mark.parametrize("how", ["settled", "not settled", "put back"])
def test_no_handler_begins_after_the_end_of_its_attempt(clock: Clock, how: str) -> None:
    runs: list[int] = []
    store = Interrupted(a_job())

    def down() -> None:
        store.act = down
        raise StoreUnavailableError("down")

    if how == "not settled":
        store.act = down

    def end() -> None:
        if how == "put back":
            attempt.unavailable(LATE)
            return
        try:
            attempt.expire()
        except StoreUnavailableError:
            assert how == "not settled"

    attempt = attempt_at(
        store, a_job_type(lambda _payload, _run: runs.append(1)), clock, payloads=Loading(end), pause=lambda _: None
    )
    carried_out(attempt)
    assert runs == []


@pytest.mark.parametrize("late", [True, False])
def test_a_handler_that_goes_on_after_its_time_saves_and_takes_nothing_more(clock: Clock, late: bool) -> None:
    store, errors = OneJob(a_job()), list[str]()

    def handler(_payload: Any, run: Any) -> None:
        if late:
            attempt.expire()
        acts: list[Callable[[], Any]] = [partial(run.checkpoint, {"page": 1}), partial(run.step, "charge", int)]
        for act in acts:
            try:
                act()
            except JobTimeoutError as error:
                errors.append(str(error))

    attempt = attempt_at(store, a_job_type(handler), clock)
    carried_out(attempt)

    assert errors == [f"{LATE}, and has been settled as failed"] * (2 * late)
    assert (len(store.saved), len(store.recorded)) == ((0, 0) if late else (1, 1))


def test_the_report_of_a_run_knows_the_steps_that_it_has_recorded(clock: Clock) -> None:
    def handler(_payload: Any, run: Any) -> None:
        run.step("charge", lambda: 7)
        attempt.unavailable(LATE)

    attempt = attempt_at(OneJob(a_job()), a_job_type(handler), clock)
    report: Report = carried_out(attempt)

    assert report.job is not None
    assert [step.name for step in report.job.steps.recorded] == ["charge"]


def test_the_fault_of_a_step_counts_more_than_what_the_handler_makes_of_it(clock: Clock) -> None:
    def handler(_payload: Any, run: Any) -> None:
        try:
            run.step("not a name!", lambda: 7)
        except StepError:
            raise ValueError("another") from None

    store = OneJob(a_job())
    carried_out(attempt_at(store, a_job_type(handler), clock))
    assert "not a name!" in store.job.errors[-1].message


CHARGED = Step(name="charge", at=NOW - SECOND, attempt=1, result="7", version="old")


@pytest.mark.parametrize(
    ("worker", "ending", "error_class"),
    [("request/old", Ending.DEAD, "StepsChangedError"), ("request/new", Ending.HELD, None)],
)
def test_a_success_without_a_recorded_step_is_left_to_the_version_that_recorded_it(
    clock: Clock, worker: str, ending: Ending, error_class: str | None
) -> None:
    store = OneJob(a_job(steps=(CHARGED,)))

    report = carried_out(attempt_at(store, a_job_type(), clock, worker=worker))

    assert report.ending is ending
    assert [error.error_class for error in store.job.errors] == ([error_class] if error_class else [])
    assert store.job.holds.cause == (None if error_class else HoldCause.VERSION)
