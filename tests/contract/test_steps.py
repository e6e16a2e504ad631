"""A step is one fenced write, whose repeat is refused, and each write that follows keeps it until a success."""

import pytest

from tests.support.builders import A_SIGNAL, A_STEP, LEASE, NOW, SETTLEMENTS, brought_to, stored, with_changes
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.job_store import Checkpoint
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import GIVEN_TO_PAYLOAD, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb import document
from tidemill.dynamodb.job_store import DynamoJobStore

SHIP = replace(A_STEP, name="ship", result="null")


def _claimed_again(store: DynamoJobStore, job: Job) -> Job:
    job = stored(store, job)
    due = job.due or NOW
    return store.claim(reference_to(job), token="again", now=due, lease_end=due + LEASE)


@pytest.fixture
def running(store: DynamoJobStore) -> Job:
    return brought_to(store, State.RUNNING)


def test_steps_are_recorded_in_order_and_the_next_claim_has_them(store: DynamoJobStore, running: Job) -> None:
    one = store.record_step(running, A_STEP)
    two = store.record_step(one, SHIP)

    assert two == stored(store, running)
    assert two.steps.recorded == (A_STEP, SHIP)
    store.settle(two, SETTLEMENTS[State.RETRYING], now=NOW)
    assert _claimed_again(store, running).steps.recorded == (A_STEP, SHIP)


def test_a_run_that_lost_its_lease_records_nothing(store: DynamoJobStore, running: Job) -> None:
    later = NOW + 2 * LEASE
    store.claim(reference_to(running), token="next", now=later, lease_end=later + LEASE)

    with pytest.raises(WriteRefusedError):
        store.record_step(running, A_STEP)

    assert stored(store, running).steps.recorded == ()


@pytest.mark.parametrize("known", [(), (A_STEP,)])
def test_a_run_that_does_not_know_all_steps_records_nothing(
    store: DynamoJobStore, running: Job, known: tuple[()]
) -> None:
    for step in (A_STEP, SHIP):
        running = store.record_step(running, step)

    with pytest.raises(WriteRefusedError):
        store.record_step(with_changes(running, steps=known), replace(A_STEP, name="bill"))

    assert stored(store, running) == running


@pytest.mark.parametrize("known", [0, 1])
def test_a_step_sent_twice_is_recorded_once(
    store: DynamoJobStore, client: FaultyClient, running: Job, known: int
) -> None:
    for _ in range(known):
        running = store.record_step(running, SHIP)

    client.faults = [Fault.SENT_TWICE]
    written = store.record_step(running, A_STEP)

    assert written.steps.recorded == (*[SHIP] * known, A_STEP)
    assert stored(store, running) == written


@pytest.mark.parametrize(("fault", "steps"), [(Fault.NOT_SENT, ()), (Fault.ANSWER_LOST, (A_STEP,))])
def test_the_next_claim_says_whether_an_unanswered_step_was_recorded(
    store: DynamoJobStore, client: FaultyClient, running: Job, fault: Fault, steps: tuple[()]
) -> None:
    client.faults = [fault]
    with pytest.raises(StoreUnavailableError):
        store.record_step(running, A_STEP)

    store.settle(running, SETTLEMENTS[State.RETRYING], now=NOW)

    assert _claimed_again(store, running).steps.recorded == steps


@pytest.mark.parametrize("state", SETTLEMENTS, ids=str)
def test_only_a_success_drops_the_steps(store: DynamoJobStore, running: Job, state: State) -> None:
    running = store.record_step(running, A_STEP)

    store.settle(running, SETTLEMENTS[state], now=NOW)

    assert stored(store, running).steps.recorded == (() if state is State.SUCCEEDED else (A_STEP,))


@pytest.mark.parametrize("edited", [False, True])
def test_a_redrive_with_another_payload_drops_the_steps(store: DynamoJobStore, running: Job, edited: bool) -> None:
    running = store.record_step(running, A_STEP)
    store.settle(running, SETTLEMENTS[State.DEAD], now=NOW)

    dead = stored(store, running)
    job = store.redrive(with_changes(dead, payload='{"n":9}'), token="t", now=NOW, by="ada", edited=edited)

    assert (job.steps.recorded, job.payload.text == '{"n":9}') == (() if edited else (A_STEP,), edited)
    assert job.steps.dropped == ((A_STEP.name,) if edited else ())


@pytest.mark.parametrize("edited", [False, True])
def test_a_redrive_with_another_payload_begins_from_the_start(
    store: DynamoJobStore, running: Job, edited: bool
) -> None:
    """An approval was for the payload that it saw."""
    store.checkpoint(running, Checkpoint(state="[5000]", done=5000, total=6000), now=NOW)
    store.signal(store.record_step(running, A_STEP), A_SIGNAL, wakes=False)
    store.settle(stored(store, running), SETTLEMENTS[State.DEAD], now=NOW)
    dead = stored(store, running)

    job = store.redrive(with_changes(dead, payload='{"n":9}'), token="t", now=NOW, by="ada", edited=edited)

    given = [(A_STEP,), "[5000]", NOW, 5000, 6000, (A_SIGNAL,)]
    assert [document.value_of(dead, name) for name in GIVEN_TO_PAYLOAD] == given
    assert [document.value_of(job, name) for name in GIVEN_TO_PAYLOAD] == (
        [(), None, None, None, None, ()] if edited else given
    )


def test_a_step_of_a_newer_version_keeps_what_this_one_does_not_know(
    store: DynamoJobStore, table: Table, running: Job
) -> None:
    running = store.record_step(running, A_STEP)
    item = table.item(running) or {}
    item["steps"]["L"][0]["M"]["unknown"] = {"S": "x"}
    table.client.put_item(TableName=table.name, Item=item)

    store.record_step(running, SHIP)

    assert (table.item(running) or {})["steps"]["L"][0]["M"]["unknown"] == {"S": "x"}
