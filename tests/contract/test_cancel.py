"""`cancel`: ends a job that does not run, requests the end of a running one, and retries after a concurrent change."""

from collections.abc import Callable
from datetime import datetime

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    a_job,
    behind_an_ended_head,
    brought_to,
    claimed,
    fresh_token,
    stored,
    with_changes,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.interleave import meet
from tests.support.job_tables import Table
from tidemill.application.ports import Checkpoint, JobStore
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import OPERATOR, Job
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore

AT_REST = [State.WAITING, State.SCHEDULED, State.QUEUED, State.RETRYING, State.DEAD]
LATER = NOW + SECOND


@pytest.fixture
def other(table: Table) -> DynamoJobStore:
    """A second store on the same table."""
    return DynamoJobStore(table.client, table=table.name, retention=RETENTION)


def in_whole_seconds(moment: datetime) -> datetime:
    """The TTL in seconds, rounded up."""
    return moment.replace(microsecond=0) + SECOND


@pytest.mark.parametrize("state", AT_REST)
def test_cancel_ends_a_job_that_is_not_running_and_lets_it_expire(store: JobStore, table: Table, state: State) -> None:
    job = brought_to(store, state)

    cancelled = store.cancel(job, now=LATER)

    assert cancelled == stored(store, job)
    assert (cancelled.state, cancelled.finished_at, cancelled.due) == (State.CANCELLED, LATER, None)
    assert cancelled.lifetime.expires_at == in_whole_seconds(LATER + RETENTION)
    assert (cancelled.generation, cancelled.errors, cancelled.death) == (job.generation, job.errors, None)
    assert not {"attention", "attention_at"} & (table.item(job) or {}).keys()


@pytest.mark.parametrize("state", AT_REST)
def test_a_cancelled_job_cannot_be_claimed(store: JobStore, state: State) -> None:
    job = store.cancel(brought_to(store, state), now=NOW)

    with pytest.raises(WriteRefusedError):
        claimed(store, job, now=NOW + 10_000 * SECOND)


def test_cancel_of_a_running_job_records_a_request_and_keeps_its_run(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    asked = store.cancel(running, now=LATER)

    request = CancelRequest(by=OPERATOR)
    assert asked == with_changes(running, cancel_requested_at=LATER, cancel=request) == stored(store, running)


def test_a_run_with_a_cancel_request_may_succeed_or_be_cancelled_but_not_continue(store: JobStore) -> None:
    running = store.cancel(brought_to(store, State.RUNNING), now=NOW)
    assert store.checkpoint(running, Checkpoint(done=1), now=NOW) is True

    with pytest.raises(WriteRefusedError):
        store.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)

    store.settle(running, Settlement(state=State.CANCELLED), now=NOW)
    assert stored(store, running).state is State.CANCELLED


def test_cancel_of_a_cancelled_job_changes_nothing(store: JobStore) -> None:
    cancelled = store.cancel(brought_to(store, State.QUEUED), now=NOW)

    assert store.cancel(cancelled, now=LATER) == cancelled == stored(store, cancelled)


def test_cancel_is_rejected_by_a_job_that_succeeded(store: JobStore) -> None:
    job = brought_to(store, State.SUCCEEDED)

    with pytest.raises(WriteRefusedError) as refused:
        store.cancel(job, now=NOW)

    assert refused.value.current == job == stored(store, job)


def test_cancel_of_a_missing_document_creates_none(store: JobStore) -> None:
    job = a_job()

    with pytest.raises(WriteRefusedError) as refused:
        store.cancel(job, now=NOW)

    assert refused.value.current is None
    assert store.get(job.tenant, job.id) is None


@pytest.mark.parametrize("believed", State)
@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_cancel_ignores_the_state_that_the_caller_read(store: JobStore, believed: State, state: State) -> None:
    job = brought_to(store, state)

    cancelled = store.cancel(replace(job, state=believed), now=NOW)

    assert cancelled.state is (State.RUNNING if state is State.RUNNING else State.CANCELLED)


def test_a_cancel_after_a_concurrent_claim_requests_the_end_of_the_run(
    store: DynamoJobStore, client: FaultyClient, other: DynamoJobStore
) -> None:
    job = brought_to(store, State.QUEUED)
    meet(client, lambda: claimed(other, job))

    asked = store.cancel(job, now=NOW)

    assert (asked.state, asked.attempt, asked.cancel.requested_at) == (State.RUNNING, 1, NOW)


def between_the_two_writes(client: FaultyClient, act: Callable[[], object]) -> None:
    """Call `act` after the cancel of a job at rest is refused, and before the cancel of a running one."""
    meet(client, lambda: meet(client, act))


