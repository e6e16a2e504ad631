"""How long an attempt makes its job or its message wait, and what it reports of its handler, over one job in memory."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any

import pytest

from tests.support.builders import INVOCATION, NOW, SECOND, TENANT, a_job, a_job_type, with_changes
from tests.support.one_job import attempt_at
from tests.support.single_job import Clock, carried_out
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.run import Run
from tidemill.domain.attempt.outcomes import Settlement, Succeeded
from tidemill.domain.dispatch.claim_verdict import put_back_for
from tidemill.domain.errors import (
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.waiting.holds import HoldCause
from tidemill.in_memory.single_job import Inline, OneJob
from tidemill.names import LARGEST_MAX_ATTEMPTS


class Store(OneJob):
    """One job, whose settles fail as the test says, and whose release and unclaim are noted."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.settles: list[Exception] = []
        self.released: list[datetime] = []
        self.now_stored: Job | None = None

    def settle(self, _job: Job, settlement: Settlement, *, now: datetime) -> Any:
        if self.settles:
            raise self.settles.pop(0)
        return super().settle(_job, settlement, now=now)

    def release(  # type: ignore[override]  # this one returns
        self, _job: Job, *, now: datetime, due: datetime
    ) -> None:
        self.released.append(due)

    def get(self, _tenant: str, job_id: str) -> Job | None:
        return (self.now_stored or self.job) if job_id == self.job.id else None


def _unreachable(_payload: Any, _run: Run) -> None:
    raise StoreUnavailableError("busy")


@pytest.mark.parametrize(("holds", "ceiling"), [(0, 60), (1, 120), (2, 240), (3, 480), (4, 900), (19, 900)])
def test_an_outage_holds_a_job_for_longer_each_time_up_to_a_quarter_of_an_hour(
    clock: Clock, holds: int, ceiling: int
) -> None:
    store = OneJob(a_job(holds=holds, hold_cause=HoldCause.OUTAGE))

    report = carried_out(attempt_at(store, a_job_type(_unreachable), clock))

    assert (report.ending, store.job.holds.count, store.job.holds.cause) == (Ending.HELD, holds + 1, HoldCause.OUTAGE)
    assert store.job.due == NOW + (1 + ceiling / 2) * SECOND


def test_after_twenty_holds_an_outage_is_a_failure(clock: Clock) -> None:
    store = OneJob(a_job(holds=20, hold_cause=HoldCause.OUTAGE))

    assert carried_out(attempt_at(store, a_job_type(_unreachable), clock)).ending is Ending.RETRYING


@pytest.mark.parametrize(("holds", "ceiling"), [(0, 2), (1, 4), (8, 512), (9, 900), (19, 900)])
def test_a_job_of_another_version_is_held_for_longer_each_time_up_to_a_quarter_of_an_hour(
    clock: Clock, holds: int, ceiling: int
) -> None:
    store = OneJob(a_job(holds=holds, hold_cause=HoldCause.VERSION))

    report = carried_out(attempt_at(store, None, clock))

    assert (report.ending, store.job.holds.cause) == (Ending.HELD, HoldCause.VERSION)
    assert report.error == "UnknownJobTypeError: unknown job type 'test.job'; known types: none"
    assert store.job.due == NOW + (1 + ceiling / 2) * SECOND


def test_after_twenty_holds_a_type_that_no_worker_knows_kills_its_job(clock: Clock) -> None:
    store = OneJob(a_job(holds=20, hold_cause=HoldCause.VERSION))

    assert carried_out(attempt_at(store, None, clock)).ending is Ending.DEAD
    assert store.job.death is DeathReason.PERMANENT


@pytest.mark.parametrize(("holds", "asked", "ending"), [(4, 1, Ending.HELD), (5, 0, Ending.SUCCEEDED)])
def test_a_suspect_waits_to_run_alone_five_times_in_a_row(clock: Clock, holds: int, asked: int, ending: Ending) -> None:
    store = OneJob(a_job(attempt=1, open_runs=1, holds=holds, hold_cause=HoldCause.SUSPECT))
    questions: list[datetime] = []

    def wait(deadline: datetime) -> None:
        questions.append(deadline)

    report = carried_out(attempt_at(store, a_job_type(), clock, wait_until_alone=wait))

    assert (report.ending, questions) == (ending, [NOW + INVOCATION] * asked)
    if ending is Ending.HELD:
        assert store.job.due == NOW + 2.5 * SECOND


