"""The purge use case: the plan, the deletion, and the advance of groups."""

import pytest

from tests.support.builders import (
    NOW,
    SECOND,
    SETTLEMENTS,
    a_job,
    brought_to,
    claimed,
    fresh_token,
    stored,
)
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.ports import JobStore
from tidemill.application.purge import Purger
from tidemill.domain.job import Job
from tidemill.domain.states import State


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW + SECOND)


@pytest.fixture
def purger(store: JobStore, clock: Clock) -> Purger:
    return Purger(store=store, clock=clock)


def test_a_purged_job_is_deleted_and_may_be_purged_again(purger: Purger, store: JobStore) -> None:
    ended = brought_to(store, State.SUCCEEDED)

    assert [purger.purge(ended), purger.purge(ended)] == [True, True]
    assert store.get(ended.tenant, ended.id) is None


def test_a_job_that_was_redriven_since_it_was_planned_stays(purger: Purger, store: JobStore) -> None:
    planned_job = brought_to(store, State.DEAD)
    queued = store.redrive(planned_job, token="a redrive", now=NOW, by="ada")

    assert not purger.purge(planned_job)
    assert stored(store, planned_job) == queued


def test_a_group_that_a_dead_job_blocked_advances_when_it_is_purged(purger: Purger, store: JobStore) -> None:
    group = fresh_token()
    store.insert_if_absent(head := a_job(group=group, blocks=True))
    behind = store.insert_if_absent(a_job(group=group, blocks=True))
    store.settle(claimed(store, head), SETTLEMENTS[State.DEAD], now=NOW)
    assert store.advance(head.tenant, group, now=NOW) is None

    assert purger.purge(stored(store, head))

    assert stored(store, behind).state is State.QUEUED


def test_a_purge_of_an_ended_head_advances_its_group_once(purger: Purger, store: JobStore) -> None:
    head = brought_to(store, State.QUEUED, group="a group")
    waiting = store.insert_if_absent(a_job(group="a group"))

    purger.purge(store.cancel(head, now=NOW))

    assert stored(store, waiting).state is State.QUEUED


def test_a_job_is_purged_also_before_a_job_of_its_group_that_is_unreadable(
    purger: Purger, store: JobStore, table: Table
) -> None:
    head = brought_to(store, State.QUEUED, group="a group")
    behind = store.insert_if_absent(a_job(group="a group"))
    ended = store.cancel(head, now=NOW)
    table.put(behind, schema={"N": "99"})

    assert purger.purge(ended)
    assert store.get(ended.tenant, ended.id) is None


def test_the_purge_of_a_job_without_a_group_advances_none(clock: Clock) -> None:
    class Store:
        def forget(self, job: Job) -> None:
            """Deletes it."""

    assert Purger(store=Store(), clock=clock).purge(a_job(state=State.DEAD))  # type: ignore[arg-type]  # no `advance`
