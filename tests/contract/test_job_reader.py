"""`get`, `get_many` and `dead`."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.builders import NOW, RETENTION, SECOND, a_job, brought_to, with_changes
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemill.dynamodb.job_reader._THROTTLED_PAUSE_SECONDS", 0)


def test_get_returns_none_for_a_missing_job(store: JobStore) -> None:
    assert store.get("tenant", "no such job") is None


def test_get_reads_an_expired_job_too(store: JobStore, table: Table) -> None:
    expired = with_changes(brought_to(store, State.DEAD), expires_at=NOW.replace(microsecond=0) - SECOND)
    table.put(expired)

    assert store.get(expired.tenant, expired.id) == expired


def test_get_many_reads_more_than_one_batch_and_omits_missing_jobs(store: JobStore, table: Table) -> None:
    jobs = [a_job() for _ in range(205)]
    for job in jobs:
        table.put(job)

    found = store.get_many([("tenant", "no such job"), *((job.tenant, job.id) for job in jobs)])

    assert sorted(job.id for job in found) == sorted(job.id for job in jobs)


def test_get_many_of_no_keys_is_empty(store: JobStore) -> None:
    assert store.get_many([]) == []


def test_get_many_reads_a_duplicate_key_once(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)

    assert store.get_many([(job.tenant, job.id)] * 2) == [job]


def test_get_many_retries_the_keys_that_a_throttled_table_left_unprocessed(
    store: DynamoJobStore, client: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [brought_to(store, State.QUEUED) for _ in range(5)]
    real = client.batch_get_item
    asked = []

    def busy(*, RequestItems: Mapping[str, Any]) -> Any:  # noqa: N803 - as boto3 has it
        ((table, request),) = RequestItems.items()
        asked.append(len(request["Keys"]))
        now, later = request["Keys"][:2], request["Keys"][2:]
        answer = real(RequestItems={table: request | {"Keys": now}})
        return answer | {"UnprocessedKeys": {table: request | {"Keys": later}} if later else {}}

    monkeypatch.setattr(client, "batch_get_item", busy, raising=False)

    assert sorted(job.id for job in store.get_many([(job.tenant, job.id) for job in jobs])) == [job.id for job in jobs]
    assert asked == [5, 3, 1]


def test_get_many_raises_when_a_table_stays_throttled(
    store: DynamoJobStore, client: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        client,
        "batch_get_item",
        lambda RequestItems: {"Responses": {}, "UnprocessedKeys": RequestItems},  # noqa: N803 - as boto3 has it
        raising=False,
    )

    with pytest.raises(StoreUnavailableError):
        store.get_many([("tenant", "id")])


def test_dead_lists_exactly_the_dead_jobs(store: JobStore) -> None:
    dead = [brought_to(store, State.DEAD) for _ in range(8)]
    for state in State:
        if state is not State.DEAD:
            brought_to(store, state)

    assert sorted(store.dead(), key=lambda job: job.id) == sorted(dead, key=lambda job: job.id)


def test_dead_reads_several_pages_oldest_death_first(store: JobStore, table: Table) -> None:
    for number in range(230):
        died = NOW + (number * 7 % 230) * SECOND
        table.put(
            a_job(state=State.DEAD, due=None, finished_at=died, expires_at=NOW + RETENTION),
            attention={"S": "dead#2"},
            attention_at={"N": str(int(died.timestamp() * 1000))},
        )

    deaths = [job.finished_at for job in store.dead()]

    assert deaths == [NOW + number * SECOND for number in range(230)]


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.SUCCEEDED])
def test_dead_omits_an_index_entry_whose_document_is_no_longer_dead(
    store: JobStore, table: Table, state: State
) -> None:
    table.put(a_job(state=state), attention={"S": "dead#0"}, attention_at={"N": "1"})

    assert list(store.dead()) == []
