"""The redrive use case: what is planned, what is given another life, and what becomes of the letters."""

from dataclasses import replace
from datetime import timedelta
from itertools import count

import pytest

from tests.support.builders import (
    LEASE,
    MILLISECOND,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    a_job,
    brought_to,
    claimed,
    letter_for,
    reference_to,
    stored,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.in_memory_dlq import Letters
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.ports import JobStore, ReceivedDeadLetter
from tidemill.application.redrive import NUDGE_LIMIT, Redriver, Selection, Swept
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore


@pytest.fixture
def redriver(store: JobStore, clock: Clock) -> Redriver:
    tokens = count(1)
    return Redriver(store=store, clock=clock, new_token=lambda: f"redrive-{next(tokens)}")


def _bodies(box: Letters) -> list[object]:
    return [dead_letter.body for dead_letter in box.waiting]


def test_the_plan_names_the_dead_jobs_of_a_type_or_an_id_and_changes_nothing(
    redriver: Redriver, store: JobStore
) -> None:
    one = brought_to(store, State.DEAD)
    other = brought_to(store, State.DEAD, type="test.other")
    brought_to(store, State.SUCCEEDED)

    def planned(selection: Selection) -> set[str]:
        return {job.id for job in redriver.plan(selection)}

    assert planned(Selection()) == {one.id, other.id}
    assert planned(Selection(types=["test.other"])) == {other.id}
    assert planned(Selection(ids=[one.id, "no such job"])) == {one.id}
    assert planned(Selection(types=["test.other"], ids=[one.id])) == set()
    assert stored(store, one) == one


def test_the_plan_leaves_out_what_is_past_its_time(redriver: Redriver, store: JobStore, clock: Clock) -> None:
    brought_to(store, State.DEAD)
    clock.now += RETENTION + SECOND

    assert list(redriver.plan(Selection())) == []


def test_redrive_queues_the_job_and_names_who_asked(redriver: Redriver, store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)

    assert redriver.redrive(dead, by="ada")

    queued = stored(store, dead)
    assert queued.state is State.QUEUED
    assert [(entry.token, entry.by) for entry in queued.redrives] == [("redrive-1", "ada")]


def test_of_two_operators_at_once_one_redrives_each_job(redriver: Redriver, store: JobStore) -> None:
    dead = [brought_to(store, State.DEAD) for _ in range(3)]
    plans = [list(redriver.plan(Selection())) for _ in range(2)]

    outcomes = [redriver.redrive(job, by="ada") for plan in plans for job in plan]

    assert sorted(outcomes) == [False] * 3 + [True] * 3
    assert {stored(store, job).generation for job in dead} == {2}


def test_the_letters_of_redriven_jobs_are_deleted(redriver: Redriver, store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    box = Letters(letter_for(dead), letter_for(dead))
    redriver.redrive(dead, by="ada")

    assert redriver.sweep(box) == Swept(outdated=2)
    assert (box.waiting, box.hidden) == ([], [])


def test_the_letters_of_dead_jobs_stay(redriver: Redriver, store: JobStore) -> None:
    dead = [brought_to(store, State.DEAD) for _ in range(25)]
    box = Letters(*(letter_for(job) for job in dead))

    assert redriver.sweep(box) == Swept(kept=25)
    assert {dead_letter.reference.job_id for dead_letter in box.waiting if dead_letter.reference} == {
        job.id for job in dead
    }
    assert box.hidden == []


def test_letters_that_nobody_waits_for_are_deleted(redriver: Redriver, store: JobStore, table: Table) -> None:
    succeeded = brought_to(store, State.SUCCEEDED)
    expired = replace(brought_to(store, State.DEAD), expires_at=NOW.replace(microsecond=0))
    table.put(expired)
    box = Letters(None, reference_to(a_job()), letter_for(succeeded), letter_for(expired), None)

    assert redriver.sweep(box) == Swept(outdated=5)
    assert (box.waiting, box.hidden) == ([], [])


def test_a_letter_that_a_newer_version_wrote_stays(redriver: Redriver) -> None:
    box = Letters()
    box.waiting = [ReceivedDeadLetter(message_id="1", receipt="1", body=None, sent_at=NOW, newer=True)]

    assert redriver.sweep(box) == Swept(kept=1)
    assert len(box.waiting) == 1


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING, State.RUNNING])
def test_a_job_that_no_worker_ever_started_is_dispatched_again(
    redriver: Redriver, store: JobStore, clock: Clock, state: State
) -> None:
    stranded = brought_to(store, state)
    box = Letters(reference_to(stranded))
    clock.now += LEASE + NUDGE_LIMIT

    assert redriver.sweep(box) == Swept(nudged=1)

    nudged = stored(store, stranded)
    assert (nudged.generation, nudged.nudged_at) == (stranded.generation, clock.now)
    assert (box.waiting, box.hidden) == ([], [])


