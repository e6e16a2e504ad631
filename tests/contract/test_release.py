"""Parked jobs: the order of their release, the hand-over of a slot, lost wake-ups, and what waiting costs."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    SECOND,
    a_job,
    a_job_type,
    stored,
    types_of,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.parked_jobs import LINE, ONE, enter, park, park_only
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.ports import WHOLE, LimitSlot, Unreadable, ignore_unreadable
from tidemill.application.waiting.release import LISTED_AT_LEAST, Releaser
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import Job
from tidemill.domain.limits.limit_state import AHEAD, RESERVED
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits


def test_a_run_hands_its_slot_to_the_job_that_was_submitted_first(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser
) -> None:
    slot = enter(limits, a_job())
    later = park(store, limits, created_at=NOW + SECOND)
    first = park(store, limits)

    releaser.leave(slot, line_stands=True)

    released = stored(store, first)
    assert (released.state, released.generation, released.due) == (State.QUEUED, first.generation + 1, NOW)
    assert stored(store, later) == later
    assert enter(limits, a_job()) == LINE, "a newcomer does not overtake it"
    assert isinstance(enter(limits, first, released=True), LimitSlot)


def test_a_slot_without_a_waiting_job_is_free(store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser) -> None:
    slot = enter(limits, a_job())
    waited = park(store, limits)
    store.cancel(waited, now=NOW)

    releaser.leave(slot, line_stands=False)

    assert isinstance(enter(limits, a_job()), LimitSlot)


def test_a_job_that_is_parked_after_the_slot_came_free_is_released_at_once(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser
) -> None:
    slot = enter(limits, a_job())
    job = a_job()
    assert enter(limits, job) == LINE
    releaser.leave(slot, line_stands=False)
    parked = park_only(store, job)

    releaser.look_again(parked)

    assert stored(store, parked).state is State.QUEUED


def test_the_last_job_that_found_no_room_is_found_though_the_index_does_not_show_it(
    store: DynamoJobStore, limits: DynamoLimits, clock: Clock
) -> None:
    class Lagging:
        get, unpark = store.get, store.unpark

        def parked(
            self,
            _line: Line,
            *,
            most: int,
            since: datetime | None = None,
            unreadable: Unreadable = ignore_unreadable,
        ) -> list[Job]:
            assert most
            return []

    slot = enter(limits, a_job())
    parked = park(store, limits)

    Releaser(store=Lagging(), limits=limits, clock=clock).leave(slot, line_stands=True)

    assert stored(store, parked).state is State.QUEUED


def test_a_release_that_was_killed_after_the_reservation_is_finished_by_the_next(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, client: FaultyClient
) -> None:
    slot = enter(limits, a_job())
    parked, behind = park(store, limits), park(store, limits, created_at=NOW + SECOND)
    client.faults = [None, Fault.NOT_SENT]
    releaser.leave(slot, line_stands=True)
    assert stored(store, parked) == parked

    assert [job.id for job in releaser.release(LINE)] == [parked.id]
    assert releaser.release(LINE) == []
    assert stored(store, behind) == behind


def test_wake_releases_when_a_lease_or_a_reservation_has_ended(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, clock: Clock
) -> None:
    enter(limits, a_job())
    jobs = [park(store, limits, created_at=NOW + number * SECOND) for number in range(2)]

    def woken() -> list[str]:
        return [job.id for job in releaser.release_all(part=WHOLE, in_time=lambda: True, draw=lambda: 0.5).jobs]

    assert woken() == []
    clock.now = NOW + LEASE
    assert woken() == [jobs[0].id]
    clock.now += RESERVED
    assert woken() == [jobs[1].id]


def test_a_line_is_looked_at_until_no_worker_can_be_about_to_park(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, clock: Clock
) -> None:
    slot = enter(limits, a_job())
    store.cancel(park(store, limits), now=NOW)
    releaser.leave(slot, line_stands=True)

    releaser.release_all(part=WHOLE, in_time=lambda: True, draw=lambda: 0.5)
    assert list(limits.lines()) == [LINE]
    clock.now += LISTED_AT_LEAST + SECOND
    releaser.release_all(part=WHOLE, in_time=lambda: True, draw=lambda: 0.5)

    assert list(limits.lines()) == []


def test_a_rate_releases_one_job_for_each_interval_that_comes(
    store: DynamoJobStore, limits: DynamoLimits, releaser: Releaser, clock: Clock
) -> None:
    slowly = Limit(rate=Rate(count=1, period=timedelta(seconds=50)))
    assert isinstance(enter(limits, a_job(), limit=slowly), LimitSlot)
    assert [enter(limits, a_job(), limit=slowly) for _ in range(2)] == [NOW + 50 * SECOND, NOW + 100 * SECOND]
    jobs = [park(store, limits, slowly, created_at=NOW + number * SECOND) for number in range(3)]

    released = []
    for _ in range(3):
        released.append([job.id for job in releaser.release(LINE)])
        clock.now += timedelta(minutes=1)

    assert released == [[], [jobs[0].id], [jobs[1].id]]
    assert [stored(store, job).due for job in jobs[:2]] == [NOW + 150 * SECOND, NOW + 200 * SECOND]
    assert timedelta(minutes=2) == AHEAD


@pytest.fixture
def writes(client: FaultyClient) -> Iterator[Counter[str]]:
    """Counts every write that arrives at the table, refused or not."""
    counted: Counter[str] = Counter()
    client.watch = lambda applied: None if applied else counted.update(["writes"])
    yield counted
    client.watch = lambda _applied: None


@pytest.mark.parametrize("jobs", [5, 20])
def test_the_writes_of_each_job_behind_one_slot_do_not_depend_on_how_many_wait(
    store: DynamoJobStore, limits: DynamoLimits, clock: Clock, writes: Counter[str], jobs: int
) -> None:
    """All are claimed while the first one runs, which is the worst case. Each further write is a claim for nothing."""
    waiting = [a_job(created_at=NOW + number * SECOND) for number in range(jobs)]
    for job in waiting:
        store.insert_if_absent(job)
    claims: Counter[str] = Counter()
    writes.clear()

    def handler(_payload: Any, _run: Any) -> None:
        if len(claims) == 1:
            for other in waiting[1:]:
                assert work(other) is Ending.PARKED

    context = replace(tools(store, types_of(replace(a_job_type(handler), limit=ONE)), clock), limits=limits)

    def work(job: Job) -> Ending:
        claims[job.id] += 1
        return carried_out(Attempt(reference_to(stored(store, job)), context, deadline=NOW + INVOCATION)).ending

    assert work(waiting[0]) is Ending.SUCCEEDED
    for job in waiting[1:]:
        assert stored(store, job).state is State.QUEUED, "its turn comes when the one before has ended"
        assert work(job) is Ending.SUCCEEDED

    assert max(claims.values()) == 2
    assert writes["writes"] == cost(jobs)


def cost(jobs: int) -> int:
    # The first: claim, two tries to enter a new item, a refused leave, the leave that hands over, settle, release of
    # the next. Each other: claim, refused entry, mark, park; claim, entry, leave that hands over, release of the next,
    # settle. The last one releases none.
    return 7 + 9 * (jobs - 1) - 1
