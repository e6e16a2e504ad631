"""Control decides from the current document, also when a concurrent write changed it after the read."""

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    TENANT,
    a_job,
    brought_to,
    claimed,
    fresh_token,
    stored,
    with_changes,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.interleave import meet
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.control.control import Control
from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import JobStore
from tidemill.domain.errors import NotAllowedNowError, StoreUnavailableError
from tidemill.domain.job import OWNER, Job
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore

AT_REST = [State.WAITING, State.SCHEDULED, State.QUEUED, State.RETRYING, State.DEAD]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def other(table: Table) -> DynamoJobStore:
    """A concurrent writer on the same table."""
    return DynamoJobStore(table.client, table=table.name, retention=RETENTION)


@pytest.fixture
def control(store: JobStore, clock: Clock) -> Control:
    return Control(store=store, clock=clock, new_token=fresh_token)


def ended_by_another(store: JobStore, job: Job) -> None:
    store.settle(claimed(store, job), SETTLEMENTS[State.SUCCEEDED], now=NOW)


@pytest.mark.parametrize("state", AT_REST)
def test_cancel_ends_a_job_at_rest(store: JobStore, control: Control, state: State) -> None:
    job = brought_to(store, state)

    cancelled = control.cancel(job.tenant, job.id)

    assert cancelled == stored(store, job)
    assert (cancelled.state, cancelled.finished_at, cancelled.due) == (State.CANCELLED, NOW, None)


def test_cancel_requests_the_end_of_a_running_job(store: JobStore, control: Control) -> None:
    job = brought_to(store, State.RUNNING)

    asked = control.cancel(job.tenant, job.id)

    assert asked == with_changes(job, cancel_requested_at=NOW, cancel=CancelRequest(by=OWNER))


def test_cancel_leaves_a_cancelled_job_as_it_is(store: JobStore, control: Control, clock: Clock) -> None:
    job = brought_to(store, State.QUEUED)
    first = control.cancel(job.tenant, job.id)
    clock.now += SECOND

    assert control.cancel(job.tenant, job.id) == first == stored(store, job)


def test_cancel_is_not_allowed_once_the_job_succeeded(store: JobStore, control: Control) -> None:
    job = brought_to(store, State.SUCCEEDED)

    with pytest.raises(NotAllowedNowError, match="succeeded cannot be cancelled"):
        control.cancel(job.tenant, job.id)

    assert stored(store, job) == job


def test_cancel_is_not_allowed_when_the_job_succeeds_at_that_moment(
    store: JobStore, control: Control, client: FaultyClient, other: DynamoJobStore
) -> None:
    job = brought_to(store, State.QUEUED)
    meet(client, lambda: ended_by_another(other, job))

    with pytest.raises(NotAllowedNowError):
        control.cancel(job.tenant, job.id)


def test_cancel_requests_the_end_of_a_job_that_is_claimed_at_that_moment(
    store: JobStore, control: Control, client: FaultyClient, other: DynamoJobStore
) -> None:
    job = brought_to(store, State.QUEUED)
    meet(client, lambda: claimed(other, job))

    asked = control.cancel(job.tenant, job.id)

    assert asked is not None
    assert (asked.state, asked.cancel.requested_at) == (State.RUNNING, NOW)


def test_cancel_finds_no_job_that_is_deleted_at_that_moment(
    store: JobStore, control: Control, table: Table, client: FaultyClient, other: DynamoJobStore
) -> None:
    job = brought_to(store, State.DEAD)
    meet(client, lambda: other.forget(job))

    assert control.cancel(job.tenant, job.id) is None
    assert table.item(job) is None


DEAD = JobFilter(states=[State.DEAD])
LIVE = JobFilter(states=[state for state in State if not state.terminal])


def test_a_job_that_was_found_dead_and_redriven_since_is_not_cancelled(store: JobStore, control: Control) -> None:
    dead = brought_to(store, State.DEAD)
    queued = store.redrive(dead, token="another", now=NOW, by="grace")

    assert not control.cancel_found(dead, DEAD, by="ada")
    assert stored(store, dead) == queued


def test_a_job_that_was_redriven_and_died_again_is_cancelled_if_the_filter_still_matches_it(
    store: JobStore, control: Control
) -> None:
    dead = brought_to(store, State.DEAD)
    queued = store.redrive(dead, token="another", now=NOW, by="grace")
    store.settle(claimed(store, queued), SETTLEMENTS[State.DEAD], now=NOW + SECOND)

    assert not control.cancel_found(dead, replace(DEAD, ended_until=NOW + SECOND), by="ada")
    assert stored(store, dead).state is State.DEAD
    assert control.cancel_found(dead, DEAD, by="ada")
    assert stored(store, dead).state is State.CANCELLED


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_live_job_that_was_found_and_has_run_on_since_is_cancelled(
    store: JobStore, control: Control, state: State
) -> None:
    job = brought_to(store, state)
    running = job if state is State.RUNNING else claimed(store, job)
    store.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)
    claimed(store, stored(store, job), now=NOW + LEASE)

    assert control.cancel_found(job, LIVE, by="ada")
    assert stored(store, job).cancel.requested_at == NOW


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_later_job_under_the_key_of_one_that_was_found_is_not_cancelled(
    store: JobStore, control: Control, table: Table, state: State
) -> None:
    job = brought_to(store, state)
    table.put(replace(job, created_at=NOW + SECOND))

    assert not control.cancel_found(job, LIVE, by="ada")
    assert (stored(store, job).state, stored(store, job).cancel.requested_at) == (state, None)


