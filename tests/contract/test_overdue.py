"""`overdue`: every live job whose `due` is not after a time, and no other."""

from datetime import timedelta

import pytest

from tests.support.builders import LEASE, MILLISECOND, NOW, a_job, brought_to
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import TidemillError
from tidemill.domain.states import TERMINAL, State


def test_queued_and_retrying_jobs_are_overdue_from_their_time_on(store: JobStore) -> None:
    queued, retrying = brought_to(store, State.QUEUED), brought_to(store, State.RETRYING)
    assert retrying.due is not None

    assert [job.id for job in store.overdue(before=NOW - MILLISECOND)] == []
    assert [job.id for job in store.overdue(before=NOW)] == [queued.id]
    assert {job.id for job in store.overdue(before=retrying.due)} == {queued.id, retrying.id}


def test_a_running_job_is_overdue_when_its_lease_has_expired(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    assert list(store.overdue(before=NOW + LEASE - MILLISECOND)) == []
    assert list(store.overdue(before=NOW + LEASE)) == [running]


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_terminal_job_is_never_overdue(store: JobStore, state: State) -> None:
    brought_to(store, state)

    assert list(store.overdue(before=NOW + timedelta(days=1000))) == []


def test_the_whole_table_is_read_page_by_page(store: JobStore, table: Table) -> None:
    jobs = [a_job(payload='"' + "x" * 300_000 + '"') for _ in range(5)]
    for job in jobs:
        table.put(job)

    assert {job.id for job in store.overdue(before=NOW)} == {job.id for job in jobs}


def test_an_unreadable_document_is_reported_and_hides_no_other_job(store: JobStore, table: Table) -> None:
    jobs = [brought_to(store, State.QUEUED) for _ in range(3)]
    table.put(jobs[1], schema={"N": "99"})
    unreadable: list[tuple[str, str, TidemillError]] = []

    found = store.overdue(before=NOW, unreadable=lambda *what: unreadable.append(what))

    assert {job.id for job in found} == {jobs[0].id, jobs[2].id}
    assert [(tenant, job_id) for tenant, job_id, _ in unreadable] == [(jobs[1].tenant, jobs[1].id)]