@pytest.mark.parametrize("late", [timedelta(0), LEASE + NUDGE_LIMIT - SECOND])
def test_a_letter_stays_while_its_job_may_still_be_at_work(
    redriver: Redriver, store: JobStore, clock: Clock, late: timedelta
) -> None:
    running = brought_to(store, State.RUNNING)
    box = Letters(reference_to(running))
    clock.now += late

    assert redriver.sweep(box) == Swept(kept=1)
    assert _bodies(box) == [reference_to(running)]
    assert stored(store, running) == running


def test_of_two_sweeps_at_once_one_nudges(redriver: Redriver, store: JobStore, clock: Clock) -> None:
    stranded = brought_to(store, State.QUEUED)
    clock.now += NUDGE_LIMIT

    first = redriver.sweep(Letters(reference_to(stranded)))
    clock.now += MILLISECOND
    second = redriver.sweep(Letters(reference_to(stranded)))

    assert [first, second] == [Swept(nudged=1), Swept(kept=1)]


def test_a_letter_that_comes_back_while_its_box_is_swept_ends_the_sweep(redriver: Redriver, store: JobStore) -> None:
    box = Letters(letter_for(brought_to(store, State.DEAD)))
    box.waiting *= 15

    assert redriver.sweep(box) == Swept(kept=10)


def test_a_sweep_that_the_store_does_not_answer_leaves_every_letter_in_sight(
    redriver: Redriver, store: DynamoJobStore, client: FaultyClient, clock: Clock
) -> None:
    jobs: list[Job] = [brought_to(store, State.QUEUED) for _ in range(3)]
    box = Letters(*(reference_to(job) for job in jobs))
    clock.now += NUDGE_LIMIT
    client.faults = [None, Fault.NOT_SENT]

    with pytest.raises(StoreUnavailableError):
        redriver.sweep(box)

    assert len(box.waiting) == 3
    # The first was nudged, so its letter is kept for now; the others are dispatched.
    clock.now += MILLISECOND
    assert redriver.sweep(box) == Swept(nudged=2, kept=1)


def test_a_swept_letter_tells_of_the_present_life_of_its_job_only(redriver: Redriver, store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    first = letter_for(dead)
    redriver.redrive(dead, by="ada")
    store.settle(claimed(store, stored(store, dead)), SETTLEMENTS[State.DEAD], now=NOW)
    second = letter_for(stored(store, dead))
    box = Letters(first, second)

    assert redriver.sweep(box) == Swept(outdated=1, kept=1)
    assert _bodies(box) == [second]


def test_a_dead_job_that_cannot_be_read_keeps_nobody_out_of_the_plan(
    redriver: Redriver, store: JobStore, table: Table
) -> None:
    jobs = [brought_to(store, State.DEAD) for _ in range(3)]
    item = table.item(jobs[1])
    assert item is not None
    table.client.put_item(TableName=table.name, Item=item | {"schema": {"N": "99"}})
    unreadable: list[str] = []

    plan = redriver.plan(Selection(), unreadable=lambda _tenant, job_id, _error: unreadable.append(job_id))

    assert {job.id for job in plan} == {jobs[0].id, jobs[2].id}
    assert unreadable == [jobs[1].id]