@pytest.mark.parametrize("ending", [State.RETRYING, State.DEAD])
def test_a_run_that_fails_between_the_two_writes_leaves_a_cancelled_job(
    store: DynamoJobStore, client: FaultyClient, other: DynamoJobStore, ending: State
) -> None:
    running = brought_to(store, State.RUNNING)
    between_the_two_writes(client, lambda: other.settle(running, SETTLEMENTS[ending], now=NOW))

    cancelled = store.cancel(running, now=NOW)

    assert (cancelled.state, cancelled.cancel.requested_at) == (State.CANCELLED, None)
    assert stored(store, running) == cancelled


def test_a_run_that_succeeds_between_the_two_writes_is_not_cancelled(
    store: DynamoJobStore, client: FaultyClient, other: DynamoJobStore
) -> None:
    running = brought_to(store, State.RUNNING)
    between_the_two_writes(client, lambda: other.settle(running, SETTLEMENTS[State.SUCCEEDED], now=NOW))

    with pytest.raises(WriteRefusedError) as refused:
        store.cancel(running, now=NOW)

    assert refused.value.current is not None
    assert refused.value.current.state is State.SUCCEEDED
    assert stored(store, running).cancel.requested_at is None


def test_a_job_that_changes_state_twice_meanwhile_is_still_cancelled(
    store: DynamoJobStore, client: FaultyClient, other: DynamoJobStore
) -> None:
    def settled_and_claimed_again() -> None:
        other.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)
        claimed(other, stored(other, running), now=NOW + LEASE)

    running = brought_to(store, State.RUNNING)
    between_the_two_writes(client, settled_and_claimed_again)

    asked = store.cancel(running, now=NOW)

    assert (asked.state, asked.attempt, asked.cancel.requested_at) == (State.RUNNING, 2, NOW)


@pytest.mark.parametrize("state", [*AT_REST, State.RUNNING])
def test_a_cancel_that_was_sent_twice_is_applied_once(
    store: DynamoJobStore, client: FaultyClient, state: State
) -> None:
    job = brought_to(store, state)

    client.faults = [Fault.SENT_TWICE] * 2
    cancelled = store.cancel(job, now=NOW)

    assert cancelled == stored(store, job)
    assert cancelled.state is (State.RUNNING if state is State.RUNNING else State.CANCELLED)


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_cancel_whose_response_was_lost_may_be_repeated(
    store: DynamoJobStore, client: FaultyClient, state: State
) -> None:
    job = brought_to(store, state)
    client.faults = [Fault.ANSWER_LOST] if state is State.QUEUED else [None, Fault.ANSWER_LOST]
    with pytest.raises(StoreUnavailableError):
        store.cancel(job, now=NOW)
    once = stored(store, job)

    assert store.cancel(job, now=NOW) == once == stored(store, job)


def test_two_concurrent_cancels_both_succeed(
    store: DynamoJobStore, client: FaultyClient, other: DynamoJobStore
) -> None:
    job = brought_to(store, State.QUEUED)
    meet(client, lambda: other.cancel(job, now=NOW))

    assert store.cancel(job, now=LATER).finished_at == NOW


def _dead_head(store: JobStore) -> tuple[Job, Job]:
    """A dead job that blocks its group, and the job that waits behind it."""
    group = fresh_token()
    head = store.insert_if_absent(a_job(group=group, blocks=True))
    waiting = store.insert_if_absent(a_job(group=group))
    store.settle(claimed(store, head), SETTLEMENTS[State.DEAD], now=NOW)
    return stored(store, head), waiting


def test_a_group_advances_when_the_dead_job_that_blocks_it_is_cancelled(store: JobStore) -> None:
    head, waiting = _dead_head(store)
    assert head.lifetime.expires_at is None
    assert store.advance(head.tenant, head.group.key or "", now=NOW) is None

    cancelled = store.cancel(head, now=NOW)

    assert cancelled.lifetime.expires_at == in_whole_seconds(NOW + RETENTION)
    advanced = store.advance(head.tenant, head.group.key or "", now=NOW)
    assert advanced is not None
    assert (advanced.id, advanced.state) == (waiting.id, State.QUEUED)


def test_a_group_skips_a_cancelled_waiting_job(store: JobStore) -> None:
    waiting = behind_an_ended_head(store)
    last = store.insert_if_absent(a_job(group=waiting.group.key))
    store.cancel(waiting, now=NOW)

    advanced = store.advance(last.tenant, last.group.key or "", now=NOW)

    assert advanced is not None
    assert advanced.id == last.id
    assert stored(store, waiting).state is State.CANCELLED
