"""An older version does not overwrite a document that a newer version, running beside it, has written."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import pytest

from tests.support.builders import A_STEP, LEASE, NOW, SECOND, SETTLEMENTS, brought_to
from tests.support.job_tables import Table
from tidemill.application.ports import Checkpoint, JobStore
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.errors import NewerSchemaError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import SCHEMA_VERSION

NEWER: Final = {"N": str(SCHEMA_VERSION + 1)}
#: Past every lease.
LATER: Final = NOW + LEASE + timedelta(days=1)
WRITES: Final[dict[str, tuple[State, Callable[[JobStore, Job], object]]]] = {
    "claim": (
        State.QUEUED,
        lambda store, job: store.claim(reference_to(job), token="old", now=LATER, lease_end=LATER + LEASE),
    ),
    "settle": (State.RUNNING, lambda store, job: store.settle(job, SETTLEMENTS[State.SUCCEEDED], now=NOW)),
    "release": (State.RUNNING, lambda store, job: store.release(job, now=NOW, due=NOW)),
    "unclaim": (
        State.RUNNING,
        lambda store, job: store.unclaim(reference_to(job), token=job.lease.owner or "", now=NOW),
    ),
    "checkpoint": (State.RUNNING, lambda store, job: store.checkpoint(job, Checkpoint(done=1), now=NOW)),
    "step": (State.RUNNING, lambda store, job: store.record_step(job, A_STEP)),
    "cancel": (State.QUEUED, lambda store, job: store.cancel(job, now=NOW)),
    "cancel of a run": (State.RUNNING, lambda store, job: store.cancel(job, now=NOW)),
    "wake": (State.SCHEDULED, lambda store, job: store.wake(job, now=NOW)),
    "nudge": (State.QUEUED, lambda store, job: store.nudge(job, now=LATER, limit=SECOND)),
    "redrive": (State.DEAD, lambda store, job: store.redrive(job, token="a", now=NOW, by="ada")),
}


@pytest.mark.parametrize(("state", "write"), WRITES.values(), ids=WRITES)
def test_an_older_version_does_not_overwrite_a_newer_document(
    store: JobStore, table: Table, state: State, write: Callable[[JobStore, Job], object]
) -> None:
    job = brought_to(store, state)
    before = {**(table.item(job) or {}), "schema": NEWER}
    table.client.put_item(TableName=table.name, Item=before)

    with pytest.raises(NewerSchemaError):
        write(store, job)

    assert table.item(job) == before


def test_a_run_of_an_older_version_settles_after_a_newer_version_requests_a_cancel(
    store: JobStore, table: Table
) -> None:
    """If the request raised the schema number, the older version could not settle and the run would be lost."""
    running = brought_to(store, State.RUNNING)
    older = {"N": str(SCHEMA_VERSION - 1)}
    table.client.put_item(TableName=table.name, Item={**(table.item(running) or {}), "schema": older})

    store.cancel(running, now=NOW)

    item = table.item(running) or {}
    assert (item["schema"], item["cancel_requested_at"]) == (older, {"N": str(round(NOW.timestamp() * 1000))})
