"""`resend`: generation = :g, state as it may be sent, `nudged_at` as read. It is uncounted and needs no overdue job."""

from datetime import timedelta

import pytest

from tests.support.builders import LEASE, NOW, SECOND, a_job, brought_to, claimed, stored, with_changes
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.records import replace
from tidemill.domain.states import State

LIMIT = timedelta(minutes=1)


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING, State.DEAD])
def test_resend_marks_the_job_and_changes_nothing_else(store: JobStore, state: State) -> None:
    job = brought_to(store, state)

    store.resend(job, now=NOW + SECOND)

    assert stored(store, job) == with_changes(job, nudged_at=NOW + SECOND)


def test_resend_is_rejected_when_the_job_was_claimed_since_it_was_read(store: JobStore) -> None:
    queued = brought_to(store, State.QUEUED)
    claimed(store, queued)

    with pytest.raises(WriteRefusedError):
        store.resend(queued, now=NOW + SECOND)


def test_resend_is_rejected_when_the_job_has_requested_a_newer_dispatch(store: JobStore) -> None:
    """That dispatch has a stream record of its own, and the state is the same."""
    retrying = brought_to(store, State.RETRYING)
    store.release(claimed(store, retrying, now=NOW + LEASE), now=NOW + LEASE, due=NOW + LEASE)

    with pytest.raises(WriteRefusedError) as refused:
        store.resend(retrying, now=NOW + LEASE)

    assert refused.value.current == stored(store, retrying)
    assert refused.value.current.generation == retrying.generation + 1


@pytest.mark.parametrize("before", [False, True], ids=["first", "again"])
def test_one_of_two_concurrent_resends_is_rejected(store: JobStore, before: bool) -> None:
    job = brought_to(store, State.QUEUED)
    if before:
        store.resend(job, now=NOW)
        job = stored(store, job)
    store.resend(job, now=NOW + SECOND)

    with pytest.raises(WriteRefusedError):
        store.resend(job, now=NOW + 2 * SECOND)

    assert stored(store, job).nudges.last_at == NOW + SECOND


def test_resend_is_rejected_when_the_job_was_nudged_since_it_was_read(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    store.nudge(job, now=NOW + LIMIT, limit=LIMIT)

    with pytest.raises(WriteRefusedError):
        store.resend(job, now=NOW + LIMIT + SECOND)

    assert (stored(store, job).nudges.last_at, stored(store, job).nudges.count) == (NOW + LIMIT, 1)


def test_resend_is_rejected_by_a_later_job_under_the_same_key(store: JobStore, table: Table) -> None:
    job = brought_to(store, State.QUEUED)
    later = replace(job, created_at=job.created_at + SECOND)
    table.put(later)

    with pytest.raises(WriteRefusedError):
        store.resend(job, now=NOW + 2 * SECOND)

    assert stored(store, job) == later


def test_resend_of_a_missing_document_creates_none(store: JobStore) -> None:
    job = a_job()

    with pytest.raises(WriteRefusedError):
        store.resend(job, now=NOW)

    assert store.get(job.tenant, job.id) is None
