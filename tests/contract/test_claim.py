"""`claim`: generation = :g and due <= :now, in any state."""

import pytest

from tests.support.builders import (
    LEASE,
    MILLISECOND,
    NOW,
    SECOND,
    a_job,
    brought_to,
    claimed,
    reference_to,
    stored,
    with_changes,
)
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import NewerSchemaError, WriteRefusedError
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import SCHEMA_VERSION


def test_claim_takes_a_queued_job_and_returns_it_as_claimed(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED, due=NOW - SECOND)

    running = claimed(store, job, token="a token")

    assert running == stored(store, job)
    assert running == with_changes(
        job,
        state=State.RUNNING,
        attempt=1,
        open_runs=1,
        owner="a token",
        due=NOW + LEASE,
        ready_at=NOW - SECOND,
        claimed_at=NOW,
        history=running.history,
    )
    assert [(entry.at, entry.state, entry.cause) for entry in running.history] == [(NOW, State.RUNNING, "claimed")]


def test_claim_takes_a_retrying_job_when_it_is_due(store: JobStore) -> None:
    retrying = brought_to(store, State.RETRYING)

    running = claimed(store, retrying, now=NOW + 5 * SECOND)

    assert (running.state, running.attempt, running.lease.ready_at) == (State.RUNNING, 2, retrying.due)


def test_claim_takes_a_scheduled_job_that_is_due_out_of_the_index(store: JobStore, table: Table) -> None:
    """Its message overtook `wake`, as after a restore of the table."""
    scheduled = brought_to(store, State.SCHEDULED)
    assert scheduled.due is not None

    running = claimed(store, scheduled, now=scheduled.due)

    item = table.item(running)
    assert item is not None
    assert not {"attention", "attention_at"} & item.keys()
    assert list(store.scheduled(before=scheduled.due + SECOND)) == []


@pytest.mark.parametrize("generation", [0, 2])
def test_claim_is_rejected_by_a_document_of_another_generation(store: JobStore, generation: int) -> None:
    job = brought_to(store, State.QUEUED)

    with pytest.raises(WriteRefusedError) as refused:
        claimed(store, replace(job, generation=generation))

    assert refused.value.current == job


def test_claim_is_rejected_a_millisecond_before_the_job_is_due(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED, due=NOW + MILLISECOND)

    with pytest.raises(WriteRefusedError):
        claimed(store, job)

    assert claimed(store, job, now=NOW + MILLISECOND).state is State.RUNNING


def test_claim_is_rejected_while_the_lease_is_live(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    with pytest.raises(WriteRefusedError) as refused:
        claimed(store, running, token="another", now=NOW + LEASE - MILLISECOND)

    assert refused.value.current == running


def test_claim_takes_the_job_over_when_the_lease_has_expired(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    taken = claimed(store, running, token="another", now=NOW + LEASE)

    assert (taken.lease.owner, taken.attempt, taken.generation) == ("another", 2, running.generation)


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD])
def test_claim_is_rejected_by_a_terminal_document(store: JobStore, state: State) -> None:
    over = brought_to(store, state)

    with pytest.raises(WriteRefusedError) as refused:
        claimed(store, over, now=NOW + 365 * 24 * 3600 * SECOND)

    assert refused.value.current == over


def test_claim_of_a_missing_document_is_rejected_and_creates_none(store: JobStore) -> None:
    job = a_job()

    with pytest.raises(WriteRefusedError) as refused:
        claimed(store, job)

    assert refused.value.current is None
    assert store.get(job.tenant, job.id) is None


def test_claim_by_an_older_version_does_not_change_a_newer_document(store: JobStore, table: Table) -> None:
    job = a_job()
    table.put(job, schema={"N": str(SCHEMA_VERSION + 1)})
    before = table.item(job)

    with pytest.raises(NewerSchemaError):
        store.claim(reference_to(job), token="old", now=NOW, lease_end=NOW + LEASE)

    assert table.item(job) == before
