"""`redrive`: state = dead, generation = :g, and not expired."""

from datetime import timedelta

import pytest

from tests.support.builders import MILLISECOND, NOW, RETENTION, SECOND, SETTLEMENTS, a_job, brought_to, claimed, stored
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.domain.attempt.outcomes import ERRORS_KEPT
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import DeathReason, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State


def test_redrive_queues_a_dead_job_with_fresh_attempts_and_records_the_operator(store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)

    queued = store.redrive(dead, token="a redrive", now=NOW + SECOND, by="ada")

    assert queued == stored(store, dead)
    assert (queued.state, queued.generation, queued.attempt, queued.due) == (State.QUEUED, 2, 0, NOW + SECOND)
    assert queued.redrives == (Redrive(token="a redrive", at=NOW + SECOND, by="ada", death=DeathReason.PERMANENT),)
    assert queued.errors == dead.errors


def test_a_redrive_by_a_clock_that_is_slow_is_not_before_the_death(store: JobStore) -> None:
    """The redrive of a batch or a flow redrives the jobs that died before it."""
    dead = brought_to(store, State.DEAD)

    queued = store.redrive(dead, token="a redrive", now=NOW - timedelta(minutes=2), by="ada")

    assert dead.finished_at
    assert (queued.redrives[-1].at, queued.due) == (dead.finished_at, dead.finished_at)


def test_redrive_records_the_crashes_that_no_run_has_recorded(store: JobStore) -> None:
    running = brought_to(store, State.RUNNING)
    for days in range(1, 3):
        store.nudge(stored(store, running), now=NOW + timedelta(days=days), limit=SECOND, last=days == 2)
    dead = stored(store, running)

    redriven = store.redrive(dead, token="a redrive", now=NOW + timedelta(days=3), by="ada")

    assert (dead.state, dead.errors, [error.attempt for error in dead.known_errors]) == (State.DEAD, (), [1])
    assert ([error.attempt for error in redriven.errors], redriven.lost) == ([1], ())
    assert not claimed(store, redriven, now=NOW + timedelta(days=3)).suspect


def test_redrive_removes_every_attribute_that_death_set(store: JobStore, table: Table) -> None:
    dead = brought_to(store, State.DEAD)

    store.redrive(dead, token="a redrive", now=NOW, by="ada")

    item = table.item(dead)
    assert item is not None
    assert not {"expires_at", "finished_at", "death", "attention", "attention_at"} & item.keys()


def test_a_redriven_job_runs_and_may_die_again(store: JobStore) -> None:
    queued = store.redrive(brought_to(store, State.DEAD), token="a redrive", now=NOW, by="ada")

    store.settle(claimed(store, queued, token="after the redrive"), SETTLEMENTS[State.DEAD], now=NOW)

    assert [job.id for job in store.dead()] == [queued.id]
    assert stored(store, queued).generation == 2


@pytest.mark.parametrize("state", [state for state in State if state is not State.DEAD])
def test_redrive_is_rejected_by_a_job_that_is_not_dead(store: JobStore, state: State) -> None:
    job = brought_to(store, state)

    with pytest.raises(WriteRefusedError) as refused:
        store.redrive(job, token="a redrive", now=NOW, by="ada")

    assert refused.value.current == job


def test_one_of_two_concurrent_redrives_is_rejected(store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    queued = store.redrive(dead, token="first", now=NOW, by="ada")

    with pytest.raises(WriteRefusedError) as refused:
        store.redrive(dead, token="second", now=NOW, by="grace")

    assert refused.value.current == queued


def test_redrive_is_rejected_when_the_job_has_died_again_since_it_was_read(store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    queued = store.redrive(dead, token="first", now=NOW, by="ada")
    store.settle(claimed(store, queued), SETTLEMENTS[State.DEAD], now=NOW)

    with pytest.raises(WriteRefusedError):
        store.redrive(dead, token="second", now=NOW, by="grace")


def test_redrive_is_rejected_from_the_second_in_which_the_document_expires(store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    assert dead.lifetime.expires_at is not None

    with pytest.raises(WriteRefusedError):
        store.redrive(dead, token="late", now=dead.lifetime.expires_at, by="ada")

    assert (
        store.redrive(dead, token="in time", now=dead.lifetime.expires_at - MILLISECOND, by="ada").lifetime.expires_at
        is None
    )


def test_only_the_last_redrives_are_kept(store: JobStore, table: Table) -> None:
    entries = tuple(Redrive(token=str(number), at=NOW, by="ada") for number in range(ERRORS_KEPT))
    dead = replace(brought_to(store, State.DEAD), redrives=entries)
    table.put(dead)

    queued = store.redrive(dead, token="one more", now=NOW, by="ada")

    assert [entry.token for entry in queued.redrives] == [
        *(str(number) for number in range(1, ERRORS_KEPT)),
        "one more",
    ]


def test_redrive_of_a_missing_document_creates_none(store: JobStore) -> None:
    job = a_job(state=State.DEAD, expires_at=NOW + RETENTION)

    with pytest.raises(WriteRefusedError):
        store.redrive(job, token="a redrive", now=NOW, by="ada")

    assert store.get(job.tenant, job.id) is None
