"""`settle` and `release`: owner = :token."""

from collections.abc import Callable

import pytest

from tests.support.builders import (
    LEASE,
    MILLISECOND,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    a_job,
    an_error,
    brought_to,
    claimed,
    reference_to,
    stored,
)
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause


def test_success_is_settled_with_its_result(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    store.settle(running, SETTLEMENTS[State.SUCCEEDED], now=NOW)

    settled = stored(store, running)
    assert (settled.state, settled.result, settled.finished_at) == (State.SUCCEEDED, '{"n":1}', NOW)
    assert (settled.lease.owner, settled.lease.last_owner, settled.due) == (None, running.lease.owner, None)
    assert settled.generation == running.generation


def test_a_failure_with_attempts_left_requests_another_dispatch(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    store.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)

    settled = stored(store, running)
    assert (settled.state, settled.generation, settled.due) == (State.RETRYING, 2, NOW + 5 * SECOND)
    assert (settled.lease.owner, settled.lease.last_owner, settled.attempt) == (None, running.lease.owner, 1)
    assert settled.errors == (an_error(next_due=NOW + 5 * SECOND),)


def test_death_is_settled_with_its_reason_and_keeps_the_generation(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    store.settle(running, SETTLEMENTS[State.DEAD], now=NOW)

    settled = stored(store, running)
    assert (settled.state, settled.death, settled.generation) == (State.DEAD, DeathReason.PERMANENT, 1)
    assert (settled.due, settled.lease.owner) == (None, None)


@pytest.mark.parametrize("state", list(State))
def test_a_job_may_expire_only_when_it_is_terminal(store: JobStore, state: State) -> None:
    job = brought_to(store, state)

    # Rounded up to a second, the unit of a TTL.
    forgotten = NOW.replace(microsecond=0) + SECOND + RETENTION
    assert job.lifetime.expires_at == (forgotten if state.terminal else None)


@pytest.mark.parametrize("state", list(State))
def test_only_scheduled_parked_and_dead_jobs_are_in_the_attention_index(
    store: JobStore, table: Table, state: State
) -> None:
    item = table.item(brought_to(store, state))

    assert item is not None
    assert ({"attention", "attention_at"} <= item.keys()) is (state in {State.SCHEDULED, State.PARKED, State.DEAD})


def test_only_the_last_ten_errors_are_kept_oldest_first(store: JobStore) -> None:
    errors = tuple(an_error(attempt=number) for number in range(1, 11))
    job = a_job(errors=errors, attempt=10)
    store.insert_if_absent(job)

    store.settle(claimed(store, job), replace(SETTLEMENTS[State.RETRYING], error=an_error(attempt=11)), now=NOW)

    assert [error.attempt for error in stored(store, job).errors] == list(range(2, 12))


@pytest.mark.parametrize("state", sorted(SETTLEMENTS.keys() - {State.PARKED}))
def test_the_next_run_records_the_error_of_a_run_that_ended_without_a_result(store: JobStore, state: State) -> None:
    first = brought_to(store, State.RUNNING)
    second = claimed(store, first, now=NOW + LEASE)
    settlement = SETTLEMENTS[state]
    reported = (replace(settlement.error, attempt=2),) if settlement.error else ()
    assert second.suspect

    store.settle(second, replace(settlement, error=reported[0] if reported else None), now=NOW + LEASE + SECOND)

    after = stored(store, first)
    crash, *rest = after.errors
    assert (after.lease.open_runs, after.lost) == (0, ())
    # The error has the time of the beginning of the run: its end is unknown.
    assert (crash.attempt, crash.at, crash.error_class, crash.retryable) == (1, first.lease.claimed_at, "Crashed", True)
    assert "without reporting a result" in crash.message
    assert tuple(rest) == reported


def _hold(store: JobStore, running: Job) -> None:
    held = Settlement(
        state=State.QUEUED, due=NOW + LEASE, attempt=running.attempt - 1, holds=1, hold_cause=HoldCause.SUSPECT
    )
    store.settle(running, held, now=NOW + LEASE)


def _park(store: JobStore, running: Job) -> None:
    store.settle(running, replace(SETTLEMENTS[State.PARKED], attempt=running.attempt - 1), now=NOW + LEASE)
    store.unpark(stored(store, running), now=NOW, due=NOW + LEASE)


@pytest.mark.parametrize(
    "give_back",
    [
        _hold,
        _park,
        lambda store, running: store.release(running, now=NOW, due=NOW + LEASE),
        lambda store, running: store.unclaim(reference_to(running), token=running.lease.owner, now=NOW + LEASE),
    ],
    ids=["hold", "park", "release", "unclaim"],
)
def test_a_run_that_is_given_back_leaves_an_earlier_crash_to_the_next_run(
    store: JobStore, give_back: Callable[[JobStore, Job], None]
) -> None:
    first = brought_to(store, State.RUNNING)
    give_back(store, claimed(store, first, now=NOW + LEASE))

    between = stored(store, first)
    assert (between.errors, [error.attempt for error in between.known_errors]) == ((), [1])
    third = claimed(store, between, now=NOW + LEASE)
    assert third.suspect
    store.settle(third, SETTLEMENTS[State.SUCCEEDED], now=NOW + LEASE)

    assert [error.attempt for error in stored(store, first).known_errors] == [1]


def test_a_job_is_no_longer_suspect_after_a_run_that_came_back(store: JobStore) -> None:
    first = brought_to(store, State.RUNNING)
    snoozed = replace(SETTLEMENTS[State.QUEUED], attempt=1, due=NOW + LEASE)
    store.settle(claimed(store, first, now=NOW + LEASE), snoozed, now=NOW + LEASE)

    assert not claimed(store, stored(store, first), now=NOW + LEASE).suspect


def test_a_crash_before_a_continuation_and_one_after_it_are_both_recorded(store: JobStore) -> None:
    first = brought_to(store, State.RUNNING)
    store.settle(claimed(store, first, now=NOW + LEASE), SETTLEMENTS[State.QUEUED], now=NOW + LEASE)
    claimed(store, stored(store, first), now=NOW + LEASE)

    last = claimed(store, stored(store, first), now=NOW + 2 * LEASE)
    store.settle(last, SETTLEMENTS[State.SUCCEEDED], now=NOW + 2 * LEASE)

    assert [(error.attempt, error.error_class) for error in stored(store, first).errors] == [(1, "Crashed")] * 2


def test_a_crash_is_known_once_a_nudge_has_taken_the_run_back(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)
    store.nudge(running, now=NOW + 2 * LEASE, limit=SECOND)

    retrying = stored(store, running)
    assert (retrying.state, [error.attempt for error in retrying.known_errors]) == (State.RETRYING, [1])
    again = claimed(store, retrying, now=NOW + 2 * LEASE)
    assert (again.suspect, [error.attempt for error in again.known_errors]) == (True, [1])


def test_success_keeps_the_errors_of_earlier_attempts(store: JobStore) -> None:
    retrying = brought_to(store, State.RETRYING)

    store.settle(claimed(store, retrying, now=NOW + 5 * SECOND), SETTLEMENTS[State.SUCCEEDED], now=NOW)

    assert stored(store, retrying).errors == retrying.errors


def test_a_success_without_a_result_stores_no_result(store: JobStore, table: Table) -> None:
    running = brought_to(store, State.RUNNING)

    store.settle(running, Settlement(state=State.SUCCEEDED), now=NOW)

    assert "result" not in (table.item(running) or {})


@pytest.mark.parametrize("settlement", SETTLEMENTS.values(), ids=SETTLEMENTS)
def test_a_worker_whose_lease_was_taken_over_changes_nothing(
    store: JobStore, table: Table, settlement: Settlement
) -> None:
    first = brought_to(store, State.RUNNING)
    second = claimed(store, first, token="another", now=NOW + LEASE)
    before = table.item(first)

    with pytest.raises(WriteRefusedError) as refused:
        store.settle(first, settlement, now=NOW + LEASE + SECOND)

    assert refused.value.current == second
    assert table.item(first) == before


def test_an_expired_lease_that_was_not_taken_over_may_still_be_settled(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    store.settle(running, SETTLEMENTS[State.SUCCEEDED], now=NOW + 2 * LEASE)

    assert stored(store, running).state is State.SUCCEEDED


def test_settle_is_rejected_after_another_worker_has_settled(store: JobStore, table: Table) -> None:
    first = brought_to(store, State.RUNNING)
    second = claimed(store, first, token="another", now=NOW + LEASE)
    store.settle(second, SETTLEMENTS[State.SUCCEEDED], now=NOW + LEASE)
    before = table.item(first)

    with pytest.raises(WriteRefusedError):
        store.settle(first, SETTLEMENTS[State.DEAD], now=NOW + LEASE)

    assert table.item(first) == before


def test_settle_is_rejected_after_a_nudge_took_the_run_back(store: JobStore, table: Table) -> None:
    running = brought_to(store, State.RUNNING)
    store.nudge(running, now=NOW + LEASE + SECOND, limit=SECOND)
    before = table.item(running)

    with pytest.raises(WriteRefusedError):
        store.settle(running, SETTLEMENTS[State.SUCCEEDED], now=NOW + LEASE + SECOND)

    assert table.item(running) == before


def test_settle_of_a_missing_document_creates_none(store: JobStore) -> None:
    job = a_job(owner="mine", state=State.RUNNING)

    with pytest.raises(WriteRefusedError) as refused:
        store.settle(job, SETTLEMENTS[State.SUCCEEDED], now=NOW)

    assert refused.value.current is None
    assert store.get(job.tenant, job.id) is None


def test_a_document_without_an_owner_cannot_be_settled(store: JobStore) -> None:
    queued = brought_to(store, State.QUEUED)

    with pytest.raises(WriteRefusedError):
        store.settle(queued, SETTLEMENTS[State.SUCCEEDED], now=NOW)


def test_release_gives_the_attempt_back_and_requests_another_dispatch_at_once(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    store.release(running, now=NOW, due=NOW + MILLISECOND)

    released = stored(store, running)
    assert (released.state, released.attempt, released.generation) == (State.RETRYING, 0, 2)
    assert (released.due, released.lease.owner, released.lease.last_owner) == (
        NOW + MILLISECOND,
        None,
        running.lease.owner,
    )
    assert released.errors == ()


def test_a_run_that_was_given_back_can_not_be_settled(store: JobStore) -> None:
    """The release was applied, and its answers were lost."""
    running = brought_to(store, State.RUNNING)
    store.release(running, now=NOW, due=NOW + LEASE)

    with pytest.raises(WriteRefusedError) as refused:
        store.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)

    assert refused.value.current == stored(store, running)
    store.release(running, now=NOW, due=NOW + LEASE)


def test_release_is_rejected_when_the_lease_was_taken_over(store: JobStore, table: Table) -> None:
    first = brought_to(store, State.RUNNING)
    claimed(store, first, token="another", now=NOW + LEASE)
    before = table.item(first)

    with pytest.raises(WriteRefusedError):
        store.release(first, now=NOW, due=NOW + LEASE)

    assert table.item(first) == before
