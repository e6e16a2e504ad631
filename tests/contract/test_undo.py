"""An undo is one transaction: the job that undoes another is inserted, and the other one names it, or neither."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    AN_UNDO,
    NOW,
    SECOND,
    SETTLEMENTS,
    a_job,
    an_undo_of,
    brought_to,
    claimed,
    stored,
    with_changes,
)
from tests.support.job_tables import Table
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.groups import groups
from tidemill.dynamodb.job_store import DynamoJobStore


def succeeded(store: DynamoJobStore, **changes: object) -> Job:
    running = claimed(store, store.insert_if_absent(a_job(**changes)))
    store.settle(running, replace(SETTLEMENTS[State.SUCCEEDED], undo=AN_UNDO), now=NOW)
    return stored(store, running)


def test_the_success_records_what_would_undo_it(store: DynamoJobStore) -> None:
    assert succeeded(store).correction.undo == AN_UNDO


def test_the_undo_is_inserted_and_the_job_names_it(store: DynamoJobStore) -> None:
    done = succeeded(store)
    job, entry = an_undo_of(done)

    assert store.undo(done, job, entry) == stored(store, job) == job
    assert stored(store, done) == with_changes(done, undone=entry)


def test_a_second_undo_is_refused_and_inserts_nothing(store: DynamoJobStore) -> None:
    done = succeeded(store)
    store.undo(done, *an_undo_of(done))
    job, entry = an_undo_of(done)

    with pytest.raises(WriteRefusedError):
        store.undo(done, job, entry)

    assert store.get(job.tenant, job.id) is None


@pytest.mark.parametrize("state", [state for state in State if state is not State.SUCCEEDED])
def test_only_a_success_can_be_undone(store: DynamoJobStore, state: State) -> None:
    done = brought_to(store, state)
    job, entry = an_undo_of(done, group=None)

    with pytest.raises(WriteRefusedError):
        store.undo(done, job, entry)

    assert store.get(job.tenant, job.id) is None


def test_an_expired_job_cannot_be_undone(store: DynamoJobStore) -> None:
    done = succeeded(store)
    assert done.lifetime.expires_at

    with pytest.raises(WriteRefusedError):
        store.undo(done, *an_undo_of(done, created_at=done.lifetime.expires_at + SECOND))


def test_a_later_job_of_the_key_is_not_undone_for_the_earlier_one(store: DynamoJobStore, table: Table) -> None:
    """Even if it was undone by the same job at the same moment."""
    done = succeeded(store)
    job, entry = an_undo_of(done)
    for undone in (None, entry):
        later = with_changes(done, created_at=done.created_at + timedelta(days=1), undone=undone)
        table.put(later)
        with pytest.raises(WriteRefusedError):
            store.undo(done, job, entry)
        assert stored(store, done) == later

    assert store.get(job.tenant, job.id) is None


def test_a_newer_version_of_the_document_is_left_alone(store: DynamoJobStore, table: Table) -> None:
    done = succeeded(store)
    newer = encode(done) | {"schema": {"N": "99"}}
    table.client.put_item(TableName=table.name, Item=newer)
    job, entry = an_undo_of(done)

    with pytest.raises(Exception, match="schema 99"):
        store.undo(done, job, entry)

    assert store.get(job.tenant, job.id) is None


def test_a_job_that_was_superseded_since_it_was_read_is_not_undone(store: DynamoJobStore) -> None:
    done = succeeded(store)
    later = store.supersede(done, a_job(supersedes=done.id))

    with pytest.raises(WriteRefusedError):
        store.undo(done, *an_undo_of(done))

    marked = stored(store, done)
    assert marked == with_changes(done, superseded_by=later.id)
    store.undo(marked, *an_undo_of(marked))


@pytest.mark.parametrize("change", ["superseded", "undone", "ended", "expired", "replaced"])
def test_a_job_that_has_changed_since_it_was_read_is_not_superseded(
    store: DynamoJobStore, table: Table, change: str
) -> None:
    read = succeeded(store)
    assert read.lifetime.expires_at
    later = a_job(supersedes=read.id, created_at=read.lifetime.expires_at + SECOND if change == "expired" else NOW)
    if change == "superseded":
        store.supersede(read, a_job(supersedes=read.id))
    elif change == "undone":
        store.undo(read, *an_undo_of(read))
    elif change == "replaced":
        replaced = with_changes(read, created_at=read.created_at + timedelta(days=1), superseded_by=later.id)
        table.put(replaced)
    elif change == "ended":
        read = replace(read, state=State.RUNNING)
    before = stored(store, read)

    with pytest.raises(WriteRefusedError):
        store.supersede(read, later)

    assert (store.get(later.tenant, later.id), stored(store, read)) == (None, before)


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.DEAD])
@pytest.mark.parametrize("since", [{"generation": 7}, {"created_at": NOW + SECOND}, {"state": State.RETRYING}], ids=str)
def test_a_job_that_has_not_succeeded_is_superseded_as_it_was_read(
    store: DynamoJobStore, table: Table, state: State, since: dict[str, Any]
) -> None:
    """It ran or was redriven since, or a later job has its key."""
    read = brought_to(store, state)
    later = a_job(supersedes=read.id)
    table.put(with_changes(read, **since))
    before = stored(store, read)

    with pytest.raises(WriteRefusedError):
        store.supersede(read, later)

    assert (store.get(later.tenant, later.id), stored(store, read)) == (None, before)
    table.put(read)
    store.supersede(read, later)
    assert stored(store, read).correction.superseded_by == later.id


def test_another_submission_of_the_same_key_finds_the_job(store: DynamoJobStore) -> None:
    earlier = succeeded(store)
    later = store.supersede(earlier, a_job(supersedes=earlier.id))

    assert store.supersede(earlier, replace(later, trace="another")) == later


def test_a_submission_whose_key_another_job_has_just_taken_is_a_conflict_and_marks_nothing(
    store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller repeats it, and finds that job."""
    monkeypatch.setattr(groups, "TRIED_FOR", timedelta(0))
    earlier = succeeded(store)
    later = a_job(supersedes=earlier.id)
    store.insert_if_absent(with_changes(later, supersedes=None))

    with pytest.raises(TransactionConflictError):
        store.supersede(earlier, later)

    assert stored(store, earlier) == earlier


def test_the_undo_of_a_job_of_a_group_waits_at_its_end(store: DynamoJobStore) -> None:
    done = succeeded(store, group="orders")
    store.advance(done.tenant, "orders", now=NOW)
    store.insert_if_absent(a_job(group="orders"))

    job = store.undo(done, *an_undo_of(done))

    assert (job.state, job.group.sequence, job.due) == (State.WAITING, 3, None)
    assert job == stored(store, job)


def test_the_undo_of_the_last_job_of_a_group_is_its_head(store: DynamoJobStore) -> None:
    done = succeeded(store, group="orders")

    job = store.undo(done, *an_undo_of(done))

    assert (store.advance(done.tenant, "orders", now=NOW) or job).state is State.QUEUED