def test_a_suspect_that_runs_alone_has_the_time_that_is_left(clock: Clock) -> None:
    store, deadlines = OneJob(a_job(attempt=1, open_runs=1)), []
    job_type = a_job_type(lambda _payload, run: deadlines.append(run.deadline))

    carried_out(attempt_at(store, job_type, clock, wait_until_alone=lambda _deadline: NOW + 3 * SECOND))

    assert deadlines == [NOW + 3 * SECOND]


def test_a_job_beside_a_stray_is_held(clock: Clock) -> None:
    store = OneJob(a_job())

    report = carried_out(attempt_at(store, a_job_type(), clock, stray_beside=lambda: True))

    assert (report.ending, store.job.holds.cause) == (Ending.HELD, HoldCause.STRAY)
    assert store.job.due == NOW + 2.5 * SECOND
    assert carried_out(attempt_at(store, a_job_type(), clock, stray_beside=lambda: False)).ending is Ending.SUCCEEDED


def test_a_job_that_a_handler_beside_outlasts_before_its_call_is_held(clock: Clock) -> None:
    store, began, asked = OneJob(a_job()), list[str](), count(1)
    job_type = a_job_type(lambda _payload, run: began.append(run.job_id))

    # The gate finds none. Before the handler, there is one.
    report = carried_out(attempt_at(store, job_type, clock, stray_beside=lambda: next(asked) > 1))

    assert (report.ending, store.job.holds.cause, began) == (Ending.HELD, HoldCause.STRAY, [])


@pytest.mark.parametrize(
    ("timeout", "deadline"), [(None, INVOCATION), (2 * SECOND, 2 * SECOND), (90 * SECOND, INVOCATION)]
)
def test_the_earlier_of_the_two_deadlines_counts_and_the_worker_hears_of_a_change(
    clock: Clock, timeout: timedelta | None, deadline: timedelta
) -> None:
    moves: list[int] = []
    job_type = replace(a_job_type(), timeout=timeout)
    attempt = attempt_at(OneJob(a_job()), job_type, clock, deadline_moved=lambda: moves.append(1))

    carried_out(attempt)

    assert (attempt.deadline, bool(moves)) == (NOW + deadline, timeout is not None)


@pytest.mark.parametrize(("late", "runs"), [(-1, 1), (0, 0), (1, 0)])
def test_a_handler_does_not_start_once_the_deadline_has_come(clock: Clock, late: int, runs: int) -> None:
    store, ran = OneJob(a_job()), []

    class Slow(Inline):
        def load(self, job: Job) -> str:
            clock.now = NOW + INVOCATION + late * timedelta(milliseconds=1)
            return super().load(job)

    job_type = a_job_type(lambda _payload, _run: ran.append(1))
    report = carried_out(attempt_at(store, job_type, clock, payloads=Slow()))

    assert (report.ending, len(ran)) == (Ending.SUCCEEDED if runs else Ending.RETRYING, runs)
    assert [error.error_class for error in store.job.errors] == ["JobTimeoutError"] * (not runs)


def test_a_handler_is_stray_only_while_it_runs_after_its_attempt_has_ended(clock: Clock) -> None:
    seen: list[bool] = []

    def handler(_payload: Any, _run: Run) -> None:
        seen.append(attempt.is_stray())
        attempt.expire()
        seen.append(attempt.is_stray())

    attempt = attempt_at(OneJob(a_job()), a_job_type(handler), clock)
    before = attempt.is_stray()
    carried_out(attempt)

    assert (before, seen, attempt.is_stray()) == (False, [False, True], False)


@pytest.mark.parametrize(("receives", "ceiling"), [(1, 2), (2, 2.5), (3, 3.125), (29, 900), (5000, 900)])
def test_a_message_without_an_answer_is_put_back_for_longer_with_each_receive(
    clock: Clock, receives: int, ceiling: float
) -> None:
    attempt = attempt_at(OneJob(a_job()), a_job_type(), clock, receives=receives)

    attempt.unavailable(StoreUnavailableError("busy"))

    until = NOW + (1 + ceiling / 2) * SECOND
    assert attempt.report == Report(ending=Ending.UNAVAILABLE, error="busy", put_back_until=until)


def test_a_message_comes_back_within_half_of_the_time_that_an_outage_has_lasted() -> None:
    lasted = timedelta(0)
    for receives in range(1, 2 * LARGEST_MAX_ATTEMPTS + 11):
        longest = put_back_for(receives, draw=1)
        assert longest <= max(lasted / 2 + SECOND, 6 * SECOND)
        lasted += put_back_for(receives, draw=0.5)
    assert lasted > timedelta(hours=4), "SQS gives up on the message after as many receives"


