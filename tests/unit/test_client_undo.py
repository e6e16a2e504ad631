"""The Python client undoes the jobs of its tenant."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import AN_UNDO, NOW, SETTLEMENTS, TENANT, claimed, stored
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tidemill.client import Submission, SupersedeRefusedError, Tidemill, UndoRefusedError
from tidemill.domain.errors import InvalidPayloadError
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.time_constants import JOB_RETENTION_DAYS
from tidemill.dynamodb.job_store import DynamoJobStore


def test_a_job_of_the_tenant_is_undone_once_and_that_of_another_is_not_found(
    client: FaultyClient, table: Table, store: DynamoJobStore
) -> None:
    tidemill, other = (
        Tidemill.at(table.name, tenant=name, job_packages=["tests.support.jobs"], client=client)  # type: ignore[arg-type]  # a proxy
        for name in (TENANT, "another")
    )
    job = tidemill.submit(Submission(type="test.noop", payload={"n": 1})).job
    with pytest.raises(UndoRefusedError, match="the job is queued"):
        tidemill.undo(job.id)
    assert job.due
    running = claimed(store, job, now=max(job.due, NOW))
    store.settle(running, replace(SETTLEMENTS[State.SUCCEEDED], undo=AN_UNDO), now=NOW)

    first, second = tidemill.undo(job.id), tidemill.undo(job.id)

    assert first
    assert second
    assert (first.replayed, second.replayed, first.job) == (False, True, second.job)
    assert (first.job.correction.undoes, first.job.type) == (job.id, "test.undo")
    assert other.undo(job.id) is None


def test_a_correction_marks_what_it_supersedes(client: FaultyClient, table: Table, store: DynamoJobStore) -> None:
    tidemill = Tidemill.at(table.name, tenant=TENANT, job_packages=["tests.support.jobs"], client=client)  # type: ignore[arg-type]  # a proxy
    wrong = tidemill.submit(Submission(type="test.noop", key="order-7")).job
    correction = Submission(type="test.noop", key="order-7b", supersedes="order-7")

    first, second = tidemill.submit(correction), tidemill.submit(correction)

    assert (first.replayed, second.replayed, first.job.id) == (False, True, second.job.id)
    assert stored(store, wrong).correction.superseded_by == first.job.id
    with pytest.raises(SupersedeRefusedError, match="no job with the key or id order-8"):
        tidemill.submit(Submission(type="test.noop", supersedes="order-8"))
    with pytest.raises(InvalidPayloadError, match="/supersedes"):
        tidemill.submission_item(correction)


@pytest.mark.parametrize("days", [JOB_RETENTION_DAYS, 7])
def test_a_superseded_job_is_kept_for_the_retention_of_the_stage(
    client: FaultyClient, table: Table, store: DynamoJobStore, days: int
) -> None:
    given: dict[str, Any] = {} if days == JOB_RETENTION_DAYS else {"retention_days": days}
    tidemill = Tidemill.at(
        table.name,
        tenant=TENANT,
        job_packages=["tests.support.jobs"],
        client=client,  # type: ignore[arg-type]  # a proxy
        **given,
    )
    wrong = Submission(type="test.noop", key="order-7", delay=timedelta(hours=1))
    tidemill.submit(wrong)
    correction = tidemill.submit(Submission(type="test.noop", key="order-7b", supersedes="order-7")).job

    # Also for a caller that repeats itself: the key is not free for another job.
    again = tidemill.submit(wrong)

    assert (again.replayed, again.job.state) == (True, State.CANCELLED)
    assert again.job.lifetime.expires_at
    assert (
        timedelta(0)
        <= again.job.lifetime.expires_at - (correction.created_at + timedelta(days=days))
        < timedelta(seconds=1)
    )


def test_a_superseded_success_keeps_its_undo_until_the_correction_may_run(
    client: FaultyClient, table: Table, store: DynamoJobStore
) -> None:
    tidemill = Tidemill.at(table.name, tenant=TENANT, job_packages=["tests.support.jobs"], client=client)  # type: ignore[arg-type]  # a proxy
    wrong = tidemill.submit(Submission(type="test.noop", key="order-7")).job
    assert wrong.due
    a_month_ago = wrong.due - timedelta(days=29)
    running = claimed(store, wrong, now=wrong.due)
    store.settle(running, replace(SETTLEMENTS[State.SUCCEEDED], undo=AN_UNDO), now=a_month_ago)

    correction = tidemill.submit(Submission(type="test.noop", supersedes="order-7")).job

    kept_until = stored(store, wrong).lifetime.expires_at
    assert kept_until
    assert kept_until >= correction.created_at + timedelta(days=JOB_RETENTION_DAYS)
