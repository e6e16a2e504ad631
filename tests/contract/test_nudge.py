"""`nudge`: generation = :g, state and count as read, due past by more than the limit, not nudged within it."""

from datetime import timedelta

import pytest

from tests.support.builders import LEASE, MILLISECOND, NOW, SECOND, a_job, brought_to, claimed, stored
from tidemill.application.ports import JobStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.states import State

LIMIT = timedelta(minutes=1)


def test_nudge_marks_an_overdue_queued_job_and_keeps_its_generation(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)

    store.nudge(job, now=NOW + LIMIT, limit=LIMIT)

    nudged = stored(store, job)
    assert (nudged.state, nudged.generation, nudged.due) == (State.QUEUED, 1, NOW)
    assert nudged.nudges.last_at == NOW + LIMIT


def test_nudge_takes_a_lost_run_back_and_a_late_message_stays_valid(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)
    now = NOW + LEASE + LIMIT

    store.nudge(running, now=now, limit=LIMIT)

    nudged = stored(store, running)
    assert (nudged.state, nudged.lease.owner, nudged.generation, nudged.attempt) == (State.RETRYING, None, 1, 1)
    assert claimed(store, nudged, token="another", now=now).attempt == 2


def test_nudge_queues_a_scheduled_job_that_wake_has_missed(store: JobStore) -> None:
    scheduled = brought_to(store, State.SCHEDULED)
    assert scheduled.due is not None
    now = scheduled.due + LIMIT

    store.nudge(scheduled, now=now, limit=LIMIT)

    nudged = stored(store, scheduled)
    assert nudged.state is State.QUEUED
    assert [(entry.at, entry.state) for entry in nudged.history[-1:]] == [(now, State.QUEUED)]


def test_nudge_is_rejected_until_the_job_is_overdue_by_the_limit(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)

    with pytest.raises(WriteRefusedError):
        store.nudge(job, now=NOW + LIMIT - MILLISECOND, limit=LIMIT)


def test_nudge_is_rejected_while_the_lease_is_live(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    with pytest.raises(WriteRefusedError):
        store.nudge(running, now=NOW + LEASE - MILLISECOND, limit=timedelta(0))


def test_nudge_is_rejected_when_the_job_has_requested_a_newer_dispatch(store: JobStore) -> None:
    retrying = brought_to(store, State.RETRYING)
    store.release(claimed(store, retrying, now=NOW + 5 * SECOND), now=NOW + 5 * SECOND, due=NOW + 5 * SECOND)

    with pytest.raises(WriteRefusedError) as refused:
        store.nudge(retrying, now=NOW + 10 * LIMIT, limit=LIMIT)

    assert refused.value.current is not None
    assert refused.value.current.generation == retrying.generation + 1


def test_nudge_is_rejected_when_the_job_was_claimed_since_it_was_read(store: JobStore) -> None:
    queued = brought_to(store, State.QUEUED)
    claimed(store, queued)

    with pytest.raises(WriteRefusedError):
        store.nudge(queued, now=NOW + 10 * LIMIT, limit=LIMIT)


def test_nudge_is_rejected_within_the_limit_of_an_earlier_one(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    store.nudge(job, now=NOW + LIMIT, limit=LIMIT)

    with pytest.raises(WriteRefusedError):
        store.nudge(stored(store, job), now=NOW + 2 * LIMIT - MILLISECOND, limit=LIMIT)

    store.nudge(stored(store, job), now=NOW + 2 * LIMIT, limit=LIMIT)
    assert stored(store, job).nudges.last_at == NOW + 2 * LIMIT


def test_one_of_two_concurrent_nudges_of_a_lost_run_is_rejected(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)
    now = NOW + LEASE + LIMIT
    store.nudge(running, now=now, limit=LIMIT)

    with pytest.raises(WriteRefusedError):
        store.nudge(running, now=now + MILLISECOND, limit=LIMIT)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD])
def test_nudge_is_rejected_by_a_terminal_document(store: JobStore, state: State) -> None:
    over = brought_to(store, state)

    with pytest.raises(WriteRefusedError):
        store.nudge(over, now=NOW + 10 * LIMIT, limit=LIMIT)


def test_nudge_of_a_missing_document_creates_none(store: JobStore) -> None:
    job = a_job()

    with pytest.raises(WriteRefusedError):
        store.nudge(job, now=NOW + LIMIT, limit=LIMIT)

    assert store.get(job.tenant, job.id) is None
