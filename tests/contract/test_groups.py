"""The order of a group: set by the insert and kept by `advance`, for every end of its jobs."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    SECOND,
    SETTLEMENTS,
    TENANT,
    a_job,
    claimed,
    reference_to,
    stored,
)
from tests.support.group_jobs import GROUP, LONG, advance, end, enter, ids, items, redrive, run_all
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.states import State
from tidemill.dynamodb.document import key
from tidemill.dynamodb.groups import groups as groups_module
from tidemill.dynamodb.groups.group_items import POSITION_PREFIX
from tidemill.dynamodb.groups.groups import MOST_PASSED


def test_jobs_are_numbered_as_they_are_accepted_and_all_but_the_first_wait(store: JobStore) -> None:
    jobs = enter(store, 4)

    assert [(job.group.sequence, job.state, job.due) for job in jobs] == [
        (1, State.QUEUED, NOW),
        (2, State.WAITING, None),
        (3, State.WAITING, None),
        (4, State.WAITING, None),
    ]
    assert [stored(store, job) for job in jobs] == jobs


def test_jobs_run_in_the_order_accepted(store: JobStore, table: Table) -> None:
    jobs = enter(store, 4)

    assert run_all(store, jobs) == ids(jobs)
    assert items(table, POSITION_PREFIX) == []


def test_a_waiting_job_cannot_be_claimed(store: JobStore) -> None:
    _, waiting = enter(store, 2)

    with pytest.raises(WriteRefusedError):
        store.claim(reference_to(waiting), token="early", now=NOW + LEASE, lease_end=NOW + 2 * LEASE)


def test_advance_returns_the_next_job_as_written(store: JobStore) -> None:
    first, second = enter(store, 2)
    end(store, first)

    following = store.advance(TENANT, GROUP, now=NOW + SECOND)

    assert following == stored(store, second)
    assert following is not None
    assert (following.state, following.due, following.generation) == (State.QUEUED, NOW + SECOND, 1)


@pytest.mark.parametrize("group", ['parcels","of ada', "parcels of ada#2", "parcels of ad\u00e5", " "])
def test_groups_of_other_names_or_tenants_are_independent(store: JobStore, group: str) -> None:
    enter(store)

    (named,) = enter(store, group=group)
    (theirs,) = enter(store, tenant="444455556666:AROAOTHER")

    assert [(job.group.sequence, job.state) for job in (named, theirs)] == [(1, State.QUEUED)] * 2
    end(store, named)
    assert store.advance(TENANT, group, now=NOW) is None


@pytest.mark.parametrize("place", [0, 1], ids=["head", "waiting"])
def test_a_repeated_submission_enters_once(store: JobStore, place: int) -> None:
    first = enter(store, 2)[place]

    with pytest.raises(WriteRefusedError) as refused:
        store.insert_if_absent(a_job(id=first.id, group=GROUP, trace="another request"))

    assert refused.value.current == first
    assert enter(store)[0].group.sequence == 3


@pytest.mark.parametrize("state", [State.QUEUED, State.SCHEDULED, State.RUNNING, State.RETRYING])
def test_a_live_head_blocks_its_group(store: JobStore, state: State) -> None:
    late: dict[str, Any] = {"state": state, "due": NOW + LONG, "run_at": NOW + LONG}
    (head,) = enter(store, **(late if state is State.SCHEDULED else {}))
    (waiting,) = enter(store)
    if state in {State.RUNNING, State.RETRYING}:
        running = claimed(store, head)
        if state is State.RETRYING:
            store.settle(running, SETTLEMENTS[state], now=NOW)

    assert stored(store, head).state is state
    assert advance(store) is None
    assert stored(store, waiting).state is State.WAITING


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD, State.CANCELLED])
def test_the_group_advances_when_its_head_has_ended(store: JobStore, state: State) -> None:
    head, waiting = enter(store, 2)
    end(store, head, state)

    assert advance(store) == stored(store, waiting)
    assert advance(store) is None


def test_an_empty_group_has_no_next_job(store: JobStore) -> None:
    assert advance(store) is None


@pytest.mark.parametrize("cancelled", [1, MOST_PASSED - 1, MOST_PASSED, 2 * MOST_PASSED + 3])
@pytest.mark.parametrize("others", [0, 1], ids=["to the end", "in between"])
def test_cancelled_jobs_are_skipped(store: JobStore, table: Table, cancelled: int, others: int) -> None:
    head, *rest = enter(store, 1 + cancelled + others)
    for job in rest[:cancelled]:
        store.cancel(job, now=NOW)
    end(store, head)

    following = advance(store)

    assert following == (stored(store, rest[-1]) if others else None)
    assert items(table, POSITION_PREFIX) == []


def test_a_waiting_job_that_was_deleted_is_skipped(store: JobStore, table: Table) -> None:
    head, gone, last = enter(store, 3)
    table.client.delete_item(TableName=table.name, Key=key(gone.tenant, gone.id))
    end(store, head)

    assert advance(store) == stored(store, last)
    assert items(table, POSITION_PREFIX) == []


def test_one_call_skips_a_bounded_number_and_the_next_call_continues(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(groups_module, "MOST_PASSED", 2)
    monkeypatch.setattr(groups_module, "MOST_STEPS", 3)
    head, *cancelled, last = enter(store, 1 + 7 + 1)
    for job in cancelled:
        store.cancel(job, now=NOW)
    end(store, head)

    with pytest.raises(TransactionConflictError, match="no next job in 3 steps, each past at most 2 cancelled jobs"):
        advance(store)

    assert advance(store) == stored(store, last)


def test_a_group_waits_while_a_dead_job_blocks_it(store: JobStore) -> None:
    head, waiting = *enter(store, blocks=True), *enter(store)
    dead = end(store, head, State.DEAD)

    assert advance(store) is None
    assert stored(store, waiting).state is State.WAITING
    assert dead.lifetime.expires_at is None


def test_a_blocked_group_advances_when_its_dead_job_is_cancelled(store: JobStore) -> None:
    head, waiting = *enter(store, blocks=True), *enter(store)
    dead = end(store, head, State.DEAD)

    assert store.cancel(dead, now=NOW).lifetime.expires_at is not None
    assert advance(store) == stored(store, waiting)


def test_a_dead_job_that_blocks_keeps_its_position_when_redriven(store: JobStore) -> None:
    head, waiting = *enter(store, blocks=True), *enter(store)
    dead = end(store, head, State.DEAD)

    revived = redrive(store, dead)

    assert revived == stored(store, head)
    assert (revived.state, revived.group.sequence, revived.generation) == (State.QUEUED, 1, 2)
    assert advance(store) is None
    assert run_all(store, [revived]) == ids([head, waiting])


def test_a_dead_job_behind_the_head_of_its_group_is_redriven_to_the_tail(store: JobStore) -> None:
    head, second = enter(store, 2)
    dead = end(store, head, State.DEAD)
    advance(store)

    revived = redrive(store, dead)

    assert revived == stored(store, head)
    assert (revived.state, revived.group.sequence, revived.generation, revived.due) == (State.WAITING, 3, 2, None)
    (fourth,) = enter(store)
    assert run_all(store, [second]) == ids([second, head, fourth])


def test_a_dead_job_whose_group_is_empty_is_redriven_at_once(store: JobStore) -> None:
    (head,) = enter(store)
    dead = end(store, head, State.DEAD)
    assert advance(store) is None

    revived = redrive(store, dead)

    assert (revived.state, revived.group.sequence, revived.due) == (State.QUEUED, 2, NOW)
    assert enter(store)[0].state is State.WAITING


@pytest.mark.parametrize("state", [State.WAITING, State.QUEUED])
def test_a_job_of_a_group_that_is_not_dead_is_not_redriven(store: JobStore, state: State) -> None:
    job = next(job for job in enter(store, 2) if job.state is state)

    with pytest.raises(WriteRefusedError) as refused:
        redrive(store, job)

    assert refused.value.current == job


def test_a_head_keeps_its_submitted_time(store: JobStore, table: Table) -> None:
    (soon,) = enter(store, due=NOW + SECOND, run_at=NOW + SECOND)
    (late,) = enter(store, group="another", state=State.SCHEDULED, due=NOW + LONG, run_at=NOW + LONG)

    assert (soon.state, soon.due) == (State.QUEUED, NOW + SECOND)
    assert (late.state, late.due) == (State.SCHEDULED, NOW + LONG)
    assert [job.id for job in store.scheduled(before=NOW + 2 * LONG)] == [late.id]


@pytest.mark.parametrize(
    ("asked", "state", "due"),
    [(-SECOND, State.QUEUED, NOW), (SECOND, State.QUEUED, NOW + SECOND), (LONG, State.SCHEDULED, NOW + LONG)],
    ids=["past", "soon", "far"],
)
def test_a_waiting_job_keeps_its_submitted_time_until_its_turn(
    store: JobStore, asked: timedelta, state: State, due: Any
) -> None:
    parked = State.SCHEDULED if asked == LONG else State.QUEUED
    head, waiting = *enter(store), *enter(store, state=parked, due=NOW + asked, run_at=NOW + asked)
    assert (waiting.state, waiting.due) == (State.WAITING, None)
    assert list(store.scheduled(before=NOW + 2 * LONG)) == []
    end(store, head)

    following = advance(store)

    assert following == stored(store, waiting)
    assert (following.state, following.due) == (state, due)
    assert ids(list(store.scheduled(before=NOW + 2 * LONG))) == ([waiting.id] if state is State.SCHEDULED else [])
