"""`rewrite`: state and generation as read, payload as read, and no run. It replaces the payload and nothing else."""

import pytest

from tests.support.builders import LEASE, NOW, SECOND, a_job, brought_to, claimed, stored, with_changes
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

NEW = '{"v":2}'


def rewritten(job: Job, **changes: str | None) -> Job:
    return with_changes(job, **{"payload": NEW} | changes)


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_rewrite_replaces_the_payload_and_nothing_else(store: JobStore, state: State) -> None:
    job = brought_to(store, state)

    store.rewrite(job, rewritten(job))

    assert stored(store, job) == with_changes(job, payload=NEW)


def test_a_payload_may_move_out_of_the_document_and_back(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    apart = rewritten(job, payload=None, payload_at="item/1")

    store.rewrite(job, apart)
    assert stored(store, job) == apart

    store.rewrite(apart, rewritten(job))
    assert stored(store, job) == rewritten(job)


def test_rewrite_is_rejected_while_the_job_runs(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    claimed(store, job)

    with pytest.raises(WriteRefusedError):
        store.rewrite(job, rewritten(job))


def test_rewrite_is_rejected_when_the_job_ran_since_it_was_read(store: JobStore) -> None:
    retrying = brought_to(store, State.RETRYING)
    store.release(claimed(store, retrying, now=NOW + LEASE), now=NOW + LEASE, due=NOW + LEASE)

    with pytest.raises(WriteRefusedError):
        store.rewrite(retrying, rewritten(retrying))


@pytest.mark.parametrize("before", [{}, {"payload": None, "payload_at": "item/1"}])
def test_one_of_two_concurrent_migrations_is_rejected(store: JobStore, table: Table, before: dict[str, None]) -> None:
    job = with_changes(brought_to(store, State.QUEUED), **before)
    table.put(job)
    store.rewrite(job, rewritten(job, payload=None, payload_at="item/one"))

    with pytest.raises(WriteRefusedError):
        store.rewrite(job, rewritten(job, payload=None, payload_at="item/two"))


def test_rewrite_is_rejected_by_a_later_job_under_the_same_key(store: JobStore, table: Table) -> None:
    job = brought_to(store, State.QUEUED)
    table.put(replace(job, created_at=NOW + SECOND))

    with pytest.raises(WriteRefusedError):
        store.rewrite(job, rewritten(job))


def test_rewrite_of_a_missing_document_creates_none(store: JobStore) -> None:
    job = a_job()

    with pytest.raises(WriteRefusedError):
        store.rewrite(job, rewritten(job))

    assert store.get(job.tenant, job.id) is None
