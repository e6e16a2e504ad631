"""The store's conditions and `TRANSITIONS` say the same, for every write and every state."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.application.ports import JobStore
from shared.domain.errors import WriteRefusedError
from shared.domain.job import Job
from shared.domain.states import TRANSITIONS, State, Write
from tests.support.builders import LEASE, NOW, SETTLEMENTS, a_job, brought_to, reference_to, stored

#: When every due time and every lease is over, and nothing has expired.
LATE = NOW + timedelta(hours=1)

#: Each write, towards each state that it might bring about.
CALLS: dict[tuple[Write, State], Callable[[JobStore, Job], object]] = {
    (Write.INSERT, State.QUEUED): lambda store, job: store.insert_if_absent(replace(job, created_at=LATE)),
    (Write.CLAIM, State.RUNNING): lambda store, job: store.claim(
        reference_to(job), token="late", now=LATE, lease_end=LATE + LEASE
    ),
    **{
        (Write.SETTLE, state): lambda store, job, state=state: store.settle(  # type: ignore[misc]
            replace(job, owner=job.owner or "nobody"), SETTLEMENTS[state], now=LATE
        )
        for state in SETTLEMENTS
    },
    (Write.RELEASE, State.RETRYING): lambda store, job: store.release(
        replace(job, owner=job.owner or "nobody"), due=LATE
    ),
    (Write.REDRIVE, State.QUEUED): lambda store, job: store.redrive(job, token="late", now=LATE, by="ada"),
}
NUDGED = {State.QUEUED: State.QUEUED, State.RETRYING: State.RETRYING, State.RUNNING: State.RETRYING}


def _nudge(store: JobStore, job: Job) -> None:
    store.nudge(job, now=LATE, limit=timedelta(minutes=1))


def _after(store: JobStore, job: Job, call: Callable[[JobStore, Job], object]) -> State | None:
    """The state that the call brings about, or None if it is refused and has changed nothing."""
    before = store.get(job.tenant, job.id)
    try:
        call(store, job)
    except WriteRefusedError:
        assert store.get(job.tenant, job.id) == before
        return None
    return stored(store, job).state


def _job_in(store: JobStore, state: State | None) -> Job:
    return brought_to(store, state) if state else a_job()


@pytest.mark.parametrize("before", [None, *State], ids=str)
@pytest.mark.parametrize(("write", "after"), CALLS, ids=str)
def test_the_store_accepts_a_write_exactly_when_the_table_allows_it(
    store: JobStore, write: Write, before: State | None, after: State
) -> None:
    job = _job_in(store, before)

    reached = _after(store, job, CALLS[write, after])

    assert (reached == after) is (after in TRANSITIONS[write].get(before, ()))


@pytest.mark.parametrize("before", [None, *State], ids=str)
def test_nudge_leads_exactly_where_the_table_says(store: JobStore, before: State | None) -> None:
    reached = _after(store, _job_in(store, before), _nudge)

    assert ({reached} if reached else set()) == TRANSITIONS[Write.NUDGE].get(before, set())


def test_every_transition_of_the_table_was_asked_for() -> None:
    asked = {*CALLS, *((Write.NUDGE, state) for states in TRANSITIONS[Write.NUDGE].values() for state in states)}

    assert asked == {
        (write, after) for write, rows in TRANSITIONS.items() for states in rows.values() for after in states
    }
