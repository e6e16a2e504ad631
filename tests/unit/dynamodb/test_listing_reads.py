"""What a listing and a replay read of the listing index, how many documents at a time, and where they go on."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, TENANT, a_job, with_changes
from tidemill.application.events.replay import Replay
from tidemill.application.passes.job_search import FoundPage
from tidemill.application.ports import Unreadable, UnreadableItem
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.events.listed_events import ListedEvents
from tidemill.dynamodb.listing import MOST_READ, DynamoListing, Wanted
from tidemill.dynamodb.listing_entries import Position
from tidemill.names import EVENT_TYPE

UNTIL = NOW + timedelta(hours=1)
LATER = NOW + timedelta(hours=2)


class Stage:
    """Jobs of one tenant, and their entries, which all are in the first shard. It notes the ids of each read."""

    def __init__(self, *jobs: Job, torn: str = "") -> None:
        self.jobs = {job.id: job for job in jobs}
        self.entries = [(job.created_at, job.id) for job in jobs]
        self.torn = torn
        self.reads: list[int] = []

    def get_paginator(self, _name: str) -> "Stage":
        return self

    def paginate(self, **request: Any) -> Iterator[Any]:
        values = request["ExpressionAttributeValues"]
        if values[":partition"]["S"] != f"{TENANT}#0":
            return
        first, last = (int(values[name]["N"]) for name in (":oldest", ":newest"))
        found = [(round(at.timestamp() * 1000), job_id) for at, job_id in self.entries]
        found = sorted(each for each in found if first <= each[0] <= last)
        if not request["ScanIndexForward"]:
            found.reverse()
        size = request["PaginationConfig"]["PageSize"]
        for start in range(0, len(found), size):
            yield {
                "Items": [
                    {"pk": {"S": f"{TENANT}#{job_id}"}, "created_at": {"N": str(at)}}
                    for at, job_id in found[start : start + size]
                ]
            }

    def read(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable) -> list[Job]:
        self.reads.append(len(keys))
        for tenant, job_id in keys:
            if job_id == self.torn:
                unreadable(tenant, job_id, MalformedDocumentError("torn"))
        return [self.jobs[job_id] for _, job_id in keys if job_id in self.jobs and job_id != self.torn]


def jobs(count: int, **changes: Any) -> list[Job]:
    return [
        a_job(**{"id": f"{number:04}", "type": EVENT_TYPE, "created_at": NOW + number * SECOND} | changes)
        for number in range(count)
    ]


def events(page: FoundPage) -> list[Job]:
    return [each for each in page.found if isinstance(each, Job)]


def names(found: Sequence[Job]) -> list[str]:
    return [job.id for job in found]


@pytest.mark.parametrize(
    ("filters", "limit", "reads"),
    [
        ({}, 10, [10]),
        ({}, 250, [250]),
        ({"type": "mail"}, 10, [100, 100, 50]),
        ({"state": State.DEAD}, 10, [100, 100, 50]),
        ({"tag": "vip"}, 10, [100, 100, 50]),
        ({"type": EVENT_TYPE}, 10, [100]),
    ],
)
def test_a_filtered_page_reads_a_hundred_documents_at_a_time(
    filters: dict[str, Any], limit: int, reads: list[int]
) -> None:
    stage = Stage(*jobs(250))
    client: Any = stage
    listing = DynamoListing(client, table="jobs", read=stage.read)

    listing.page(Wanted(tenant=TENANT, since=NOW, **filters), below=Position(LATER), limit=limit, now=NOW)

    assert stage.reads == reads


def test_a_page_reads_no_more_documents_than_it_lacks_jobs() -> None:
    """Four of the first ten have expired."""
    gone: dict[str, Any] = {"state": State.SUCCEEDED, "due": None, "expires_at": NOW - SECOND}
    found = jobs(30)
    stage = Stage(*(with_changes(job, **gone) if number >= 26 else job for number, job in enumerate(found)))
    client: Any = stage
    listing = DynamoListing(client, table="jobs", read=stage.read)

    page = listing.page(Wanted(tenant=TENANT, since=NOW), below=Position(LATER), limit=10, now=NOW)

    assert names(page.jobs) == names(found[16:26][::-1])
    assert stage.reads == [10, 4]


def test_a_page_that_finds_nothing_ends_after_five_hundred_documents() -> None:
    stage = Stage(*jobs(MOST_READ + 1))
    client: Any = stage
    listing = DynamoListing(client, table="jobs", read=stage.read)
    wanted = Wanted(tenant=TENANT, since=NOW, type="mail")

    first = listing.page(wanted, below=Position(LATER), limit=10, now=NOW)

    assert (first.jobs, first.end) == ([], Position(NOW + SECOND, "0001"))
    assert sum(stage.reads) == 500
    assert first.end is not None
    assert listing.page(wanted, below=first.end, limit=10, now=NOW).end is None
    assert sum(stage.reads) == 501


def replayed(stage: Any, *, after: str | None = None, left: timedelta = SECOND, **changes: Any) -> list[FoundPage]:
    wanted = replace(
        Replay(consumer="mail", event="order", version=None, tenant=TENANT, since=NOW, until=UNTIL), **changes
    )
    events = ListedEvents(stage, table="jobs", tenant=TENANT, read=stage.read)
    return list(events.pages(wanted, after=after, now=NOW, time_left=lambda: left))


@pytest.mark.parametrize(("count", "reads"), [(0, [0]), (1, [1]), (100, [100]), (101, [100, 1]), (230, [100, 100, 30])])
def test_a_replay_reads_every_event_once_in_the_order_of_their_times(count: int, reads: list[int]) -> None:
    stage = Stage(*jobs(count))

    pages = replayed(stage)

    assert ListedEvents.ordered, "so a replay takes events with a group, too"
    assert [name for page in pages for name in names(events(page))] == names(jobs(count))
    assert stage.reads == reads
    assert [page.cursor is None for page in pages] == [False] * (len(reads) - 1) + [True]


@pytest.mark.parametrize("left", [timedelta(0), -SECOND])
def test_a_replay_without_time_stops_after_a_page_and_goes_on_where_it_was(left: timedelta) -> None:
    stage = Stage(*jobs(230))

    (first,) = replayed(stage, left=left)
    (second,) = replayed(stage, left=left, after=first.cursor)
    (third,) = replayed(stage, left=left, after=second.cursor)

    assert [*names(events(first)), *names(events(second)), *names(events(third))] == names(jobs(230))
    assert third.cursor is None


def test_a_replay_goes_on_after_the_event_that_its_cursor_names() -> None:
    """Two events have the same time."""
    first, second, third = jobs(3)
    second = replace(second, created_at=first.created_at)
    stage: Any = Stage(first, second, third)
    cursor = ListedEvents(stage, table="jobs", tenant=TENANT, read=stage.read).cursor_after(first)

    (page,) = replayed(stage, after=cursor)

    assert names(events(page)) == [second.id, third.id]


@pytest.mark.parametrize(
    ("at", "found"),
    [(NOW - MILLISECOND, False), (NOW, True), (UNTIL - MILLISECOND, True), (UNTIL, False)],
)
def test_a_replay_takes_events_from_one_time_to_before_another(at: datetime, found: bool) -> None:
    (page,) = replayed(Stage(*jobs(1, created_at=at)))

    assert bool(events(page)) is found


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, True),
        ({"type": "mail"}, False),
        ({"state": State.SUCCEEDED, "due": None, "expires_at": NOW + SECOND}, True),
        ({"state": State.SUCCEEDED, "due": None, "expires_at": NOW}, False),
    ],
    ids=str,
)
def test_a_replay_leaves_out_other_jobs_and_expired_events(changes: dict[str, Any], found: bool) -> None:
    (page,) = replayed(Stage(*jobs(1, **changes)))

    assert bool(events(page)) is found


def test_a_job_that_has_replaced_an_expired_event_comes_at_its_own_time_only() -> None:
    (event,) = jobs(1)
    stage = Stage(replace(event, created_at=NOW + SECOND))
    stage.entries.append((NOW, event.id))

    (page,) = replayed(stage)

    assert [each.created_at for each in events(page)] == [NOW + SECOND]


def test_an_event_that_cannot_be_read_is_named() -> None:
    (page,) = replayed(Stage(*jobs(3), torn="0001"))

    assert names(events(page)) == ["0000", "0002"]
    (torn,) = (each for each in page.found if isinstance(each, UnreadableItem))
    assert (torn.key, str(torn.error)) == (f"{TENANT}#0001", "torn")
