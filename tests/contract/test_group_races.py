"""Concurrent writes and faults at a group: each job has one position, and the order holds."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    NOW,
    RETENTION,
    TENANT,
    a_job,
    stored,
)
from tests.support.faulty_client import Fault, FaultyClient, KilledError
from tests.support.group_jobs import GROUP, advance, end, enter, ids, redrive, run_all
from tests.support.interleave import meet, meet_before_read
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError, WriteRefusedError
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.groups import groups
from tidemill.dynamodb.groups.group_items import POSITION_PREFIX, TAIL_PREFIX
from tidemill.dynamodb.job_store import DynamoJobStore


@pytest.fixture
def other(table: Table) -> DynamoJobStore:
    """A second store on the same table."""
    return DynamoJobStore(table.client, table=table.name, retention=RETENTION)


@pytest.mark.parametrize("before", [0, 1], ids=["an empty group", "a group"])
def test_two_concurrent_submissions_get_different_positions(
    store: JobStore, other: JobStore, client: FaultyClient, before: int
) -> None:
    earlier, theirs = enter(store, before), a_job(group=GROUP)
    meet(client, lambda: other.insert_if_absent(theirs))

    (mine,) = enter(store)

    assert stored(store, theirs).group.sequence == before + 1
    assert (mine.group.sequence, mine.state) == (before + 2, State.WAITING)
    assert run_all(store, [*earlier, theirs, mine]) == ids([*earlier, theirs, mine])


def test_many_concurrent_submissions_get_positions_without_gaps(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One of several that meet always wins, so all get their turn if none gives up.
    monkeypatch.setattr(groups, "TRIED_FOR", timedelta(days=1))
    with ThreadPoolExecutor(6) as pool:
        entered = [job for jobs in pool.map(lambda _: enter(store, 3), range(6)) for job in jobs]

    assert sorted(job.group.sequence or 0 for job in entered) == list(range(1, 19))
    assert [job.group.sequence for job in entered if job.state is State.QUEUED] == [1]


def test_only_one_of_two_concurrent_submissions_under_one_key_enters(
    store: JobStore, other: JobStore, client: FaultyClient
) -> None:
    job = a_job(group=GROUP)
    meet(client, lambda: other.insert_if_absent(replace(job, trace="another request")))

    with pytest.raises(WriteRefusedError) as refused:
        store.insert_if_absent(job)

    assert refused.value.current == stored(store, job)
    assert enter(store)[0].group.sequence == 2


def test_two_concurrent_advances_move_the_head_once(store: JobStore, other: JobStore, client: FaultyClient) -> None:
    head, second, third = enter(store, 3)
    end(store, head)
    meet(client, lambda: advance(other))

    assert advance(store) is None
    assert [stored(store, job).state for job in (second, third)] == [State.QUEUED, State.WAITING]


def test_a_submission_during_an_advance_waits_behind_the_new_head(
    store: JobStore, other: JobStore, client: FaultyClient
) -> None:
    head, second = enter(store, 2)
    end(store, head)
    meet(client, lambda: advance(other))

    (third,) = enter(store)

    assert (third.group.sequence, third.state) == (3, State.WAITING)
    assert run_all(store, [second]) == ids([second, third])


def test_an_advance_during_a_submission_finds_the_new_job(
    store: JobStore, other: JobStore, client: FaultyClient
) -> None:
    """The group was about to become empty."""
    (head,) = enter(store)
    end(store, head)
    late = a_job(group=GROUP)
    meet(client, lambda: other.insert_if_absent(late))

    following = advance(store)

    assert following is not None
    assert (following.id, following.state) == (late.id, State.QUEUED)


def test_a_submission_while_the_group_empties_becomes_its_head(
    store: JobStore, other: JobStore, client: FaultyClient
) -> None:
    (head,) = enter(store)
    end(store, head)
    meet(client, lambda: advance(other))

    (job,) = enter(store)

    assert (job.group.sequence, job.state) == (2, State.QUEUED)


def test_a_job_that_is_cancelled_as_its_turn_comes_is_skipped(
    store: JobStore, other: JobStore, client: FaultyClient
) -> None:
    head, second, third = enter(store, 3)
    end(store, head)
    meet(client, lambda: other.cancel(second, now=NOW))

    following = advance(store)

    assert following == stored(store, third)
    assert stored(store, second).state is State.CANCELLED


def test_a_group_is_not_left_when_a_job_enters_before_the_tail_is_read(
    store: JobStore, other: JobStore, client: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, second = enter(store, 2)
    end(store, head)
    advance(store)
    end(store, second)
    late = a_job(group=GROUP)
    meet_before_read(client, TAIL_PREFIX, lambda: other.insert_if_absent(late), monkeypatch)

    assert advance(store) == stored(store, late)
    assert [job.group.sequence for job in (stored(store, late), *enter(store))] == [3, 4]


def test_an_advance_goes_on_where_another_was_killed_meanwhile(
    store: JobStore, client: FaultyClient, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other passed a cancelled job, and died before the next. No other stream record will come."""
    monkeypatch.setattr(groups, "MOST_PASSED", 1)
    head, second, third = enter(store, 3)
    end(store, head)
    store.cancel(second, now=NOW)
    dying = FaultyClient(table.client)
    dying.faults = [None, Fault.KILLED_BEFORE]
    other: Any = DynamoJobStore(dying, table=table.name, retention=RETENTION)  # type: ignore[arg-type]  # a proxy

    def advance_and_die() -> None:
        with pytest.raises(KilledError):
            advance(other)

    meet_before_read(client, POSITION_PREFIX, advance_and_die, monkeypatch)

    assert advance(store) == stored(store, third)
    assert stored(store, third).state is State.QUEUED