@pytest.mark.parametrize(("releases", "ceiling"), [(0, 1), (1, 2), (5, 32), (6, 60), (7, 60)])
def test_a_run_that_only_meets_conflicts_is_released_for_longer_each_time(
    clock: Clock, releases: int, ceiling: int
) -> None:
    pauses: list[float] = []
    store = Store(a_job(releases=releases))
    store.settles = [TransactionConflictError()] * 4

    report = carried_out(attempt_at(store, a_job_type(), clock, pause=pauses.append))

    assert report.ending is Ending.RELEASED
    assert store.released == [NOW + ceiling / 2 * SECOND]
    assert pauses == [0.05, 0.1, 0.2, 0.4]


def test_after_eight_releases_a_conflict_is_a_failure(clock: Clock) -> None:
    store = Store(a_job(releases=8))
    store.settles = [TransactionConflictError()] * 4

    assert carried_out(attempt_at(store, a_job_type(), clock)).ending is Ending.RETRYING
    assert store.released == []


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({"cancel_requested_at": NOW}, Ending.CANCELLED),
        ({"cancel_requested_at": NOW, "owner": "another"}, Ending.FENCED),
        ({"cancel_requested_at": None}, Ending.FENCED),
        (None, Ending.FENCED),
    ],
)
def test_a_run_that_may_not_live_on_is_cancelled_only_if_it_still_holds_the_job(
    clock: Clock, changes: dict[str, Any] | None, ending: Ending
) -> None:
    job = a_job(state=State.RUNNING, due=NOW + 9 * SECOND, owner="mine")
    current = None if changes is None else with_changes(job, **changes)
    store = Store(a_job())
    store.settles = [WriteRefusedError(Write.SETTLE, current)]

    report = carried_out(attempt_at(store, a_job_type(), clock, new_token=lambda: "mine"))

    assert report.ending is ending
    until = NOW + 9 * SECOND if ending is Ending.FENCED and current else None
    assert report.put_back_until == until


@pytest.mark.parametrize(
    ("lane", "own", "said"),
    [
        (None, None, "it took longer than its worker had time"),
        (9 * SECOND, None, "it took longer than the 9 s that lane default allows"),
        (9 * SECOND, 9 * SECOND, "it took longer than the 9 s that lane default allows"),
        (9 * SECOND, 8 * SECOND, "it took longer than the 8 s that `timeout_seconds` of test.job allows"),
        (None, 8 * SECOND, "it took longer than the 8 s that `timeout_seconds` of test.job allows"),
    ],
)
def test_a_run_that_is_over_its_time_says_who_set_it(
    clock: Clock, lane: timedelta | None, own: timedelta | None, said: str
) -> None:
    store = OneJob(a_job())
    end: list[Callable[[], None]] = []
    job_type = replace(a_job_type(lambda _payload, _run: end[0]()), timeout=own)
    attempt = attempt_at(store, job_type, clock, lane_timeout=lane)
    end.append(attempt.expire)

    carried_out(attempt)

    assert [error.message for error in store.job.errors] == [said]


class Kept(Inline):
    """Payloads whose deletions are noted."""

    def __init__(self, error: Exception | None = None) -> None:
        self.deleted: list[str] = []
        self.error = error

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        assert (tenant, location is not None) == (TENANT, True)
        self.deleted.append(job_id)
        if self.error:
            raise self.error


FOLLOW_UPS = Succeeded(
    follow_ups=(a_job(id="stored", payload_at="item/1"), a_job(id="inline"), a_job(id="last", payload_at="item/2"))
)


@pytest.mark.parametrize(
    ("changes", "deleted"),
    [
        ({"state": State.CANCELLED, "last_owner": "mine"}, ["stored", "last"]),
        ({"state": State.CANCELLED, "last_owner": "another"}, []),
        ({"state": State.RUNNING}, []),
    ],
)
@pytest.mark.parametrize("error", [None, StoreUnavailableError("busy")])
def test_payloads_of_follow_ups_go_only_when_the_documents_show_that_the_run_ended_without_them(
    clock: Clock, changes: dict[str, Any], deleted: list[str], error: Exception | None
) -> None:
    store, payloads = Store(a_job()), Kept(error)
    store.settles = [WriteRefusedError(Write.SETTLE, None)]
    store.now_stored = a_job(**changes)
    attempt = attempt_at(store, a_job_type(), clock, payloads=payloads, new_token=lambda: "mine")
    assert attempt.claim(remaining=INVOCATION)

    attempt.finish(FOLLOW_UPS)

    assert payloads.deleted == deleted
