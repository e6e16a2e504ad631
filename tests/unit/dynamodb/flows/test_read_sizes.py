"""How much each read asks for at once, and how long it waits for a table that is too busy."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.aws.attribute_values import milliseconds
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line, Wait
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.flows.flow_items import DynamoFlows
from tidemill.dynamodb.job_reader import JobReader
from tidemill.dynamodb.listing import DynamoListing, Wanted
from tidemill.dynamodb.listing_entries import Position

TABLE = "jobs"
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
MOST_KEYS = 100


class Client:
    """An empty table that notes each request. Of each batch, it reads at most `reads` keys."""

    def __init__(self, *, reads: int = MOST_KEYS) -> None:
        self.reads = reads
        self.queries: list[dict[str, Any]] = []
        self.batches: list[int] = []

    def query(self, **request: Any) -> dict[str, Any]:
        self.queries.append(request)
        return {"Items": []}

    def get_paginator(self, _name: str) -> "Client":
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        self.queries.append(request)
        yield {"Items": []}

    def batch_get_item(self, **request: Any) -> dict[str, Any]:
        keys = request["RequestItems"][TABLE]["Keys"]
        self.batches.append(len(keys))
        left = keys[self.reads :]
        return {"Responses": {}, "UnprocessedKeys": {TABLE: {"Keys": left}} if left else {}}


def reader(client: Client) -> JobReader:
    anything: Any = client
    return JobReader(anything, table=TABLE)


def keys(count: int) -> list[tuple[str, str]]:
    return [(TENANT, f"job-{number}") for number in range(count)]


@pytest.mark.parametrize(("most", "page"), [(1, 4), (25, 28), (97, 100), (98, 100), (500, 100)])
def test_a_line_is_read_with_three_entries_to_spare(most: int, page: int) -> None:
    client = Client()

    assert reader(client).parked(Line.for_limit("a"), most=most) == []
    assert [query["Limit"] for query in client.queries] == [page]


@pytest.mark.parametrize("since", [None, NOW])
def test_a_line_is_read_from_where_a_release_has_left_it(since: datetime | None) -> None:
    client = Client()

    reader(client).parked(Line.for_limit("a"), most=1, since=since)

    (query,) = client.queries
    found = query["ExpressionAttributeValues"].get(":since")
    assert found == (None if since is None else milliseconds(since))


def test_an_index_is_read_in_pages_of_one_batch() -> None:
    client = Client()

    assert list(reader(client).dead()) == []
    assert list(reader(client).scheduled(before=NOW)) == []
    assert {query["Limit"] for query in client.queries} == {MOST_KEYS}


@pytest.mark.parametrize(
    ("wanted", "limits"),
    [
        (ANY_JOB, {MOST_KEYS}),
        (JobFilter(types=["mail"]), {MOST_KEYS}),
        # Few entries match, and their keys tell which: a page of a megabyte takes fewer calls.
        (JobFilter(ids=["a"]), {"no limit"}),
        (JobFilter(tenant=TENANT), {"no limit"}),
    ],
    ids=str,
)
def test_an_index_is_read_in_large_pages_if_the_keys_tell_what_matches(
    wanted: JobFilter, limits: set[int | str]
) -> None:
    client = Client()

    assert list(reader(client).dead(wanted)) == []
    assert {query.get("Limit", "no limit") for query in client.queries} == limits


@pytest.mark.parametrize(
    ("wanted", "bounds", "condition"),
    [
        (ANY_JOB, {}, ""),
        (JobFilter(ended_since=NOW), {":since": NOW}, " AND #at >= :since"),
        (JobFilter(ended_until=NOW), {":before": NOW}, " AND #at <= :before"),
        (
            JobFilter(ended_since=NOW, ended_until=NOW + SECOND),
            {":since": NOW, ":before": NOW + SECOND},
            " AND #at BETWEEN :since AND :before",
        ),
    ],
    ids=str,
)
def test_dead_jobs_are_read_from_the_index_within_the_times_of_their_ends(
    wanted: JobFilter, bounds: dict[str, datetime], condition: str
) -> None:
    client = Client()

    assert list(reader(client).dead(wanted)) == []
    values = [query["ExpressionAttributeValues"] for query in client.queries]
    assert all(each.pop(":partition") for each in values)
    assert values == [{name: milliseconds(at) for name, at in bounds.items()}] * len(values)
    assert {query["KeyConditionExpression"] for query in client.queries} == {f"#partition = :partition{condition}"}
    names = {"#partition", *(["#at"] if bounds else [])}
    assert all(query["ExpressionAttributeNames"].keys() == names for query in client.queries)


@pytest.mark.parametrize(("most", "pages"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (9, 3)])
def test_a_line_is_read_no_further_than_to_the_jobs_that_were_asked_for(most: int, pages: int) -> None:
    """Two jobs are on each of its three pages."""
    parked = [
        a_job(state=State.PARKED, wait=Wait(cause=Cause.LIMIT, key="a", since=NOW), created_at=NOW + number * SECOND)
        for number in range(6)
    ]
    items = {f"{job.tenant}#{job.id}": encode(job) for job in parked}
    asked: list[int] = []

    class Line6(Client):
        def query(self, **request: Any) -> dict[str, Any]:
            begin = int(request.get("ExclusiveStartKey", {"n": 0})["n"])
            asked.append(begin)
            more = {"LastEvaluatedKey": {"n": begin + 2}} if begin < 4 else {}
            return {"Items": [{"pk": encode(job)["pk"]} for job in parked[begin : begin + 2]], **more}

        def batch_get_item(self, **request: Any) -> dict[str, Any]:
            keys = request["RequestItems"][TABLE]["Keys"]
            return {"Responses": {TABLE: [items[key["pk"]["S"]] for key in keys]}, "UnprocessedKeys": {}}

    found = reader(Line6()).parked(Line.for_limit("a"), most=most)

    assert found == parked[:most]
    assert len(asked) == pages


@pytest.mark.parametrize(("count", "batches"), [(1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])])
def test_a_batch_has_at_most_a_hundred_keys(count: int, batches: list[int]) -> None:
    client = Client()

    reader(client).get_many(keys(count))
    assert client.batches == batches


@pytest.mark.parametrize(("count", "batches"), [(1, [1]), (100, [100]), (101, [100, 1]), (250, [100, 100, 50])])
def test_cursors_and_added_nodes_of_a_flow_are_read_in_batches_of_a_hundred(count: int, batches: list[int]) -> None:
    client: Any = Client()
    flows, flow = DynamoFlows(client, table=TABLE), a_job()

    assert flows.cursors(flow, range(count)) == dict.fromkeys(range(count), Cursor())
    assert flows.added(flow, range(count)) == []
    assert client.batches == batches * 2


def test_a_table_that_stays_busy_is_asked_six_times_with_doubling_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    client, pauses = Client(reads=0), list[float]()
    monkeypatch.setattr("time.sleep", pauses.append)

    with pytest.raises(StoreUnavailableError, match="2 of 2"):
        reader(client).get_many(keys(2))
    assert client.batches == [2] * 6
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6]


def test_only_the_keys_that_are_left_are_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(reads=2)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)

    reader(client).get_many(keys(5))
    assert client.batches == [5, 3, 1]


@pytest.mark.parametrize(("position", "newest"), [(Position(NOW, "a"), 0), (Position(NOW), 1)])
def test_a_listing_ends_before_the_millisecond_of_a_position_without_an_id(position: Position, newest: int) -> None:
    client: Any = Client()
    listing = DynamoListing(client, table=TABLE, read=lambda keys, *, unreadable: [])

    page = listing.page(Wanted(tenant=TENANT, since=NOW - SECOND), below=position, limit=10, now=NOW)

    assert (page.jobs, page.end) == ([], None)
    until = {query["ExpressionAttributeValues"][":newest"]["N"] for query in client.queries}
    assert until == {str(round(NOW.timestamp() * 1000) - newest)}
    assert {query["PaginationConfig"]["PageSize"] for query in client.queries} == {100}
    assert {query["ScanIndexForward"] for query in client.queries} == {False}


def test_a_listing_of_no_time_asks_nothing() -> None:
    client: Any = Client()
    listing = DynamoListing(client, table=TABLE, read=lambda keys, *, unreadable: [])

    for below in (Position(NOW), Position(NOW - SECOND, "a")):
        assert listing.page(Wanted(tenant=TENANT, since=NOW), below=below, limit=10, now=NOW).end is None
    assert client.queries == []
