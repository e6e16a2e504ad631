"""Repeated and last nudges: their count, its reset, and the death of a job."""

from datetime import timedelta

import pytest

from tests.support.builders import LEASE, NOW, RETENTION, SECOND, brought_to, claimed, fresh_token, stored
from tidemill.application.ports import JobStore
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import DeathReason
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.waiting import Line, Wait
from tidemill.dynamodb.job_store import DynamoJobStore

LIMIT = timedelta(minutes=1)


def test_consecutive_nudges_are_counted_until_a_claim(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    for number in (1, 2, 3):
        store.nudge(stored(store, job), now=NOW + number * LIMIT, limit=LIMIT)
        assert stored(store, job).nudges.count == number

    assert claimed(store, job, now=NOW + 4 * LIMIT).nudges.count == 0


def test_a_nudge_from_an_old_read_takes_no_count_back(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    for number in (1, 2):
        store.nudge(stored(store, job), now=NOW + number * LIMIT, limit=LIMIT)

    with pytest.raises(WriteRefusedError):
        store.nudge(job, now=NOW + 9 * LIMIT, limit=LIMIT)

    assert stored(store, job).nudges.count == 2


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING])
def test_the_last_nudge_kills_a_job_that_waits_on_its_lane(store: JobStore, state: State) -> None:
    job = brought_to(store, state)
    now = NOW + 2 * LIMIT

    store.nudge(job, now=now, limit=LIMIT, last=True)

    dead = stored(store, job)
    assert (dead.state, dead.death, dead.due, dead.finished_at) == (State.DEAD, DeathReason.UNDELIVERABLE, None, now)
    assert dead.lifetime.expires_at is not None
    assert dead.lifetime.expires_at >= now + RETENTION
    assert [found.id for found in store.dead()] == [job.id]


def test_an_undeliverable_job_that_blocks_its_group_does_not_expire(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED, group=fresh_token(), blocks=True)

    store.nudge(job, now=NOW + 2 * LIMIT, limit=LIMIT, last=True)

    assert stored(store, job).lifetime.expires_at is None


def test_even_the_last_nudge_takes_a_lost_run_back(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)

    store.nudge(running, now=NOW + LEASE + LIMIT, limit=LIMIT, last=True)

    assert stored(store, running).state is State.RETRYING


def test_the_last_nudge_is_rejected_when_the_job_was_claimed_since_it_was_read(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    running = claimed(store, job)

    with pytest.raises(WriteRefusedError):
        store.nudge(job, now=NOW + 10 * LIMIT, limit=LIMIT, last=True)

    assert stored(store, job) == running


def test_redrive_resets_the_nudge_count_of_an_undeliverable_job(store: JobStore) -> None:
    job = brought_to(store, State.QUEUED)
    store.nudge(job, now=NOW + LIMIT, limit=LIMIT, last=True)

    queued = store.redrive(stored(store, job), token="a redrive", now=NOW + LIMIT + SECOND, by="ada")

    assert (queued.state, queued.nudges.count, queued.nudges.last_at, queued.death) == (State.QUEUED, 0, None, None)


def test_redrive_ends_the_last_wait_of_an_undeliverable_job(store: DynamoJobStore) -> None:
    """It was released from a line, and its message was lost."""
    line = Line.for_pause("type=test.job")
    job = brought_to(store, State.RETRYING)
    parked = store.park(job, Wait(cause=line.cause, key=line.key, since=NOW), now=NOW)
    store.unpark(parked, now=NOW, due=NOW)
    released = stored(store, job)
    store.nudge(released, now=NOW + LIMIT, limit=LIMIT, last=True)

    queued = store.redrive(stored(store, job), token="a redrive", now=NOW + LIMIT + SECOND, by="ada")

    assert released.wait is not None
    assert queued.wait is None


def test_redrive_forgets_the_holds_of_an_undeliverable_job(store: JobStore) -> None:
    held = Settlement(state=State.QUEUED, due=NOW, attempt=0, holds=3, hold_cause=HoldCause.SUSPECT)
    running = brought_to(store, State.RUNNING)
    store.settle(running, held, now=NOW)
    job = stored(store, running)
    store.nudge(job, now=NOW + LIMIT, limit=LIMIT, last=True)

    queued = store.redrive(stored(store, job), token="a redrive", now=NOW + LIMIT + SECOND, by="ada")

    assert (job.holds.count, job.holds.cause) == (3, HoldCause.SUSPECT)
    assert (queued.holds.count, queued.holds.cause) == (0, None)
