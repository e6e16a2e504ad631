"""A signal is one conditional write, and the settle of a wait knows each signal that came before it."""

from datetime import timedelta

import pytest

from tests.support.builders import A_SIGNAL, NOW, SECOND, a_job, brought_to, claimed, stored, with_changes
from tidemill.domain.attempt.outcomes import Awaits, Settlement, settlement
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signal_answers import Answer, answer
from tidemill.domain.waiting.signals import Signal
from tidemill.domain.waiting.waiting import Cause
from tidemill.dynamodb.job_store import DynamoJobStore

HOUR = timedelta(hours=1)
WAIT = Awaits(cause=Cause.SIGNAL, name="approval", after=HOUR)


def waits(job: Job, outcome: Awaits = WAIT) -> Settlement:
    return settlement(job, outcome, RetryPolicy(), now=NOW, draw=0.5)


def parked(store: DynamoJobStore) -> Job:
    running = brought_to(store, State.RUNNING)
    store.settle(running, waits(running), now=NOW)
    return stored(store, running)


def test_wake_finds_a_job_that_waits_by_its_end(store: DynamoJobStore) -> None:
    job = parked(store)

    assert list(store.scheduled(before=NOW + HOUR - SECOND)) == []
    assert list(store.scheduled(before=NOW + HOUR)) == [job]
    store.unpark(job, now=NOW, due=NOW + HOUR)
    queued = stored(store, job)
    assert (queued.state, queued.due, queued.wait, queued.generation) == (
        *(State.QUEUED, NOW + HOUR, None),
        job.generation + 1,
    )
    assert list(store.scheduled(before=NOW + HOUR)) == []


def test_the_signal_that_a_job_waits_for_queues_it(store: DynamoJobStore) -> None:
    job = parked(store)
    assert answer(job, "approval", "1") is Answer.WAKES

    queued = store.signal(job, A_SIGNAL, wakes=True)

    assert queued == stored(store, job)
    assert (queued.state, queued.due, queued.wait, queued.signals.received) == (State.QUEUED, NOW, None, (A_SIGNAL,))
    assert queued.generation == job.generation + 1
    assert list(store.scheduled(before=NOW + HOUR)) == []


@pytest.mark.parametrize("earlier", [0, 1])
def test_of_two_signals_at_once_the_second_reads_again(store: DynamoJobStore, earlier: int) -> None:
    job = brought_to(store, State.QUEUED)
    for number in range(earlier):
        job = store.signal(job, replace(A_SIGNAL, name=f"n{number}"), wakes=False)
    store.signal(job, replace(A_SIGNAL, name="first"), wakes=False)

    with pytest.raises(WriteRefusedError):
        store.signal(job, replace(A_SIGNAL, name="second"), wakes=False)

    assert [each.name for each in stored(store, job).signals.received][earlier:] == ["first"]


@pytest.mark.parametrize("wakes", [False, True])
def test_a_signal_to_a_job_that_was_claimed_since_is_refused(store: DynamoJobStore, wakes: bool) -> None:
    job = brought_to(store, State.QUEUED)
    running = claimed(store, job)

    with pytest.raises(WriteRefusedError):
        store.signal(job, A_SIGNAL, wakes=wakes)

    assert stored(store, job) == running


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_wait_is_refused_if_a_signal_came_during_the_run(store: DynamoJobStore, earlier: int) -> None:
    job = brought_to(store, State.QUEUED)
    for number in range(earlier):
        job = store.signal(job, replace(A_SIGNAL, name=f"n{number}"), wakes=False)
    running = claimed(store, job)
    signalled = store.signal(running, A_SIGNAL, wakes=False)

    with pytest.raises(WriteRefusedError):
        store.settle(running, waits(running), now=NOW)

    assert stored(store, job) == signalled
    store.settle(running, waits(running, replace(WAIT, arrived=signalled.signals.received)), now=NOW)
    queued = stored(store, job)
    assert (queued.state, queued.due, queued.signals.received) == (State.QUEUED, NOW, signalled.signals.received)


@pytest.mark.parametrize("earlier", [0, 1])
def test_the_death_for_lack_of_an_input_is_refused_if_a_signal_came_during_the_run(
    store: DynamoJobStore, earlier: int
) -> None:
    job = brought_to(store, State.QUEUED)
    for number in range(earlier):
        job = store.signal(job, replace(A_SIGNAL, name=f"n{number}"), wakes=False)
    running = claimed(store, job)
    signalled = store.signal(running, A_SIGNAL, wakes=False)
    never = replace(WAIT, cause=Cause.INPUT, most=0)

    with pytest.raises(WriteRefusedError):
        store.settle(running, waits(running, never), now=NOW)

    assert stored(store, job) == signalled
    store.settle(running, waits(running, replace(never, arrived=signalled.signals.received)), now=NOW)
    assert (stored(store, job).state, stored(store, job).due) == (State.QUEUED, NOW)


def test_without_a_signal_the_death_for_lack_of_an_input_is_written(store: DynamoJobStore) -> None:
    running = brought_to(store, State.RUNNING)

    store.settle(running, waits(running, replace(WAIT, cause=Cause.INPUT, most=0)), now=NOW)

    assert stored(store, running).death is DeathReason.MISSING_INPUT


def test_a_signal_does_not_hold_up_a_run_that_ends_otherwise(store: DynamoJobStore) -> None:
    running = brought_to(store, State.RUNNING)
    store.signal(running, A_SIGNAL, wakes=False)

    store.settle(running, Settlement(state=State.SUCCEEDED), now=NOW)

    done = stored(store, running)
    assert (done.state, done.signals.received) == (State.SUCCEEDED, (A_SIGNAL,))


def test_the_answers_of_a_job() -> None:
    job = a_job(signals=(A_SIGNAL, Signal(name="address", at=NOW, data="1", used=True)))

    assert answer(job, "approval", '{"by": "ada"}') is Answer.REPEATED
    assert answer(job, "approval", "2") is Answer.OTHER_VALUE
    assert answer(job, "address", "1") is Answer.REPEATED
    assert answer(job, "address", "2") is Answer.KEPT
    assert answer(replace(job, state=State.DEAD), "address", "2") is Answer.ENDED
    assert answer(with_changes(job, signals=(A_SIGNAL,) * 16), "other", "2") is Answer.TOO_MANY
