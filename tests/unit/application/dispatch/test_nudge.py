"""`Nudger`: which jobs are late enough for a nudge, and what a nudge does in each state."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, with_changes
from tests.support.single_job import Clock
from tidemill.application.dispatch.nudge import Nudge, Nudger, no_delay
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.states import State
from tidemill.names import Lane

LIMIT = timedelta(minutes=10)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)


class Store:
    """Notes each write, or refuses it."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.writes: list[tuple[Any, ...]] = []
        self._refuses = refuses

    def wake(self, job: Job, *, now: datetime) -> None:
        self._write("wake", job.id, now)

    def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
        self._write("unpark", job.id, now, due)

    def nudge(self, job: Job, *, now: datetime, limit: timedelta, last: bool) -> None:
        self._write("nudge", job.id, now, limit, last)

    def cancel(self, job: Job, *, now: datetime, by: str, reason: str, as_read: bool) -> None:
        self._write("cancel", job.id, now, by, reason, as_read)

    def _write(self, *write: Any) -> None:
        self.writes.append(write)
        if self._refuses:
            raise WriteRefusedError("nudge", None)


def _nudger(store: Store | None = None, *, limit: timedelta = LIMIT, delay: timedelta = timedelta(0)) -> Nudger:
    return Nudger(
        store=store or Store(),  # type: ignore[arg-type]  # a nudge needs no more of it
        clock=Clock(),
        limit=limit,
        lane_delay=lambda lane: delay if lane is Lane.DEFAULT else timedelta(0),
    )


@pytest.mark.parametrize(
    ("changes", "delay", "allowed"),
    [
        ({}, timedelta(0), LIMIT),
        ({"nudges": 1}, timedelta(0), 2 * LIMIT),
        ({"nudges": 3}, timedelta(0), 8 * LIMIT),
        ({"nudges": 6}, timedelta(0), 64 * LIMIT),
        ({"nudges": 7}, timedelta(0), 64 * LIMIT),
        # The delay of a lane is added, also to the interval between two nudges.
        ({}, timedelta(hours=1), LIMIT + timedelta(hours=1)),
        ({"nudges": 1}, timedelta(hours=1), 2 * LIMIT + timedelta(hours=1)),
        ({"lane": Lane.BULK}, timedelta(hours=1), LIMIT),
        # Such a job has no message on its lane, and wake alone brings it on its way.
        ({"state": State.SCHEDULED, "nudges": 3}, timedelta(hours=1), LIMIT),
        ({"state": State.PARKED, "nudges": 3}, timedelta(hours=1), LIMIT),
    ],
)
def test_a_job_is_owed_a_nudge_once_it_is_late_by_its_limit(
    changes: dict[str, Any], delay: timedelta, allowed: timedelta
) -> None:
    nudger = _nudger(delay=delay)

    assert nudger.needs_nudge(a_job(**{"due": NOW - allowed} | changes))
    assert not nudger.needs_nudge(a_job(**{"due": NOW - allowed + MILLISECOND} | changes))


@pytest.mark.parametrize(
    ("limit", "nudges", "allowed"), [(timedelta(hours=1), 5, DAY), (timedelta(hours=20), 1, DAY), (2 * DAY, 6, 2 * DAY)]
)
def test_the_interval_grows_up_to_a_day_and_never_below_the_limit(
    limit: timedelta, nudges: int, allowed: timedelta
) -> None:
    nudger = _nudger(limit=limit)

    assert nudger.needs_nudge(a_job(due=NOW - allowed, nudges=nudges))
    assert not nudger.needs_nudge(a_job(due=NOW - allowed + MILLISECOND, nudges=nudges))


@pytest.mark.parametrize(
    ("due", "nudged_at", "needed"),
    [
        (None, None, False),
        (NOW - LIMIT, NOW - LIMIT + SECOND, False),
        (NOW - LIMIT + SECOND, NOW - LIMIT, False),
        (NOW - LIMIT, NOW - LIMIT, True),
    ],
)
def test_a_job_is_late_since_it_was_due_or_nudged_whichever_was_last(
    due: datetime | None, nudged_at: datetime | None, needed: bool
) -> None:
    assert _nudger().needs_nudge(a_job(due=due, nudged_at=nudged_at)) is needed


@pytest.mark.parametrize(("state", "write"), [(State.SCHEDULED, ("wake", NOW)), (State.PARKED, ("unpark", NOW, NOW))])
def test_a_job_that_wake_missed_is_woken_once_it_is_late(state: State, write: tuple[Any, ...]) -> None:
    store = Store()
    late, early = a_job(state=state, due=NOW - LIMIT), a_job(state=state, due=NOW - LIMIT + MILLISECOND)

    assert _nudger(store).nudge(early) is None
    assert store.writes == []
    assert _nudger(store).nudge(late) is Nudge.WOKEN
    assert store.writes == [(write[0], late.id, *write[1:])]


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING, State.RUNNING])
def test_the_store_judges_whether_a_job_with_a_message_is_late(state: State) -> None:
    """It reads the job as it is now; this one may be some seconds old."""
    store, job = Store(), a_job(state=state, nudges=2)

    assert _nudger(store, delay=SECOND).nudge(job) is Nudge.NUDGED
    assert store.writes == [("nudge", job.id, NOW, 4 * LIMIT + SECOND, False)]


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({}, True),
        ({"nudges": 7}, True),
        ({"nudges": 5}, False),
        ({"due": NOW - WEEK + MILLISECOND}, False),
        ({"due": None}, False),
        # A worker has it.
        ({"state": State.RUNNING}, False),
    ],
)
def test_a_job_is_undeliverable_after_six_nudges_and_a_week(changes: dict[str, Any], last: bool) -> None:
    store = Store()

    found = _nudger(store).nudge(a_job(**{"nudges": 6, "due": NOW - WEEK} | changes))

    assert found is (Nudge.UNDELIVERABLE if last else Nudge.NUDGED)
    assert store.writes[0][-1] is last


@pytest.mark.parametrize("state", [State.SCHEDULED, State.PARKED, State.QUEUED])
def test_a_job_that_has_changed_is_not_nudged(state: State) -> None:
    assert _nudger(Store(refuses=True)).nudge(a_job(state=state, due=NOW - LIMIT)) is None


def test_an_empty_lane_has_no_delay() -> None:
    assert no_delay(Lane.BULK) == timedelta(0)


def test_a_job_that_was_asked_to_end_and_that_no_worker_gets_is_cancelled() -> None:
    """It lost its run, and then each message."""
    store, asked = Store(), CancelRequest(by="ada", reason="a typo")
    job = a_job(state=State.RETRYING, nudges=6, due=NOW - WEEK, cancel_requested_at=NOW - WEEK, cancel=asked)

    assert _nudger(store).nudge(with_changes(job, nudges=5)) is Nudge.NUDGED
    assert _nudger(store).nudge(job) is Nudge.NUDGED
    assert [write[0] for write in store.writes] == ["nudge", "cancel"]
    assert store.writes[1] == ("cancel", job.id, NOW, "ada", "a typo", True)
