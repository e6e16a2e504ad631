"""A backfill is one transaction: the job is inserted and the mark of the other one names it, or neither."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    NOW,
    SECOND,
    SETTLEMENTS,
    SKIPPED,
    a_backfill_of,
    a_job,
    brought_to,
    claimed,
    stored,
)
from tests.support.job_tables import Table
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.job_store import DynamoJobStore


def succeeded(store: DynamoJobStore) -> Job:
    running = claimed(store, store.insert_if_absent(a_job()))
    store.settle(running, replace(SETTLEMENTS[State.SUCCEEDED], skipped=SKIPPED), now=NOW)
    return stored(store, running)


def is_refused(store: DynamoJobStore, done: Job, **changes: Any) -> bool:
    """And inserts nothing."""
    job, entry = a_backfill_of(done, **changes)
    with pytest.raises(WriteRefusedError):
        store.backfill(done, job, entry)
    return store.get(job.tenant, job.id) is None


def test_the_success_keeps_the_marks(store: DynamoJobStore) -> None:
    done = succeeded(store)
    assert (done.skipped, done.backfilled) == (SKIPPED, ())


def test_the_job_is_inserted_and_the_mark_names_it(store: DynamoJobStore) -> None:
    done = succeeded(store)
    job, entry = a_backfill_of(done)

    store.backfill(done, job, entry)

    assert stored(store, job) == job
    assert stored(store, done) == replace(done, backfilled=(entry,))


def test_a_second_backfill_of_the_mark_is_refused(store: DynamoJobStore) -> None:
    done = succeeded(store)
    store.backfill(done, *a_backfill_of(done))

    assert is_refused(store, done)


def test_of_two_names_at_once_none_is_lost(store: DynamoJobStore) -> None:
    done = succeeded(store)
    store.backfill(done, *a_backfill_of(done))

    assert is_refused(store, done, name="agent")
    now_known = stored(store, done)
    store.backfill(now_known, *a_backfill_of(now_known, name="agent"))
    assert [entry.name for entry in stored(store, done).backfilled] == ["geo", "agent"]
    assert is_refused(store, now_known, name="agent")


@pytest.mark.parametrize("state", [state for state in State if state is not State.SUCCEEDED])
def test_only_a_success_is_backfilled(store: DynamoJobStore, state: State) -> None:
    assert is_refused(store, brought_to(store, state))


def test_an_expired_job_is_not_backfilled(store: DynamoJobStore) -> None:
    done = succeeded(store)
    assert done.expires_at
    assert is_refused(store, done, created_at=done.expires_at + SECOND)


def test_a_later_job_of_the_key_is_not_backfilled_for_the_earlier_one(store: DynamoJobStore, table: Table) -> None:
    """Even if it was backfilled by the same name at the same moment."""
    done = succeeded(store)
    job, entry = a_backfill_of(done)
    for backfilled in ((), (entry,)):
        table.put(replace(done, created_at=done.created_at + timedelta(days=1), backfilled=backfilled))
        with pytest.raises(WriteRefusedError):
            store.backfill(done, job, entry)

    assert store.get(job.tenant, job.id) is None


def test_a_newer_version_of_the_document_is_left_alone(store: DynamoJobStore, table: Table) -> None:
    done = succeeded(store)
    table.client.put_item(TableName=table.name, Item=encode(done) | {"schema": {"N": "99"}})
    job, entry = a_backfill_of(done)

    with pytest.raises(Exception, match="schema 99"):
        store.backfill(done, job, entry)

    assert store.get(job.tenant, job.id) is None
