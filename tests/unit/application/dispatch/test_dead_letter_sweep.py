"""The sweep of a dead-letter queue: which messages it deletes, keeps, and dispatches again."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    MILLISECOND,
    NOW,
    SECOND,
    SETTLEMENTS,
    a_job,
    brought_to,
    claimed,
    letter_for,
    reference_to,
    stored,
    with_changes,
)
from tests.support.in_memory_dlq import Letters
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.dispatch.dead_letter_sweep import NUDGE_LIMIT, Swept, sweep
from tidemill.application.ports import JobStore, ReceivedDeadLetter, Refusal
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore

Sweep = Callable[[Letters], Swept]


@pytest.fixture
def swept(store: JobStore, clock: Clock) -> Sweep:
    return partial(sweep, store=store, clock=clock)


def _bodies(box: Letters) -> list[object]:
    return [dead_letter.body for dead_letter in box.waiting]


def test_messages_of_redriven_jobs_are_deleted(swept: Sweep, store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    box = Letters(letter_for(dead), letter_for(dead))
    store.redrive(dead, token="redrive", now=NOW, by="ada")

    assert swept(box) == Swept(outdated=2)
    assert (box.waiting, box.hidden) == ([], [])


def test_messages_of_dead_jobs_stay(swept: Sweep, store: JobStore) -> None:
    dead = [brought_to(store, State.DEAD) for _ in range(25)]
    box = Letters(*(letter_for(job) for job in dead))

    assert swept(box) == Swept(kept=25)
    assert {dead_letter.reference.job_id for dead_letter in box.waiting if dead_letter.reference} == {
        job.id for job in dead
    }
    assert box.hidden == []


def test_messages_without_a_live_or_dead_job_are_deleted(swept: Sweep, store: JobStore, table: Table) -> None:
    succeeded = brought_to(store, State.SUCCEEDED)
    expired = with_changes(brought_to(store, State.DEAD), expires_at=NOW.replace(microsecond=0))
    table.put(expired)
    box = Letters(None, reference_to(a_job()), letter_for(succeeded), letter_for(expired), None)

    assert swept(box) == Swept(outdated=5)
    assert (box.waiting, box.hidden) == ([], [])


def test_a_message_of_a_newer_version_stays(swept: Sweep) -> None:
    box = Letters()
    box.waiting = [ReceivedDeadLetter(message_id="1", receipt="1", body=None, sent_at=NOW, newer=True)]

    assert swept(box) == Swept(kept=1)
    assert len(box.waiting) == 1


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING, State.RUNNING])
def test_a_live_job_whose_message_sqs_moved_is_dispatched_again(
    swept: Sweep, store: JobStore, clock: Clock, state: State
) -> None:
    stranded = brought_to(store, state)
    box = Letters(reference_to(stranded))
    clock.now += LEASE + NUDGE_LIMIT

    assert swept(box) == Swept(nudged=1)

    nudged = stored(store, stranded)
    assert (nudged.generation, nudged.nudges.last_at) == (stranded.generation, clock.now)
    assert (box.waiting, box.hidden) == ([], [])


@pytest.mark.parametrize("late", [timedelta(0), LEASE + NUDGE_LIMIT - SECOND])
def test_a_message_stays_while_its_job_may_still_run(
    swept: Sweep, store: JobStore, clock: Clock, late: timedelta
) -> None:
    running = brought_to(store, State.RUNNING)
    box = Letters(reference_to(running))
    clock.now += late

    assert swept(box) == Swept(kept=1)
    assert _bodies(box) == [reference_to(running)]
    assert stored(store, running) == running


def test_only_one_of_two_concurrent_sweeps_nudges(swept: Sweep, store: JobStore, clock: Clock) -> None:
    stranded = brought_to(store, State.QUEUED)
    clock.now += NUDGE_LIMIT

    first = swept(Letters(reference_to(stranded)))
    clock.now += MILLISECOND
    second = swept(Letters(reference_to(stranded)))

    assert [first, second] == [Swept(nudged=1), Swept(kept=1)]


def test_a_batch_of_only_returned_messages_ends_the_sweep(swept: Sweep, store: JobStore) -> None:
    box = Letters(letter_for(brought_to(store, State.DEAD)))
    box.waiting *= 15

    assert swept(box) == Swept(kept=10)


def test_a_job_that_cannot_be_written_does_not_end_the_sweep(
    swept: Sweep, store: JobStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd, *others = (brought_to(store, State.QUEUED) for _ in range(3))
    clock.now += NUDGE_LIMIT
    nudge = store.nudge

    def refuse(job: Job, **request: Any) -> None:
        if job.id == odd.id:
            raise ValueError("the item is too large")
        nudge(job, **request)

    monkeypatch.setattr(store, "nudge", refuse)
    box = Letters(*(reference_to(job) for job in (odd, *others)))

    assert swept(box) == Swept(nudged=2, kept=1, failed=1, error="ValueError: the item is too large")
    assert _bodies(box) == [reference_to(odd)]


def test_a_sweep_that_the_store_interrupts_makes_every_message_visible_again(
    swept: Sweep, store: DynamoJobStore, clock: Clock
) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise StoreUnavailableError

    jobs: list[Job] = [brought_to(store, State.QUEUED) for _ in range(3)]
    box = Letters(*(reference_to(job) for job in jobs))
    clock.now += NUDGE_LIMIT

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "get_many", unavailable)
        with pytest.raises(StoreUnavailableError):
            swept(box)

    assert len(box.waiting) == 3
    assert swept(box) == Swept(nudged=3)


def test_a_message_from_before_a_redrive_is_deleted(swept: Sweep, store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)
    first = letter_for(dead)
    store.redrive(dead, token="redrive", now=NOW, by="ada")
    store.settle(claimed(store, stored(store, dead)), SETTLEMENTS[State.DEAD], now=NOW)
    second = letter_for(stored(store, dead))
    box = Letters(first, second)

    assert swept(box) == Swept(outdated=1, kept=1)
    assert _bodies(box) == [second]


def test_a_message_that_sqs_does_not_delete_is_kept_and_counts_as_failed(
    swept: Sweep, store: JobStore, clock: Clock
) -> None:
    class Refusing(Letters):
        def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
            super().delete(dead_letters[1:-1])
            return [Refusal(0, error="InternalError: a"), Refusal(len(dead_letters) - 1, error="InternalError: b")]

    stranded = [brought_to(store, State.QUEUED) for _ in range(2)]
    clock.now += NUDGE_LIMIT
    box = Refusing(None, *(reference_to(job) for job in stranded))

    assert swept(box) == Swept(nudged=1, kept=2, failed=2, error="InternalError: b")
    assert (_bodies(box), box.hidden) == ([None, reference_to(stranded[1])], [])
