"""Publish parks a job before its message is sent, and its release keeps the time that the job had."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, brought_to, claimed, stored, with_changes
from tests.support.job_tables import Table
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.history import Why
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import LONGEST_PARKED, Line, Wait
from tidemill.dynamodb.document import SCHEMA_VERSION
from tidemill.dynamodb.job_store import DynamoJobStore

LINE = Line.for_pause("type=test.job")
LATER = NOW + timedelta(minutes=10)


def wait(**changes: Any) -> Wait:
    return replace(Wait(cause=LINE.cause, key=LINE.key, since=NOW), **changes)


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING])
def test_a_job_is_parked_in_its_line_and_uses_no_attempt(store: DynamoJobStore, state: State) -> None:
    job = brought_to(store, state)

    parked = store.park(job, wait(), now=NOW + SECOND)

    changed: dict[str, Any] = {
        "state": State.PARKED,
        "generation": job.generation + 1,
        "due": NOW + SECOND + LONGEST_PARKED,
        "wait": wait(),
        "history": parked.history,
    }
    assert parked == stored(store, job) == with_changes(job, **changed)
    assert (parked.history[-1].state, parked.history[-1].cause) == (State.PARKED, Why.PAUSED)
    assert store.parked(LINE, most=5) == [parked]


def test_the_line_is_in_the_order_submitted(store: DynamoJobStore) -> None:
    jobs = [a_job(created_at=NOW + number * SECOND) for number in (2, 0, 1)]
    for job in jobs:
        store.insert_if_absent(job)
        store.park(job, wait(), now=NOW + 9 * SECOND)

    assert [job.id for job in store.parked(LINE, most=5)] == [jobs[1].id, jobs[2].id, jobs[0].id]


@pytest.mark.parametrize(("not_before", "due"), [(None, NOW), (NOW - SECOND, NOW), (LATER, LATER)])
def test_a_released_job_keeps_its_own_time(store: DynamoJobStore, not_before: Any, due: Any) -> None:
    job = brought_to(store, State.RETRYING)
    parked = store.park(job, wait(not_before=not_before), now=NOW)

    store.unpark(parked, now=NOW, due=NOW)

    released = stored(store, job)
    assert (released.state, released.due, released.generation) == (State.QUEUED, due, job.generation + 2)
    assert released.history[-1].cause == Why.RESUMED
    assert store.parked(LINE, most=5) == []


def test_a_search_of_the_line_reports_the_jobs_of_a_newer_version(store: DynamoJobStore, table: Table) -> None:
    parked = [store.park(brought_to(store, State.QUEUED), wait(), now=NOW) for _ in range(2)]
    newer = {**(table.item(parked[0]) or {}), "schema": {"N": str(SCHEMA_VERSION + 1)}}
    table.client.put_item(TableName=table.name, Item=newer)
    unread: list[tuple[str, str]] = []

    found = store.parked(LINE, most=5, unreadable=lambda tenant, job_id, _error: unread.append((tenant, job_id)))

    assert (found, unread) == ([parked[1]], [(parked[0].tenant, parked[0].id)])


def test_a_message_that_was_sent_before_cannot_start_the_parked_job(store: DynamoJobStore) -> None:
    job = brought_to(store, State.QUEUED)
    store.park(job, wait(), now=NOW)

    with pytest.raises(WriteRefusedError):
        claimed(store, job, now=NOW + 2 * LONGEST_PARKED)


def test_a_job_that_a_worker_has_claimed_is_not_parked(store: DynamoJobStore) -> None:
    job = brought_to(store, State.QUEUED)
    running = claimed(store, job)

    with pytest.raises(WriteRefusedError) as refused:
        store.park(job, wait(), now=NOW)
    assert refused.value.current == running


def test_a_later_dispatch_of_the_job_is_not_parked(store: DynamoJobStore, table: Table) -> None:
    job = brought_to(store, State.QUEUED)
    table.put(replace(job, generation=job.generation + 1))

    with pytest.raises(WriteRefusedError):
        store.park(job, wait(), now=NOW)