def test_a_job_that_was_found_and_has_ended_or_is_gone_is_not_cancelled(store: JobStore, control: Control) -> None:
    job = brought_to(store, State.QUEUED)
    ended_by_another(store, job)

    assert not control.cancel_found(job, LIVE, by="ada")
    assert stored(store, job).state is State.SUCCEEDED
    assert not control.cancel_found(a_job(), LIVE, by="ada")


def test_a_job_that_was_found_in_a_state_without_a_cancel_is_tried_once(
    store: JobStore, control: Control, client: FaultyClient
) -> None:
    job, writes = brought_to(store, State.SUCCEEDED), list[bool]()

    def count(applied: bool) -> None:
        writes.append(applied)
        assert len(writes) == 1

    client.watch = count
    assert not control.cancel_found(job, JobFilter(), by="ada")
    assert stored(store, job) == job


def test_redrive_requeues_a_dead_job_and_records_who_did_it(store: JobStore, control: Control, clock: Clock) -> None:
    job = brought_to(store, State.DEAD)
    clock.now += SECOND

    queued = control.redrive(job.tenant, job.id)

    assert queued == stored(store, job)
    assert (queued.state, queued.generation, queued.attempt, queued.due) == (State.QUEUED, 2, 0, NOW + SECOND)
    assert [(redrive.by, redrive.death) for redrive in queued.redrives] == [(OWNER, job.death)]


@pytest.mark.parametrize("state", [state for state in State if state not in {State.DEAD, State.CANCELLED}])
def test_redrive_is_not_allowed_unless_the_job_is_dead(store: JobStore, control: Control, state: State) -> None:
    job = brought_to(store, state)

    with pytest.raises(NotAllowedNowError, match=f"that is {state} cannot be redriven"):
        control.redrive(job.tenant, job.id)

    assert stored(store, job) == job


def test_of_two_concurrent_redrives_the_later_one_is_refused(
    store: JobStore, control: Control, client: FaultyClient, other: DynamoJobStore
) -> None:
    job = brought_to(store, State.DEAD)
    meet(client, lambda: other.redrive(job, token="another", now=NOW, by="grace"))

    with pytest.raises(NotAllowedNowError):
        control.redrive(job.tenant, job.id)

    assert [redrive.by for redrive in stored(store, job).redrives] == ["grace"]


def test_redrive_of_a_job_that_is_redriven_and_dies_again_at_that_moment_redrives_that_death(
    store: JobStore, control: Control, client: FaultyClient, other: DynamoJobStore
) -> None:
    def die_again() -> None:
        queued = other.redrive(job, token="another", now=NOW, by="grace")
        other.settle(claimed(other, queued), SETTLEMENTS[State.DEAD], now=NOW)

    job = brought_to(store, State.DEAD)
    meet(client, die_again)

    queued = control.redrive(job.tenant, job.id)

    assert queued is not None
    assert (queued.state, queued.generation) == (State.QUEUED, 3)
    assert [redrive.by for redrive in queued.redrives] == ["grace", OWNER]


def test_redrive_finds_no_job_that_is_deleted_at_that_moment(
    store: JobStore, control: Control, client: FaultyClient, other: DynamoJobStore
) -> None:
    job = brought_to(store, State.DEAD)
    meet(client, lambda: other.forget(job))

    assert control.redrive(job.tenant, job.id) is None


def test_an_expired_job_is_not_found(store: JobStore, control: Control, clock: Clock) -> None:
    job = brought_to(store, State.DEAD)
    clock.now = NOW + RETENTION + SECOND

    assert control.find(job.tenant, job.id) is None
    assert control.cancel(job.tenant, job.id) is None
    assert control.redrive(job.tenant, job.id) is None
    assert stored(store, job) == job


def test_a_job_of_another_tenant_is_not_found(store: JobStore, control: Control) -> None:
    job = brought_to(store, State.DEAD)

    assert control.find("another", job.id) is None
    assert control.cancel("another", job.id) is None
    assert control.redrive("another", job.id) is None
    assert stored(store, job) == job


@pytest.mark.parametrize("job_id", ["", "none", "x" * 3000, f"#{TENANT}", "\x00"])
def test_a_malformed_id_is_not_found(control: Control, job_id: str) -> None:
    assert control.find(TENANT, job_id) is None


@pytest.mark.parametrize("fault", [Fault.NOT_SENT, Fault.ANSWER_LOST])
def test_whether_a_cancel_took_effect_is_unknown_when_the_store_does_not_answer(
    store: JobStore, control: Control, client: FaultyClient, fault: Fault
) -> None:
    job = a_job()
    store.insert_if_absent(job)
    client.faults = [fault]

    with pytest.raises(StoreUnavailableError):
        control.cancel(job.tenant, job.id)

    again = control.cancel(job.tenant, job.id)
    assert again is not None
    assert again.state is State.CANCELLED
