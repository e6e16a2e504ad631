"""The pages of a batch: a member is on its page if and only if its document was written, and once."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.batches.batches import PAGES, Page
from tidemill.domain.errors import BatchRefusedError, TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import FINAL_STATES, State
from tidemill.dynamodb.batches import batch_pages
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import BATCH_TYPE
from tidemill.system.ids import new_job_id


@pytest.fixture
def pages(client: FaultyClient, table: Table) -> DynamoBatchPages:
    return DynamoBatchPages(client, table=table.name)  # type: ignore[arg-type]  # a proxy


def a_batch(store: DynamoJobStore) -> Job:
    return store.insert_if_absent(a_job(id=new_job_id(), type=BATCH_TYPE))


def a_member(batch: Job, **changes: object) -> Job:
    return a_job(**{"id": new_job_id(), "batch": batch.id} | changes)


def members(pages: DynamoBatchPages, batch: Job) -> set[str]:
    return {job_id for page in pages.pages(batch) for job_id in page.members}


@pytest.mark.parametrize("group", [None, "g"])
def test_a_member_is_written_with_its_place(store: DynamoJobStore, pages: DynamoBatchPages, group: str | None) -> None:
    batch = a_batch(store)
    jobs = [store.insert_if_absent(a_member(batch, group=group), batch=batch) for _ in range(3)]
    assert members(pages, batch) == {job.id for job in jobs}
    assert {page.number for page in pages.pages(batch)} == {batch_pages.page_number(job.id) for job in jobs}
    assert all(store.get(job.tenant, job.id) == job for job in jobs)


def test_a_second_submission_of_a_member_changes_nothing(store: DynamoJobStore, pages: DynamoBatchPages) -> None:
    batch = a_batch(store)
    first = store.insert_if_absent(a_member(batch), batch=batch)
    with pytest.raises(WriteRefusedError):
        store.insert_if_absent(replace(first, trace="other"), batch=batch)
    assert members(pages, batch) == {first.id}


def test_a_write_whose_answer_was_lost_is_there_once(
    store: DynamoJobStore, pages: DynamoBatchPages, client: FaultyClient
) -> None:
    batch = a_batch(store)
    job = a_member(batch)
    store.insert_if_absent(job, batch=batch)
    assert store.insert_if_absent(job, batch=batch) == job
    assert members(pages, batch) == {job.id}


def test_a_closed_page_refuses_a_member(store: DynamoJobStore, pages: DynamoBatchPages) -> None:
    batch = a_batch(store)
    first = store.insert_if_absent(a_member(batch), batch=batch)
    for _ in range(2):
        pages.close(batch, now=NOW)
    late = a_member(batch)
    with pytest.raises(BatchRefusedError, match="closed"):
        store.insert_if_absent(late, batch=batch)
    assert store.get(late.tenant, late.id) is None
    assert members(pages, batch) == {first.id}
    assert len(pages.pages(batch)) == PAGES


def test_a_full_page_refuses_a_member(
    store: DynamoJobStore, pages: DynamoBatchPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_pages, "MOST_ON_PAGE", 2)
    monkeypatch.setattr(batch_pages, "page_number", lambda _job_id: 7)
    batch = a_batch(store)
    for _ in range(2):
        store.insert_if_absent(a_member(batch), batch=batch)
    with pytest.raises(BatchRefusedError, match="full"):
        store.insert_if_absent(a_member(batch), batch=batch)
    assert len(members(pages, batch)) == 2


def test_an_end_that_is_noted_twice_counts_once(store: DynamoJobStore, pages: DynamoBatchPages) -> None:
    batch = a_batch(store)
    job = store.insert_if_absent(a_member(batch), batch=batch)
    (page,) = pages.pages(batch)
    for last in (False, True):
        pages.record(batch, page, {State.SUCCEEDED: frozenset({job.id})}, now=NOW, last=last)
    (noted,) = pages.pages(batch)
    assert (noted.ended, noted.unfinished) == ({State.SUCCEEDED: frozenset({job.id})}, frozenset())


@pytest.mark.parametrize("state", FINAL_STATES)
def test_a_member_whose_key_is_submitted_again_has_not_ended(
    store: DynamoJobStore, pages: DynamoBatchPages, state: State
) -> None:
    batch = a_batch(store)
    first = store.insert_if_absent(a_member(batch, expires_at=NOW), batch=batch)
    (page,) = pages.pages(batch)
    pages.record(batch, page, {state: frozenset({first.id})}, now=NOW)

    again = with_changes(first, trace="again", created_at=NOW + timedelta(hours=1), expires_at=None)
    for _ in range(2):  # the answer to the first was lost
        assert store.insert_if_absent(again, batch=batch) == again

    (page,) = pages.pages(batch)
    assert page.unfinished == page.members == {first.id}
    pages.close(batch, now=NOW)
    assert {each.closed for each in pages.pages(batch)} == {True}


def test_an_end_is_noted_at_the_next_look_if_a_member_joins_at_this_moment() -> None:
    class Busy:
        def update_item(self, **_request: Any) -> None:
            raise ClientError({"Error": {"Code": "TransactionConflictException", "Message": "busy"}}, "UpdateItem")

    client: Any = Busy()
    pages, batch = DynamoBatchPages(client, table="jobs"), a_job(id=new_job_id(), type=BATCH_TYPE)

    pages.record(batch, Page(number=0), {State.SUCCEEDED: frozenset({new_job_id()})}, now=NOW)
    with pytest.raises(TransactionConflictError):
        pages.close(batch, now=NOW)


def test_a_new_batch_under_the_key_of_an_expired_one_has_its_own_pages(
    store: DynamoJobStore, pages: DynamoBatchPages
) -> None:
    batch = a_batch(store)
    store.insert_if_absent(a_member(batch), batch=batch)
    pages.close(batch, now=NOW)
    assert pages.pages(replace(batch, created_at=batch.created_at + timedelta(days=60) + SECOND)) == []
