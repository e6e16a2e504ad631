"""The reconcile use case: what was lost is found, and what is only late comes to no harm."""

from datetime import timedelta

import pytest

from shared.adapters.job_store import DynamoJobStore
from shared.application.job_types import Run
from shared.application.reconcile import Reconciler
from shared.domain.states import State
from tests.support.builders import MILLISECOND, NOW, SECOND, a_job_type, brought_to, stored, types_of
from tests.support.faulty_client import FaultyClient
from tests.support.world import Clock, World

LIMIT = timedelta(minutes=30)


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW + LIMIT)


@pytest.fixture
def reconciler(store: DynamoJobStore, clock: Clock) -> Reconciler:
    return Reconciler(store=store, clock=clock, limit=LIMIT)


def test_a_job_is_overdue_once_it_is_late_by_the_limit(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler
) -> None:
    job = brought_to(store, State.QUEUED)

    assert [found.id for found in reconciler.overdue()] == [job.id]
    clock.now -= SECOND
    assert list(reconciler.overdue()) == []


def test_a_job_is_left_alone_for_the_limit_after_a_nudge(
    store: DynamoJobStore, clock: Clock, reconciler: Reconciler
) -> None:
    job = brought_to(store, State.QUEUED)

    assert reconciler.nudge(job)
    clock.now += LIMIT - SECOND
    assert list(reconciler.overdue()) == []
    assert not reconciler.nudge(stored(store, job))
    clock.now += SECOND
    assert [found.id for found in reconciler.overdue()] == [job.id]


def test_of_two_who_find_a_job_one_nudges_it(store: DynamoJobStore, clock: Clock, reconciler: Reconciler) -> None:
    job = brought_to(store, State.QUEUED)

    assert reconciler.nudge(job)
    clock.now += MILLISECOND
    assert not reconciler.nudge(job)


def lost_in_the_queue(world: World) -> None:
    """The job's message goes, and nobody is told."""
    world.run_until(lambda: bool(world.messages))
    world.messages.clear()
    world.clock.now += 2 * LIMIT


def test_a_job_whose_message_was_lost_runs_after_a_reconcile(store: DynamoJobStore, client: FaultyClient) -> None:
    runs: list[Run] = []
    world = World(store, client, types_of(a_job_type(lambda _payload, run: runs.append(run))))
    world.submit("test.job")
    lost_in_the_queue(world)
    reconciler = Reconciler(store=store, clock=world.clock, limit=LIMIT)

    assert [reconciler.nudge(job) for job in reconciler.overdue()] == [True]
    world.run_until(lambda: world.job is not None and world.job.state is State.SUCCEEDED)

    assert len(runs) == 1


def test_a_job_that_is_only_late_runs_once_although_it_was_nudged(store: DynamoJobStore, client: FaultyClient) -> None:
    runs: list[Run] = []
    world = World(store, client, types_of(a_job_type(lambda _payload, run: runs.append(run))))
    world.submit("test.job")
    world.run_until(lambda: bool(world.messages))
    world.clock.now += 2 * LIMIT
    reconciler = Reconciler(store=store, clock=world.clock, limit=LIMIT)

    assert [reconciler.nudge(job) for job in reconciler.overdue()] == [True]
    world.run_until(lambda: len(world.reports) == 2)

    assert len(runs) == 1
