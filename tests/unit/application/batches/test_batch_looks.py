"""Looks at the members of a batch: how much is read, what is noted, and what a cancel does with them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.batches.batch_members import BatchMembers
from tidemill.application.ports import Unreadable
from tidemill.domain.batches.batches import CLOSED, Page
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import (
    MalformedDocumentError,
    SignalRefusedError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job, Redrive
from tidemill.domain.states import State
from tidemill.names import BATCH_TYPE

BATCH = a_job(id="b", tenant="t", type=BATCH_TYPE)


class Pages(InMemoryJobs):
    """`BatchStore` with these pages. Each read of documents takes a second."""

    def __init__(self, *pages: Page, jobs: Sequence[Job] = ()) -> None:
        super().__init__(BATCH, *jobs)
        self.now = NOW
        self.found = pages
        self.read: list[int] = []
        self.unreadable: set[str] = set()
        self.recorded: list[tuple[int, Mapping[State, frozenset[str]], datetime, bool]] = []
        self.closed: list[datetime] = []

    def close(self, batch: Job, *, now: datetime) -> None:
        assert batch is BATCH
        if self.refusals:
            raise self.refusals.pop(0)
        self.closed.append(now)

    def pages(self, batch: Job) -> Sequence[Page]:
        assert batch.id == "b"
        return self.found

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable) -> list[Job]:
        self.read.append(len(keys))
        self.now += SECOND
        for tenant, job_id in keys:
            if job_id in self.unreadable:
                unreadable(tenant, job_id, MalformedDocumentError("of a newer version"))
        return [self.documents[key] for key in keys if key in self.documents and key[1] not in self.unreadable]

    def record(
        self, batch: Job, page: Page, ended: Mapping[State, frozenset[str]], *, now: datetime, last: bool
    ) -> None:
        assert batch.id == "b"
        self.recorded.append((page.number, ended, now, last))

    def members(self) -> BatchMembers:
        return BatchMembers(
            store=self,  # what a batch needs of it
            batches=self,  # type: ignore[arg-type]
            clock=lambda: self.now,
            new_token=lambda: "token",
        )


def a_page(number: int, count: int, *, ended: int = 0) -> Page:
    names = [f"{number}-{each}" for each in range(count)]
    done = {State.SUCCEEDED: frozenset(names[:ended])} if ended else {}
    return Page(number=number, members=frozenset(names), ended=done)


def a_member(name: str, **changes: Any) -> Job:
    return a_job(**{"id": name, "tenant": "t", "batch": "b"} | changes)


@pytest.mark.parametrize(
    ("sizes", "reads"),
    [
        ([], [0]),
        ([400, 400, 200], [1_000]),
        ([400, 400, 201], [800, 201]),
        ([1_200, 10], [1_200, 10]),
        ([0, 1_200], [1_200]),
        ([0, 0], [0]),
        ([600, 0, 600, 400, 1], [600, 1_000, 1]),
    ],
)
def test_a_look_reads_a_thousand_documents_together(sizes: list[int], reads: list[int]) -> None:
    pages = Pages(*(a_page(number, size) for number, size in enumerate(sizes)))

    look = pages.members().look(BATCH)

    assert pages.read == reads
    assert look.complete
    assert [page.number for page in look.pages] == [*range(len(sizes))]
    assert (look.at, look.total) == (NOW, sum(sizes))


def test_members_that_have_ended_are_not_read() -> None:
    pages = Pages(a_page(0, 900, ended=500), a_page(1, 700, ended=100))
    pages.members().look(BATCH)
    assert pages.read == [1_000]


@pytest.mark.parametrize(
    ("until", "reads", "complete"),
    [
        (NOW - SECOND, 1, False),
        (NOW + SECOND, 1, False),
        (NOW + 1.5 * SECOND, 2, False),
        (NOW + 2.5 * SECOND, 3, True),
        (None, 3, True),
    ],
)
def test_a_look_that_runs_out_of_time_has_read_the_first_pages(
    until: datetime | None, reads: int, complete: bool
) -> None:
    pages = Pages(*(a_page(number, 1_000) for number in range(3)))

    look = pages.members().look(BATCH, until=until)

    assert (len(pages.read), look.complete) == (reads, complete)
    assert [page.number for page in look.pages] == [*range(reads)]


@pytest.mark.parametrize(("most", "looks"), [(5, True), (4, False)])
def test_a_brief_look_reads_no_more_than_it_may(most: int, looks: bool) -> None:
    pages = Pages(a_page(0, 3), a_page(1, 4, ended=2))

    look = pages.members().brief_look(BATCH, most=most)

    assert (look is not None) is looks
    assert pages.read == ([5] if looks else [])


def test_a_look_takes_no_later_job_of_the_same_key_for_a_member() -> None:
    jobs = [a_member("0-0"), a_member("0-1", batch="later"), a_member("0-2", tenant="another")]
    pages = Pages(a_page(0, 4), jobs=jobs)
    pages.unreadable = {"0-3"}

    look = pages.members().look(BATCH)

    assert dict(look.jobs) == {"0-0": jobs[0].without_contents()}
    assert look.unreadable == frozenset({"0-3"})
    assert look.counts == {"missing": 2, "queued": 1, "unreadable": 1}


def test_the_document_of_the_batch_is_read_anew_and_must_be_there() -> None:
    pages = Pages()
    assert pages.members().batch("t", "b") == BATCH
    with pytest.raises(StoreUnavailableError, match="the document of the batch none is gone"):
        pages.members().batch("t", "none")


def test_a_close_is_tried_again_while_some_join() -> None:
    pages = Pages()
    pages.refusals = [TransactionConflictError("a job joins")]
    assert not pages.members().close(BATCH)
    assert pages.closed == []
    assert pages.members().close(BATCH)
    assert pages.closed == [NOW]


@pytest.mark.parametrize(
    ("changes", "last", "recorded"),
    [
        ({}, False, [0]),
        ({}, True, [0, 1]),
        # A batch that was redriven needs its pages for longer.
        ({"redrives": (Redrive(token="t", at=NOW, by="ada"),)}, False, [0, 1]),
    ],
)
def test_only_pages_with_new_ends_are_written_but_the_last_look_writes_all(
    changes: dict[str, Any], last: bool, recorded: list[int]
) -> None:
    jobs = [a_member("0-0", state=State.SUCCEEDED), a_member("0-1"), a_member("1-0", state=State.DEAD)]
    pages = Pages(a_page(0, 2), a_page(1, 1), jobs=jobs)
    members, batch = pages.members(), with_changes(BATCH, **changes)
    look = members.look(batch)
    pages.now += SECOND

    members.record(batch, look, last=last)

    ends = [{State.SUCCEEDED: frozenset({"0-0"})}, {}]
    assert pages.recorded == [(number, ends[number], NOW, last) for number in recorded]


CANCEL = {"now": NOW, "by": "owner", "reason": "its batch b was cancelled"}


def cancelled(live: Iterable[Job], *refusals: Exception, until: timedelta = timedelta(hours=1)) -> list[Any]:
    jobs = [*live]
    pages = Pages(jobs=jobs)
    pages.refusals = [*refusals]
    pages.members().cancel(BATCH, jobs, until=NOW + until)
    return pages.writes


def test_members_are_cancelled_in_the_name_of_the_owner_of_the_batch() -> None:
    assert cancelled([a_member("1"), a_member("2", state=State.DEAD)]) == [
        ("cancel", "1", CANCEL),
        ("cancel", "2", CANCEL),
    ]


def test_a_batch_among_them_is_cancelled_with_its_members() -> None:
    assert cancelled([a_member("1", type=BATCH_TYPE)]) == [
        ("signal", "1", CANCELLED, "true", NOW, False),
        ("signal", "1", CLOSED, "true", NOW, False),
    ]


def test_a_dead_batch_among_them_runs_once_more_to_cancel_its_members() -> None:
    assert cancelled([a_member("1", type=BATCH_TYPE, state=State.DEAD)]) == [
        ("signal", "1", CANCELLED, "true", NOW, False),
        ("signal", "1", CLOSED, "true", NOW, False),
        ("redrive", "1", {"token": "token"} | CANCEL),
    ]


def test_a_batch_that_was_deleted_since_the_look_does_not_keep_the_others_alive() -> None:
    pages = Pages(jobs=[a_member("2")])
    pages.members().cancel(BATCH, [a_member("1", type=BATCH_TYPE), a_member("2")], until=NOW + timedelta(hours=1))
    assert pages.writes == [("cancel", "2", CANCEL)]


def test_a_dead_batch_that_has_expired_cannot_run_once_more() -> None:
    expired = a_member("1", type=BATCH_TYPE, state=State.DEAD, expires_at=NOW)
    assert cancelled([expired]) == [("cancel", "1", CANCEL)]


@pytest.mark.parametrize(
    "refusal",
    [WriteRefusedError("cancel", None), TransactionConflictError("busy"), SignalRefusedError("it has ended")],
)
def test_a_member_that_cannot_be_cancelled_does_not_keep_the_others_alive(refusal: Exception) -> None:
    assert cancelled([a_member("1"), a_member("2")], refusal) == [("cancel", "2", CANCEL)]


@pytest.mark.parametrize(("until", "count"), [(-1, 1), (0, 1), (1, 3)])
def test_members_are_cancelled_until_the_time_is_over_but_one_in_any_case(until: int, count: int) -> None:
    live = [a_member(str(number)) for number in range(3)]
    assert len(cancelled(live, until=until * SECOND)) == count


def test_an_outage_ends_the_cancels() -> None:
    with pytest.raises(StoreUnavailableError):
        cancelled([a_member("1"), a_member("2")], StoreUnavailableError("down"))


def test_a_look_holds_no_results_of_thousands_of_members() -> None:
    large = a_job(id="m", tenant="t", batch="b", state=State.SUCCEEDED, result='"large"', checkpoint='"large"')
    pages = Pages(Page(number=0, members=frozenset({"m"})), jobs=[large])

    look = pages.members().look(BATCH)

    assert look.jobs == {"m": with_changes(large, payload=None, result=None, checkpoint=None)}
    assert look.counts == {State.SUCCEEDED: 1}
