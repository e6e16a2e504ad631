"""`insert_if_absent`: no such item, or an expired one."""

from datetime import timedelta

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, an_error, brought_to, stored, with_changes
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State


def _expiring(store: JobStore, table: Table, at_seconds: timedelta) -> Job:
    """A dead job that expires this long after the present second."""
    dead = with_changes(brought_to(store, State.DEAD), expires_at=NOW.replace(microsecond=0) + at_seconds)
    table.put(dead)
    return dead


def test_insert_writes_the_whole_document_when_it_is_missing(store: JobStore) -> None:
    job = a_job()

    store.insert_if_absent(job)

    assert stored(store, job) == job


def test_insert_is_rejected_by_an_existing_document_and_returns_it(store: JobStore) -> None:
    first = brought_to(store, State.RUNNING)

    with pytest.raises(WriteRefusedError) as refused:
        store.insert_if_absent(a_job(id=first.id, trace="another request"))

    assert refused.value.current == first
    assert stored(store, first) == first


def test_insert_replaces_a_document_that_expires_in_this_second(store: JobStore, table: Table) -> None:
    expired = _expiring(store, table, timedelta(0))
    fresh = a_job(id=expired.id, trace="another request")

    store.insert_if_absent(fresh)

    assert stored(store, fresh) == fresh


def test_insert_keeps_no_attribute_of_the_document_that_it_replaces(store: JobStore, table: Table) -> None:
    expired = _expiring(store, table, -SECOND)
    table.put(replace(expired, errors=(an_error(),)), attention={"S": "dead#0"}, attention_at={"N": "1"})

    store.insert_if_absent(a_job(id=expired.id, trace="another request"))

    item = table.item(expired)
    assert item is not None
    assert not {"attention", "attention_at", "errors", "expires_at", "death", "last_owner"} & item.keys()


def test_insert_is_rejected_until_the_second_in_which_the_document_expires(store: JobStore, table: Table) -> None:
    kept = _expiring(store, table, SECOND)

    with pytest.raises(WriteRefusedError):
        store.insert_if_absent(
            a_job(id=kept.id, trace="x", created_at=NOW.replace(microsecond=0) + SECOND - MILLISECOND)
        )


def test_insert_of_another_body_by_the_same_request_is_rejected(store: JobStore) -> None:
    job = a_job()
    store.insert_if_absent(job)

    with pytest.raises(WriteRefusedError):
        store.insert_if_absent(replace(job, body_hash="f" * 64))


def test_jobs_with_the_same_id_of_two_tenants_are_independent(store: JobStore) -> None:
    mine = a_job()
    theirs = replace(mine, tenant="444455556666:AROAOTHER", trace="another request")

    store.insert_if_absent(mine)
    store.insert_if_absent(theirs)

    assert (stored(store, mine), stored(store, theirs)) == (mine, theirs)
