"""The wake use case: order, pace, time limit and completeness."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job, brought_to, stored
from tests.support.single_job import Clock
from tidemill.application.ports import WHOLE, JobStore, Part
from tidemill.application.waiting import wake
from tidemill.application.waiting.wake import MOST_PER_SECOND, WAKE_RESERVE, Waker, Woken
from tidemill.domain.errors import (
    MalformedDocumentError,
    NewerSchemaError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import WAKE_INTERVAL_SECONDS, WAKE_WINDOW_SECONDS, Lane

WINDOW = timedelta(seconds=WAKE_WINDOW_SECONDS)
INVOCATION = timedelta(seconds=WAKE_INTERVAL_SECONDS)


@dataclass
class Scheduled:
    """The part of a `JobStore` that wake uses, over jobs in a list."""

    jobs: list[Job]
    woken: list[str] = field(default_factory=list)
    #: What a wake of the job with that id raises.
    faults: dict[str, Exception] = field(default_factory=dict)

    #: The parts that were asked for.
    parts: list[Part] = field(default_factory=list)

    def scheduled(self, *, before: datetime, part: Part, unreadable: Any) -> Iterator[Job]:
        self.parts.append(part)
        due = [job for job in self.jobs if job.due and job.due <= before and job.id not in set(self.woken)]
        return iter(sorted(due, key=lambda job: (job.due, job.id)))

    def wake(self, job: Job, *, now: datetime) -> None:
        if fault := self.faults.get(job.id):
            raise fault
        self.woken.append(job.id)


@dataclass
class Paused:
    """A clock that only pauses advance."""

    clock: Clock
    pauses: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.now += timedelta(seconds=seconds)


def waker_of(store: Any, clock: Clock) -> tuple[Waker, Paused]:
    pause = Paused(clock)
    return Waker(store=store, clock=clock, pause=pause), pause


def overdue(number: int) -> list[Job]:
    """The backlog after an hour without the scheduler."""
    hour = timedelta(hours=1)
    return [a_job(state=State.SCHEDULED, due=NOW - hour + hour * (index / number)) for index in range(number)]


def test_jobs_due_within_the_window_are_queued_and_keep_their_due_time(store: DynamoJobStore) -> None:
    soon = brought_to(store, State.SCHEDULED, due=NOW + 1000 * SECOND)
    later = brought_to(store, State.SCHEDULED, due=NOW + 1000 * SECOND + WINDOW + SECOND)
    waker, _ = waker_of(store, Clock(NOW + 1000 * SECOND))

    woken = waker.wake(time_left=INVOCATION)

    assert woken == Woken(jobs={Lane.DEFAULT: 1}, ahead=timedelta(0))
    assert stored(store, soon) == replace(
        soon,
        state=State.QUEUED,
        history=(Transition(at=NOW + 1000 * SECOND, state=State.QUEUED, cause=Why.DUE),),
    )
    assert stored(store, later) == later


def test_a_backlog_is_woken_at_the_pace_limit_earliest_first() -> None:
    jobs = overdue(5_000)
    store, clock = Scheduled(jobs), Clock()
    waker, pause = waker_of(store, clock)

    woken = waker.wake(time_left=INVOCATION)

    assert (sum(woken.jobs.values()), woken.finished, woken.ahead) == (5_000, True, -timedelta(hours=1))
    # Concurrent within one second; in order from one second to the next.
    seconds = [store.woken[start : start + MOST_PER_SECOND] for start in range(0, 5_000, MOST_PER_SECOND)]
    expected = [job.id for job in jobs]
    assert [sorted(each) for each in seconds] == [
        sorted(expected[start : start + MOST_PER_SECOND]) for start in range(0, 5_000, MOST_PER_SECOND)
    ]
    assert pause.pauses == [pytest.approx(1.0)] * (5_000 // MOST_PER_SECOND)


def test_the_next_call_starts_with_the_jobs_that_were_left() -> None:
    store, clock = Scheduled(overdue(5_000)), Clock()
    waker, _ = waker_of(store, clock)

    first = waker.wake(time_left=5 * SECOND + WAKE_RESERVE)

    assert (sum(first.jobs.values()), first.finished) == (5 * MOST_PER_SECOND, False)
    second = waker.wake(time_left=INVOCATION)
    assert (sum(second.jobs.values()), second.finished) == (3_000, True)
    assert len(set(store.woken)) == len(store.woken) == 5_000


def test_a_call_ends_within_the_interval_even_with_more_time() -> None:
    store, clock = Scheduled(overdue(30_000)), Clock()
    waker, _ = waker_of(store, clock)

    woken = waker.wake(time_left=timedelta(minutes=15))

    assert not woken.finished
    assert sum(woken.jobs.values()) == MOST_PER_SECOND * WAKE_INTERVAL_SECONDS


@pytest.mark.parametrize(("jobs", "late_seconds"), [(500, 0), (1_200, 332)])
def test_many_jobs_of_one_tenant_delay_another_by_what_the_rate_and_the_window_leave(
    monkeypatch: pytest.MonkeyPatch, jobs: int, late_seconds: int
) -> None:
    """Wake goes by the time, and not by the tenant. A call of 60 s wakes for 57 s."""
    monkeypatch.setattr(wake, "MOST_PER_SECOND", 2)
    due, clock = NOW + WINDOW, Clock()
    flood = [a_job(state=State.SCHEDULED, due=due) for _ in range(jobs)]
    other = a_job(state=State.SCHEDULED, due=due, tenant="other", id="the last")
    store = Scheduled([*flood, other])
    waker, _ = waker_of(store, clock)

    while other.id not in store.woken:
        began = clock.now
        waker.wake(time_left=INVOCATION)
        if other.id not in store.woken:
            clock.now = began + INVOCATION

    assert max((clock.now - due).total_seconds(), 0) == pytest.approx(late_seconds, abs=2)


def test_a_concurrent_cancel_does_not_stop_the_wake_of_others() -> None:
    jobs = overdue(3)
    store = Scheduled(jobs, faults={jobs[0].id: WriteRefusedError("wake", None)})
    waker, _ = waker_of(store, Clock())

    woken = waker.wake(time_left=INVOCATION)

    assert (sum(woken.jobs.values()), woken.finished) == (2, True)


@pytest.mark.parametrize(
    "error", [StoreUnavailableError("throttled"), TransactionConflictError("another job supersedes it")]
)
def test_a_job_that_the_store_failed_to_wake_is_left_to_the_next_call_and_stops_no_other(error: Exception) -> None:
    jobs = overdue(3 * MOST_PER_SECOND)
    store = Scheduled(jobs, faults={jobs[7].id: error})
    waker, _ = waker_of(store, Clock())

    first = waker.wake(time_left=INVOCATION)

    assert (sum(first.jobs.values()), first.finished) == (3 * MOST_PER_SECOND - 1, False)
    store.faults.clear()
    assert waker.wake(time_left=INVOCATION).finished
    assert set(store.woken) == {job.id for job in jobs}


def test_an_outage_of_the_store_ends_the_call() -> None:
    jobs = overdue(3 * MOST_PER_SECOND)
    store = Scheduled(jobs, faults={job.id: StoreUnavailableError("outage") for job in jobs})
    waker, pause = waker_of(store, Clock())

    assert waker.wake(time_left=INVOCATION) == Woken(jobs={}, finished=False)
    assert pause.pauses == []


def test_a_call_whose_time_ends_amid_a_batch_ends_without_a_pause() -> None:
    clock = Clock()

    class Slow(Scheduled):
        def wake(self, job: Job, *, now: datetime) -> None:
            super().wake(job, now=now)
            clock.now += SECOND / 10

    store = Slow(overdue(2 * MOST_PER_SECOND))
    waker, pause = waker_of(store, clock)

    woken = waker.wake(time_left=SECOND + WAKE_RESERVE)

    assert not woken.finished
    assert 0 < sum(woken.jobs.values()) == len(store.woken) < MOST_PER_SECOND
    assert pause.pauses == []


@pytest.mark.parametrize(("left", "woken"), [(timedelta(0), 0), (SECOND / 10, 1), (2 * SECOND / 10, 2)])
def test_no_wake_begins_when_the_time_that_is_kept_back_begins(left: timedelta, woken: int) -> None:
    clock = Clock()

    class Slow(Scheduled):
        def wake(self, job: Job, *, now: datetime) -> None:
            super().wake(job, now=now)
            clock.now += SECOND / 10

    store = Slow(overdue(3))
    waker, _ = waker_of(store, clock)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemill.application.waiting.wake.AT_ONCE", 1)
        result = waker.wake(time_left=WAKE_RESERVE + left)

    assert (len(store.woken), sum(result.jobs.values()), result.finished) == (woken, woken, False)


def test_reading_a_batch_is_part_of_its_second() -> None:
    clock = Clock()

    class Slow(Scheduled):
        def scheduled(self, **request: Any) -> Iterator[Job]:
            for number, job in enumerate(super().scheduled(**request)):
                if number % MOST_PER_SECOND == 0:
                    clock.now += SECOND / 4
                yield job

    waker, pause = waker_of(Slow(overdue(2 * MOST_PER_SECOND)), clock)

    assert waker.wake(time_left=INVOCATION).finished
    assert pause.pauses == [pytest.approx(0.75)] * 2


def test_parallel_calls_do_every_part_in_each_interval_and_each_part_in_turn() -> None:
    store = Scheduled([])
    for minute in range(3):
        for number in range(3):
            waker, _ = waker_of(store, Clock(NOW + minute * timedelta(seconds=WAKE_INTERVAL_SECONDS)))
            waker.wake(time_left=INVOCATION, part=Part(number, 3))

    every = {Part(number, 3) for number in range(3)}
    assert [set(store.parts[start : start + 3]) for start in (0, 3, 6)] == [every] * 3
    # One of the calls, minute by minute: without the two others, it would still reach every part.
    assert set(store.parts[::3]) == every


def test_a_call_without_a_part_does_all() -> None:
    store = Scheduled([])
    waker, _ = waker_of(store, Clock())

    waker.wake(time_left=INVOCATION)

    assert store.parts == [WHOLE]


@pytest.mark.parametrize(("number", "count"), [(-1, 3), (3, 3), (0, 0)])
def test_a_part_that_does_not_exist_is_refused(number: int, count: int) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        Part(number, count)


def test_two_concurrent_calls_wake_each_job(store: JobStore) -> None:
    jobs = [brought_to(store, State.SCHEDULED) for _ in range(5)]
    clock = Clock(NOW + 1000 * SECOND)
    seen_by_both = list(store.scheduled(before=clock.now))

    for _ in range(2):
        waker, _pause = waker_of(Scheduled(seen_by_both), clock)
        waker._store = store
        waker.wake(time_left=INVOCATION)

    assert {stored(store, job).state for job in jobs} == {State.QUEUED}


def test_an_unreadable_document_is_reported() -> None:
    error = MalformedDocumentError("not a job document")

    class OneUnreadable(Scheduled):
        def scheduled(self, *, before: datetime, part: Part, unreadable: Any) -> Iterator[Job]:
            unreadable(TENANT, "rubbish", error)
            return super().scheduled(before=before, part=part, unreadable=unreadable)

    waker, _ = waker_of(OneUnreadable(overdue(1)), Clock())

    woken = waker.wake(time_left=INVOCATION)

    assert (sum(woken.jobs.values()), woken.unreadable) == (1, ((TENANT, "rubbish", error),))


def test_a_job_that_a_newer_version_writes_meanwhile_stops_no_other() -> None:
    """The document that refuses the write cannot be read."""
    newer, other = (a_job(state=State.SCHEDULED, due=NOW) for _ in range(2))
    error = NewerSchemaError("document", 9, 1)
    store = Scheduled([newer, other], faults={newer.id: error})
    waker, _ = waker_of(store, Clock())

    woken = waker.wake(time_left=INVOCATION)

    assert store.woken == [other.id]
    assert (woken.finished, woken.unreadable) == (True, ((newer.tenant, newer.id, error),))
