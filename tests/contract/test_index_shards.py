"""The number of index partitions that writes use may rise and fall, and reads find every job without a migration."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW, RETENTION, SECOND, SETTLEMENTS, TENANT, a_job, claimed
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import Part
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.listing import DynamoListing, Wanted
from tidemill.dynamodb.listing_entries import Position
from tidemill.names import ATTENTION_KEY, INDEX_SHARDS, LARGEST_INDEX_SHARDS, LISTING_KEY

#: The settings of successive deployments: up, further up, and down.
DEPLOYMENTS = (INDEX_SHARDS, LARGEST_INDEX_SHARDS, 1, 7)
JOBS_EACH = 12
READER = INDEX_SHARDS


@pytest.fixture
def stores(client: FaultyClient, table: Table) -> dict[int, DynamoJobStore]:
    """A store for each number of shards."""
    return {
        shards: DynamoJobStore(
            client,  # type: ignore[arg-type]  # a proxy
            table=table.name,
            retention=RETENTION,
            indexes=Indexes(listed=True, shards=shards),
        )
        for shards in DEPLOYMENTS
    }


def submitted(stores: dict[int, DynamoJobStore], state: State) -> list[Job]:
    """Jobs of each deployment, a second apart."""
    return [
        store.insert_if_absent(a_job(state=state, created_at=at, due=at))
        for number, store in enumerate(stores.values())
        for at in [NOW + (number * JOBS_EACH + index) * SECOND for index in range(JOBS_EACH)]
    ]


def partitions(table: Table, jobs: list[Job], attribute: str) -> set[str]:
    return {(table.item(job) or {})[attribute]["S"] for job in jobs}


def test_wake_finds_the_jobs_of_every_deployment_earliest_first(stores: dict[int, DynamoJobStore]) -> None:
    jobs = submitted(stores, State.SCHEDULED)

    assert list(stores[READER].scheduled(before=NOW + timedelta(days=1))) == jobs


@pytest.mark.parametrize("count", [2, 3, LARGEST_INDEX_SHARDS])
def test_the_parts_of_wake_hold_every_job_once(stores: dict[int, DynamoJobStore], count: int) -> None:
    jobs = submitted(stores, State.SCHEDULED)

    parts = [
        [job.id for job in stores[READER].scheduled(before=NOW + timedelta(days=1), part=Part(number, count))]
        for number in range(count)
    ]

    assert sorted(id_ for part in parts for id_ in part) == sorted(job.id for job in jobs)


def test_a_listing_finds_the_jobs_of_every_deployment_newest_first(
    stores: dict[int, DynamoJobStore], table: Table
) -> None:
    jobs = submitted(stores, State.QUEUED)
    listing = DynamoListing(table.client, table=table.name, read=stores[READER].get_many)

    page = listing.page(
        Wanted(tenant=TENANT, since=NOW), below=Position(NOW + timedelta(days=1)), limit=100, now=NOW + SECOND
    )

    assert list(page.jobs) == jobs[::-1]


def test_operators_find_the_jobs_that_died_in_every_deployment(stores: dict[int, DynamoJobStore]) -> None:
    died = []
    for number, store in enumerate(stores.values()):
        at = NOW + number * SECOND
        job = store.insert_if_absent(a_job(created_at=at, due=at))
        store.settle(claimed(store, job, now=at), SETTLEMENTS[State.DEAD], now=at)
        died.append(job.id)

    assert [job.id for job in stores[READER].dead()] == died


@pytest.mark.parametrize("shards", DEPLOYMENTS)
def test_writes_use_as_many_partitions_as_the_setting_says(
    stores: dict[int, DynamoJobStore], table: Table, shards: int
) -> None:
    # These ids reach all sixteen partitions.
    jobs = [
        stores[shards].insert_if_absent(a_job(id=f"job-{index}", state=State.SCHEDULED, due=NOW + index * SECOND))
        for index in range(150)
    ]

    assert partitions(table, jobs, ATTENTION_KEY) == {f"scheduled#{shard}" for shard in range(shards)}
    assert partitions(table, jobs, LISTING_KEY) == {f"{TENANT}#{shard}" for shard in range(shards)}


@pytest.mark.parametrize("shards", [0, LARGEST_INDEX_SHARDS + 1])
def test_a_setting_that_reads_would_not_follow_is_refused(shards: int) -> None:
    with pytest.raises(ValueError, match=f"must be from 1 to {LARGEST_INDEX_SHARDS}"):
        Indexes(shards=shards)
