"""The wake use case: order, pace, time limit and completeness."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job, brought_to, stored
from tests.support.single_job import Clock
from tidemill.application.ports import JobStore
from tidemill.application.wake import MOST_PER_SECOND, WAKE_RESERVE, Waker, Woken
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import Job
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

    def scheduled(self, *, before: datetime, unreadable: Any) -> Iterator[Job]:
        due = [job for job in self.jobs if job.due and job.due <= before and job.id not in set(self.woken)]
        return iter(sorted(due, key=lambda job: (job.due, job.id)))

    def wake(self, job: Job) -> None:
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
    assert stored(store, soon) == replace(soon, state=State.QUEUED)
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


def test_a_concurrent_cancel_does_not_stop_the_wake_of_others() -> None:
    jobs = overdue(3)
    store = Scheduled(jobs, faults={jobs[0].id: WriteRefusedError("wake", None)})
    waker, _ = waker_of(store, Clock())

    woken = waker.wake(time_left=INVOCATION)

    assert (sum(woken.jobs.values()), woken.finished) == (2, True)


def test_jobs_that_the_store_failed_to_wake_are_left_to_the_next_call() -> None:
    jobs = overdue(3 * MOST_PER_SECOND)
    store = Scheduled(jobs, faults={jobs[7].id: StoreUnavailableError("throttled")})
    waker, _ = waker_of(store, Clock())

    first = waker.wake(time_left=INVOCATION)

    assert (sum(first.jobs.values()), first.finished) == (MOST_PER_SECOND - 1, False)
    store.faults.clear()
    assert waker.wake(time_left=INVOCATION).finished
    assert set(store.woken) == {job.id for job in jobs}


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
        def scheduled(self, *, before: datetime, unreadable: Any) -> Iterator[Job]:
            unreadable(TENANT, "rubbish", error)
            return super().scheduled(before=before, unreadable=unreadable)

    waker, _ = waker_of(OneUnreadable(overdue(1)), Clock())

    woken = waker.wake(time_left=INVOCATION)

    assert (sum(woken.jobs.values()), woken.unreadable) == (1, ((TENANT, "rubbish", error),))
