"""The listing index: newest first over its shards, page by page, at a bounded cost."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, RETENTION, SECOND, SETTLEMENTS, TENANT, a_job, claimed
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import Unreadable
from tidemill.aws.clients import Item
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb import listing as listing_module
from tidemill.dynamodb import listing_entries
from tidemill.dynamodb.document import key
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.listing import DynamoListing, Page, Wanted
from tidemill.dynamodb.listing_entries import Position
from tidemill.names import LARGEST_INDEX_SHARDS, LISTING_KEY

DAY = timedelta(days=1)


class Counting:
    """Counts the calls that a listing makes."""

    def __init__(self, store: DynamoJobStore) -> None:
        self._store = store
        self.read = 0

    def __call__(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable) -> list[Job]:
        self.read += len(keys)
        return self._store.get_many(keys, unreadable=unreadable)


@pytest.fixture
def store(client: FaultyClient, table: Table) -> DynamoJobStore:
    return DynamoJobStore(client, table=table.name, retention=RETENTION, indexes=Indexes(listed=True))  # type: ignore[arg-type]  # a proxy


@pytest.fixture
def documents(store: DynamoJobStore) -> Counting:
    return Counting(store)


@pytest.fixture
def listing(table: Table, documents: Counting) -> DynamoListing:
    return DynamoListing(table.client, table=table.name, read=documents)


Submitted = Callable[..., Job]


@pytest.fixture
def submitted(store: DynamoJobStore) -> Submitted:
    def submit(at: datetime = NOW, **changes: Any) -> Job:
        return store.insert_if_absent(a_job(created_at=at, due=at, **changes))

    return submit


def wanted(**changes: Any) -> Wanted:
    return replace(Wanted(tenant=TENANT, since=NOW - 5 * DAY), **changes)


def page(listing: DynamoListing, limit: int = 100, *, below: Position | None = None, **changes: Any) -> Page:
    return listing.page(wanted(**changes), below=below or Position(NOW + SECOND), limit=limit, now=NOW)


def pages(listing: DynamoListing, limit: int, **changes: Any) -> list[list[str]]:
    """All pages to the end, as ids."""
    found = [page(listing, limit, **changes)]
    while end := found[-1].end:
        found.append(page(listing, limit, below=end, **changes))
    return [[job.id for job in each.jobs] for each in found]


def ids(jobs: Sequence[Job]) -> list[str]:
    return [job.id for job in jobs]


def newest_first(jobs: Sequence[Job]) -> list[str]:
    return [job.id for job in sorted(jobs, key=lambda job: (job.created_at, job.id), reverse=True)]


def test_jobs_of_all_shards_come_newest_first(listing: DynamoListing, submitted: Submitted) -> None:
    jobs = [submitted(NOW - number * 5 * timedelta(hours=1)) for number in range(20)]

    assert ids(page(listing).jobs) == newest_first(jobs) == ids(jobs)


def test_pages_of_any_size_hold_every_job_once_in_the_same_order(listing: DynamoListing, submitted: Submitted) -> None:
    # Many jobs share a millisecond, as the jobs of a batch do.
    jobs = [submitted(NOW - number // 7 * 9 * timedelta(hours=1)) for number in range(30)]

    for limit in (1, 4, 7, 30, 100):
        found = pages(listing, limit)
        assert [job_id for each in found for job_id in each] == newest_first(jobs)
        assert max(map(len, found)) == min(limit, 30)


def test_more_jobs_of_one_millisecond_than_one_query_returns_stay_in_order(
    listing: DynamoListing, submitted: Submitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_entries, "_PAGE", 3)
    jobs = [submitted(NOW) for _ in range(40)]

    assert [job_id for each in pages(listing, 6) for job_id in each] == newest_first(jobs)


def test_a_job_submitted_meanwhile_does_not_shift_later_pages(listing: DynamoListing, submitted: Submitted) -> None:
    jobs = [submitted(NOW - number * SECOND) for number in range(4)]
    first = page(listing, 2)

    submitted(NOW)

    assert ids(page(listing, 2, below=first.end).jobs) == ids(jobs[2:])


def test_the_last_job_of_a_page_may_be_deleted_before_the_next_request(
    listing: DynamoListing, submitted: Submitted, store: DynamoJobStore
) -> None:
    jobs = [submitted(NOW - number * SECOND) for number in range(3)]
    first = page(listing, 1)
    store.forget(store.cancel(jobs[0], now=NOW))

    assert ids(page(listing, 2, below=first.end).jobs) == ids(jobs[1:])


def test_only_the_tenants_own_jobs_are_listed(listing: DynamoListing, submitted: Submitted) -> None:
    mine = submitted()
    for other in (f"{TENANT}#x", TENANT[:-1], "another"):
        submitted(tenant=other)

    assert ids(page(listing).jobs) == [mine.id]


def test_since_is_inclusive_and_the_position_is_exclusive(listing: DynamoListing, submitted: Submitted) -> None:
    jobs = [submitted(NOW - number * MILLISECOND) for number in range(5)]

    found = page(listing, since=NOW - 3 * MILLISECOND, below=Position(NOW))

    assert ids(found.jobs) == ids(jobs[1:4])
    assert found.end is None


def test_the_state_comes_from_the_document(listing: DynamoListing, submitted: Submitted, store: DynamoJobStore) -> None:
    queued, running, dead = (submitted(NOW - number * SECOND) for number in range(3))
    claimed(store, running)
    store.settle(claimed(store, dead), SETTLEMENTS[State.DEAD], now=NOW)

    assert {state: ids(page(listing, state=state).jobs) for state in State if page(listing, state=state).jobs} == {
        State.QUEUED: [queued.id],
        State.RUNNING: [running.id],
        State.DEAD: [dead.id],
    }


def test_type_and_state_filters_combine(listing: DynamoListing, submitted: Submitted, store: DynamoJobStore) -> None:
    one = submitted(type="a")
    submitted(type="b")
    store.cancel(submitted(type="a"), now=NOW)

    assert ids(page(listing, type="a", state=State.QUEUED).jobs) == [one.id]


def test_a_tag_selects_the_jobs_that_have_it_among_others(listing: DynamoListing, submitted: Submitted) -> None:
    both = submitted(tags=("campaign:7", "signup"))
    one = submitted(NOW - SECOND, tags=("signup",), type="a")
    submitted(NOW - 2 * SECOND, tags=("signup2",))
    submitted(NOW - 3 * SECOND)

    assert ids(page(listing, tag="signup").jobs) == [both.id, one.id]
    assert ids(page(listing, tag="signup", type="a").jobs) == [one.id]
    assert pages(listing, 1, tag="signup")[:2] == [[both.id], [one.id]]


def test_an_expired_job_is_not_listed(listing: DynamoListing, submitted: Submitted, store: DynamoJobStore) -> None:
    live = submitted(NOW - SECOND)
    store.cancel(submitted(), now=NOW - RETENTION - SECOND)

    assert ids(page(listing).jobs) == [live.id]


def test_an_entry_without_its_document_is_not_listed(
    listing: DynamoListing, table: Table, documents: Counting, store: DynamoJobStore, submitted: Submitted
) -> None:
    gone, there = submitted(), submitted(NOW - SECOND)
    # The index lags behind: the job is deleted after the query of the index.
    read = store.get_many

    def get_many(keys: Sequence[tuple[str, str]], *, unreadable: Unreadable) -> list[Job]:
        return [job for job in read(keys, unreadable=unreadable) if job.id != gone.id]

    lagging = DynamoListing(table.client, table=table.name, read=get_many)

    assert ids(page(lagging).jobs) == [there.id]


def test_a_job_that_cannot_be_read_is_named_and_no_filter_leaves_it_out(
    table: Table, listing: DynamoListing, submitted: Submitted
) -> None:
    readable, unreadable = submitted(), submitted(NOW - SECOND)
    table.client.update_item(
        TableName=table.name,
        Key=key(unreadable.tenant, unreadable.id),
        UpdateExpression="SET lane = :lane",
        ExpressionAttributeValues={":lane": {"S": "urgent"}},
    )

    found = page(listing, type=readable.type)

    assert ids(found.jobs) == [readable.id]
    assert "'urgent' is not a valid Lane" in str(found.unreadable[unreadable.id])


def test_a_job_that_replaced_an_expired_one_is_listed_only_at_its_own_time(
    table: Table, submitted: Submitted, store: DynamoJobStore
) -> None:
    old = submitted(NOW - DAY)
    # The index lags behind and still returns the old job.
    new = replace(old, created_at=NOW)
    lagging = DynamoListing(table.client, table=table.name, read=lambda _keys, unreadable: [new])

    assert page(lagging).jobs == []


def test_jobs_are_not_listed_when_the_stage_has_no_listing(
    listing: DynamoListing, client: FaultyClient, table: Table
) -> None:
    unlisted = DynamoJobStore(client, table=table.name, retention=RETENTION)  # type: ignore[arg-type]  # a proxy
    job = unlisted.insert_if_absent(a_job())

    item: Item = table.item(job) or {}
    assert LISTING_KEY not in item
    assert page(listing).jobs == []


def test_a_request_reads_a_bounded_number_of_documents_and_the_next_continues(
    listing: DynamoListing, documents: Counting, submitted: Submitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "_BATCH", 5)
    monkeypatch.setattr(listing_module, "MOST_READ", 10)
    jobs = [submitted(NOW - number * SECOND, type="rare" if number == 23 else "common") for number in range(30)]

    first = page(listing, type="rare")

    assert first.jobs == []
    assert first.end == Position(jobs[9].created_at, jobs[9].id)
    assert documents.read == 10
    assert pages(listing, 10, type="rare", since=NOW - DAY) == [[], [], [jobs[23].id], []]
    assert pages(listing, 10, tag="absent", since=NOW - DAY) == [[], [], [], []]


def test_a_page_without_filters_reads_only_the_documents_that_it_shows(
    listing: DynamoListing, documents: Counting, submitted: Submitted
) -> None:
    for number in range(12):
        submitted(NOW - number * SECOND)

    page(listing, 5)

    assert documents.read == 5


def test_a_request_queries_each_shard_once_even_for_old_jobs(
    listing: DynamoListing, table: Table, submitted: Submitted
) -> None:
    jobs = [submitted(NOW - years * 365 * DAY) for years in (0, 3)]
    queries: list[str] = []
    table.client.meta.events.register("before-call.dynamodb.Query", lambda **_: queries.append("query"))

    assert page(listing, since=NOW - 5 * 365 * DAY) == Page(jobs=jobs, end=None)
    assert len(queries) == LARGEST_INDEX_SHARDS


def test_a_position_before_the_oldest_selected_time_is_the_end(listing: DynamoListing, submitted: Submitted) -> None:
    job = submitted(NOW - DAY)

    assert page(listing, since=NOW, below=Position(job.created_at, job.id)) == Page(jobs=[], end=None)


def test_a_tenant_without_jobs_gets_an_empty_page(listing: DynamoListing) -> None:
    assert page(listing, since=NOW - 30 * DAY) == Page(jobs=[], end=None)
