"""`wake`: state = scheduled, generation = :g; and `scheduled`, which finds the jobs to wake."""

from datetime import timedelta

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, SETTLEMENTS, a_job, brought_to, claimed, stored
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.aws.attribute_values import milliseconds
from tidemill.domain.errors import TidemillError, WriteRefusedError
from tidemill.domain.states import State


def test_wake_queues_the_job_and_keeps_its_due_time_and_generation(store: JobStore, table: Table) -> None:
    scheduled = brought_to(store, State.SCHEDULED)

    store.wake(scheduled, now=NOW)

    woken = stored(store, scheduled)
    assert (woken.state, woken.generation, woken.due) == (State.QUEUED, scheduled.generation, scheduled.due)
    item = table.item(scheduled)
    assert item is not None
    assert not {"attention", "attention_at"} & item.keys()


def test_a_woken_job_can_be_claimed_from_its_due_time_on(store: JobStore) -> None:
    scheduled = brought_to(store, State.SCHEDULED)
    assert scheduled.due is not None
    store.wake(scheduled, now=NOW)

    with pytest.raises(WriteRefusedError):
        claimed(store, scheduled, now=scheduled.due - MILLISECOND)
    assert claimed(store, scheduled, now=scheduled.due).state is State.RUNNING


@pytest.mark.parametrize("state", [state for state in State if state not in {State.SCHEDULED, State.QUEUED}])
def test_wake_is_rejected_by_a_job_that_is_not_scheduled(store: JobStore, state: State) -> None:
    job = brought_to(store, state)

    with pytest.raises(WriteRefusedError) as refused:
        store.wake(job, now=NOW)

    assert refused.value.current == job


def test_wake_is_rejected_when_the_job_ran_and_was_scheduled_again_since_it_was_read(store: JobStore) -> None:
    scheduled = brought_to(store, State.SCHEDULED)
    assert scheduled.due is not None
    running = claimed(store, scheduled, now=scheduled.due)
    store.settle(running, SETTLEMENTS[State.SCHEDULED], now=scheduled.due)

    with pytest.raises(WriteRefusedError):
        store.wake(scheduled, now=NOW)

    assert stored(store, scheduled).state is State.SCHEDULED


def test_a_wake_that_the_sdk_sent_twice_succeeds(store: JobStore, client: FaultyClient) -> None:
    scheduled = brought_to(store, State.SCHEDULED)
    client.faults = [Fault.SENT_TWICE]

    store.wake(scheduled, now=NOW)

    assert stored(store, scheduled).state is State.QUEUED


def test_wake_of_a_missing_document_creates_none(store: JobStore) -> None:
    job = a_job(state=State.SCHEDULED)

    with pytest.raises(WriteRefusedError):
        store.wake(job, now=NOW)

    assert store.get(job.tenant, job.id) is None


def test_due_jobs_are_found_earliest_first(store: JobStore) -> None:
    moments = [NOW + timedelta(seconds=1000 + number * 37 % 230) for number in range(230)]
    for due in moments:
        store.insert_if_absent(a_job(state=State.SCHEDULED, due=due))

    found = [job.due for job in store.scheduled(before=NOW + 1100 * SECOND)]

    assert found == sorted(due for due in moments if due <= NOW + 1100 * SECOND)


def test_a_job_that_was_scheduled_later_is_not_found_by_a_stale_index_entry(store: JobStore, table: Table) -> None:
    scheduled = brought_to(store, State.SCHEDULED)
    assert scheduled.due is not None
    later = scheduled.due + timedelta(days=1)
    table.client.put_item(TableName=table.name, Item=(table.item(scheduled) or {}) | {"due": milliseconds(later)})

    assert list(store.scheduled(before=later - MILLISECOND)) == []
    assert [job.id for job in store.scheduled(before=later)] == [scheduled.id]


@pytest.mark.parametrize("state", [state for state in State if state is not State.SCHEDULED])
def test_only_scheduled_jobs_are_found(store: JobStore, state: State) -> None:
    brought_to(store, state)

    assert list(store.scheduled(before=NOW + timedelta(days=1000))) == []


def test_an_unreadable_document_is_reported_and_does_not_stop_the_wake_of_others(store: JobStore, table: Table) -> None:
    jobs = [brought_to(store, State.SCHEDULED) for _ in range(3)]
    item = table.item(jobs[1])
    assert item is not None
    table.client.put_item(TableName=table.name, Item=item | {"schema": {"N": "99"}})
    unreadable: list[tuple[str, str, TidemillError]] = []

    found = store.scheduled(before=NOW + timedelta(days=1), unreadable=lambda *what: unreadable.append(what))

    assert {job.id for job in found} == {jobs[0].id, jobs[2].id}
    assert [(tenant, job_id) for tenant, job_id, _ in unreadable] == [(jobs[1].tenant, jobs[1].id)]