@pytest.mark.parametrize("behind", [0, 1])
def test_a_redrive_before_the_advance_keeps_the_position(
    store: JobStore, other: JobStore, client: FaultyClient, behind: int
) -> None:
    head, *rest = enter(store, 1 + behind)
    dead = end(store, head, State.DEAD)
    meet(client, lambda: redrive(other, dead))

    assert advance(store) is None
    assert stored(store, head).state is State.QUEUED
    assert {stored(store, job).state for job in [*rest, *enter(store)]} == {State.WAITING}


def test_a_redrive_during_an_advance_goes_to_the_tail(store: JobStore, other: JobStore, client: FaultyClient) -> None:
    head, second = enter(store, 2)
    dead = end(store, head, State.DEAD)
    meet(client, lambda: advance(other))

    assert redrive(store, dead).state is State.WAITING
    assert run_all(store, [second]) == ids([second, head])


@pytest.mark.parametrize("passed", [False, True], ids=["head", "passed"])
def test_one_of_two_concurrent_redrives_is_refused(
    store: JobStore, other: JobStore, client: FaultyClient, passed: bool
) -> None:
    head, _ = enter(store, 2)
    dead = end(store, head, State.DEAD)
    if passed:
        advance(store)
    meet(client, lambda: redrive(other, dead))

    with pytest.raises(WriteRefusedError) as refused:
        redrive(store, dead)

    assert refused.value.current == stored(store, head)
    assert enter(store)[0].group.sequence == (4 if passed else 3)


@contextmanager
def _with_fault(client: FaultyClient, fault: Fault) -> Iterator[None]:
    client.faults = [fault]
    with suppress(KilledError, StoreUnavailableError):
        yield
    assert not client.faults


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("before", [0, 1], ids=["head", "waiting"])
def test_a_submission_enters_once_despite_any_fault_of_its_call(
    store: JobStore, client: FaultyClient, fault: Fault, before: int
) -> None:
    earlier, job = enter(store, before), a_job(group=GROUP)

    with _with_fault(client, fault):
        assert store.insert_if_absent(job).group.sequence == before + 1
    with suppress(WriteRefusedError):
        store.insert_if_absent(replace(job, trace="the caller's second try"))

    assert stored(store, job).group.sequence == before + 1
    (last,) = enter(store)
    assert run_all(store, [*earlier, job]) == ids([*earlier, job, last])


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("behind", [0, 1, 2])
def test_a_head_is_passed_once_despite_any_fault_of_the_call(
    store: JobStore, client: FaultyClient, fault: Fault, behind: int
) -> None:
    head, *rest = enter(store, 1 + behind)
    end(store, head)

    with _with_fault(client, fault):
        advance(store)
    advance(store)

    assert [stored(store, job).state for job in rest] == [State.QUEUED, State.WAITING][:behind]
    assert run_all(store, rest) == ids(rest)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("passed", [False, True], ids=["in its place", "to the tail"])
def test_a_job_is_redriven_once_despite_any_fault_of_the_call(
    store: JobStore, client: FaultyClient, fault: Fault, passed: bool
) -> None:
    head, second = *enter(store, blocks=not passed), *enter(store)
    dead = end(store, head, State.DEAD)
    if passed:
        advance(store)

    with _with_fault(client, fault):
        redrive(store, dead)
    with suppress(WriteRefusedError):
        redrive(store, dead)

    revived = stored(store, head)
    assert (revived.generation, len(revived.redrives)) == (2, 1)
    assert run_all(store, [head, second]) == ids([second, head] if passed else [head, second])


def test_a_caller_that_always_conflicts_gets_an_error_and_writes_nothing(
    store: JobStore, other: JobStore, client: FaultyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("time.sleep", sleep)
    monkeypatch.setattr("time.monotonic", lambda: now)
    client.watch = lambda applied: None if applied else enter(other).clear()
    job = a_job(group=GROUP)

    with pytest.raises(TransactionConflictError, match="others were faster for 1 s"):
        store.insert_if_absent(job)

    assert store.get(TENANT, job.id) is None
    assert groups.TRIED_FOR.total_seconds() / 2 < now < groups.TRIED_FOR.total_seconds()
