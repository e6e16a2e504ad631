"""The pages of a listing of members: whom they hold, in which order, where they end and what they read."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job
from tidemill.application.ports import Unreadable
from tidemill.application.submission.job_ids import follow_up_id
from tidemill.domain.batches.batches import Page as MembersPage
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.batches import listed_members
from tidemill.dynamodb.batches.listed_members import MemberListing
from tidemill.dynamodb.listing import MOST_READ, Wanted
from tidemill.dynamodb.listing_entries import Position
from tidemill.names import BATCH_TYPE, EVENT_TYPE

BATCH = a_job(type=BATCH_TYPE)
ANY = Wanted(tenant=TENANT, since=NOW)
SCRIPTED = Wanted(tenant=TENANT, since=NOW, type="test.scripted")
LATER = NOW + timedelta(days=1)
END = Position(LATER)


def member(number: int, **changes: Any) -> Job:
    fields = {"id": f"{number:05}", "type": "test.scripted", "batch": BATCH.id, "created_at": NOW}
    return a_job(**fields | changes)


class Documents:
    """The documents of the members. `reads` has the ids of each read."""

    def __init__(self, *jobs: Job, broken: str | None = None) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.broken = broken
        self.reads: list[list[str]] = []

    def pages(self, _batch: Job) -> list[MembersPage]:
        return [MembersPage(number=0, members=frozenset(self.jobs))]

    def read(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable) -> list[Job]:
        assert {tenant for tenant, _ in keys} == {TENANT}
        ids = [job_id for _, job_id in keys]
        self.reads.append(ids)
        if self.broken in ids:
            unreadable(TENANT, self.broken, MalformedDocumentError("torn"))
        return [self.jobs[each] for each in ids if each != self.broken]

    @property
    def listing(self) -> MemberListing:
        return MemberListing(self, read=self.read)  # type: ignore[arg-type]  # what it asks of the pages


def listed(documents: Documents, whole: Job = BATCH, wanted: Wanted = ANY, below: Position = END) -> list[str]:
    return [job.id for job in documents.listing.page(whole, wanted, below=below, limit=9, now=NOW).jobs]


def an_event(*consumers: str) -> Job:
    return a_job(type=EVENT_TYPE, state=State.SUCCEEDED, result=json.dumps({"consumers": consumers}))


def test_a_job_that_has_replaced_an_expired_member_does_not_belong_to_the_batch() -> None:
    others = (member(2, batch=None), member(3, batch="another"), member(4, batch=None, parent=BATCH.id))
    assert listed(Documents(member(1), *others)) == ["00001"]

    event = an_event("a", "b", "c")
    first, second, third = (follow_up_id(event, index) for index in range(3))
    jobs = [a_job(id=first, parent=event.id), a_job(id=second), a_job(id=third, batch=event.id)]
    assert listed(Documents(*jobs), event) == [first]


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, True),
        ({"created_at": NOW - SECOND}, False),
        ({"created_at": LATER - SECOND}, True),
        ({"created_at": LATER}, False),
        ({"type": "test.noop"}, False),
        ({"state": State.SUCCEEDED, "due": None, "expires_at": NOW + SECOND}, True),
        ({"state": State.SUCCEEDED, "due": None, "expires_at": NOW}, False),
    ],
)
def test_a_page_holds_the_members_that_fit(changes: dict[str, Any], *, shown: bool) -> None:
    assert listed(Documents(member(1, **changes)), wanted=SCRIPTED) == (["00001"] if shown else [])


def test_a_page_that_is_full_names_its_last_member_and_the_next_begins_below_it() -> None:
    documents = Documents(*(member(number) for number in range(4)))

    first = documents.listing.page(BATCH, ANY, below=END, limit=2, now=NOW)
    assert first.end == Position(LATER, "00002")
    last = documents.listing.page(BATCH, ANY, below=first.end, limit=2, now=NOW)

    assert [job.id for job in (*first.jobs, *last.jobs)] == ["00003", "00002", "00001", "00000"]
    assert last.end is None
    # Without a filter, each read has one page.
    assert documents.reads == [["00003", "00002"], ["00001", "00000"]]


def test_a_filtered_page_ends_after_the_most_documents_that_a_request_reads() -> None:
    documents = Documents(*(member(number, type="test.noop") for number in range(MOST_READ + 1)))

    page = documents.listing.page(BATCH, SCRIPTED, below=END, limit=2, now=NOW)
    assert (page.jobs, page.end) == ([], Position(LATER, "00001"))
    assert [len(ids) for ids in documents.reads] == [100] * 5

    documents.jobs.pop("00000")
    page = documents.listing.page(BATCH, SCRIPTED, below=END, limit=2, now=NOW)
    assert (page.jobs, page.end) == ([], None)


def test_a_document_that_cannot_be_read_is_named_on_its_page_and_when_all_are_listed() -> None:
    documents = Documents(member(1), member(2), broken="00001")
    named: list[tuple[str, str, str]] = []

    page = documents.listing.page(BATCH, ANY, below=END, limit=9, now=NOW)
    found = documents.listing.all(
        BATCH, ANY, now=NOW, unreadable=lambda *each: named.append((each[0], each[1], str(each[2])))
    )

    assert [job.id for job in page.jobs] == [job.id for job in found] == ["00002"]
    assert {job_id: str(error) for job_id, error in page.unreadable.items()} == {"00001": "torn"}
    assert named == [(TENANT, "00001", "torn")]


def test_all_members_come_from_as_many_pages_as_they_need() -> None:
    documents = Documents(*(member(number) for number in range(250)))

    found = documents.listing.all(BATCH, ANY, now=NOW)

    assert [job.id for job in found] == sorted(documents.jobs, reverse=True)
    assert [len(ids) for ids in documents.reads] == [100, 100, 50]


@pytest.mark.parametrize("state", [None, *State])
def test_a_member_that_was_noted_in_another_final_state_is_not_read(
    state: State | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = Documents(*(member(number) for number in range(3)))
    ended = {State.SUCCEEDED: frozenset({"00000"}), State.CANCELLED: frozenset({"00001"})}
    page = MembersPage(number=0, members=frozenset(documents.jobs), ended=ended)
    monkeypatch.setattr(documents, "pages", lambda _batch: [page])

    listed(documents, wanted=replace(ANY, state=state))

    passed_over = {job_id for noted, ids in ended.items() if state not in {None, noted} for job_id in ids}
    assert documents.reads == [sorted(documents.jobs.keys() - passed_over, reverse=True)]


def test_batches_and_events_have_members_and_no_other_job_has(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [BATCH, an_event(), a_job()]

    assert [listed_members.has_members(job) for job in whole] == [True, True, False]

    def pages(_batch: Job) -> list[MembersPage]:
        raise AssertionError("only a batch has pages to read")

    documents = Documents(member(1))
    monkeypatch.setattr(documents, "pages", pages)
    assert listed(documents, a_job()) == []
