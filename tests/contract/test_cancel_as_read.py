"""`cancel` with `as_read`: only the job that the operator has chosen, at the moment at which it was chosen."""

from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, brought_to, stored, with_changes
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import key
from tidemill.dynamodb.job_store import DynamoJobStore

LATER = NOW + SECOND
AT_REST = [State.WAITING, State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED, State.DEAD]
ASKED = CancelRequest(by="ada", reason="a typo")


def cancel(store: DynamoJobStore, job: Job) -> Job:
    return store.cancel(job, now=LATER, by=ASKED.by, reason=ASKED.reason, as_read=True)


@pytest.mark.parametrize("state", AT_REST)
@pytest.mark.parametrize("fault", [None, Fault.SENT_TWICE])
def test_a_job_at_rest_is_cancelled(
    store: DynamoJobStore, client: FaultyClient, state: State, fault: Fault | None
) -> None:
    job = brought_to(store, state)
    client.faults = [fault]

    cancelled = cancel(store, job)

    assert cancelled == stored(store, job)
    assert (cancelled.state, cancelled.cancel.request, cancelled.finished_at) == (State.CANCELLED, ASKED, LATER)


@pytest.mark.parametrize("fault", [None, Fault.SENT_TWICE])
def test_a_run_is_asked_to_end(store: DynamoJobStore, client: FaultyClient, fault: Fault | None) -> None:
    running = brought_to(store, State.RUNNING)
    client.faults = [fault]

    asked = cancel(store, running)

    assert asked == with_changes(running, cancel=ASKED, cancel_requested_at=LATER) == stored(store, running)


@pytest.mark.parametrize("state", [*AT_REST, State.RUNNING])
@pytest.mark.parametrize(
    "since",
    [{"generation": 7}, {"created_at": LATER}, {"state": State.SUCCEEDED}, {"state": State.CANCELLED}],
    ids=str,
)
def test_a_job_that_has_changed_since_it_was_read_is_left_alone(
    store: DynamoJobStore, table: Table, state: State, since: dict[str, Any]
) -> None:
    """It ran, or was redriven, or a later job has its key."""
    job = brought_to(store, state)
    now = with_changes(job, **since)
    table.put(now)
    if since == {"state": State.CANCELLED} and state is not State.RUNNING:
        assert cancel(store, job) == now, "another operator was faster"
        return

    with pytest.raises(WriteRefusedError) as refused:
        cancel(store, job)

    assert refused.value.current == now == stored(store, job)


@pytest.mark.parametrize(("read", "now"), [(State.QUEUED, State.RUNNING), (State.RUNNING, State.RETRYING)])
def test_a_job_whose_run_began_or_ended_since_it_was_read_is_left_alone(
    store: DynamoJobStore, read: State, now: State
) -> None:
    present = brought_to(store, now)

    with pytest.raises(WriteRefusedError) as refused:
        cancel(store, replace(present, state=read))

    assert refused.value.current == present == stored(store, present)


def test_a_later_job_under_the_key_that_was_cancelled_is_refused(store: DynamoJobStore, table: Table) -> None:
    job = brought_to(store, State.QUEUED)
    table.put(replace(job, state=State.CANCELLED, created_at=LATER))

    with pytest.raises(WriteRefusedError):
        cancel(store, job)

    assert store.cancel(job, now=LATER) == stored(store, job), "otherwise, the key alone says which job is meant"


@pytest.mark.parametrize("as_read", [True, False])
@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_job_that_is_gone_is_refused_and_stays_away(
    store: DynamoJobStore, client: FaultyClient, table: Table, as_read: bool, state: State
) -> None:
    job = brought_to(store, state)
    writes: list[bool] = []

    def delete(applied: bool) -> None:
        """Before the last write of the cancel. Without `as_read`, a run gets a second one."""
        writes.append(applied)
        if applied is False and (as_read or state is State.QUEUED or len(writes) == 2):
            table.client.delete_item(TableName=table.name, Key=key(job.tenant, job.id))

    client.watch = delete

    with pytest.raises(WriteRefusedError) as refused:
        store.cancel(job, now=LATER, by="ada", as_read=as_read)

    assert refused.value.current is None
    assert store.get(job.tenant, job.id) is None
