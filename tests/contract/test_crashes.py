"""With a fault of any single call, before or after its effect, the job completes and takes effect once."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.builders import SECOND, TENANT, a_job_type, types_of
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tests.support.single_job import VISIBILITY, World
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.run import Run
from tidemill.application.attempt.settle import SETTLE_TRIES
from tidemill.domain.attempt.return_values import Done
from tidemill.domain.errors import PermanentJobError
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import LARGEST_MAX_ATTEMPTS

EFFECT = {"pk": {"S": "an effect"}}
NO_FAULT = st.none()
Begin = Callable[[Callable[[Any, Run], Any]], World]


@pytest.fixture
def begin(store: DynamoJobStore, client: FaultyClient) -> Begin:
    """A deployment with one job type."""
    return lambda handler: World(store, client, types_of(a_job_type(handler, max_attempts=LARGEST_MAX_ATTEMPTS)))


def _count(table: Table) -> Done:
    update = {
        "TableName": table.name,
        "Key": EFFECT,
        "UpdateExpression": "ADD times :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    return Done(result="counted", writes=[{"Update": update}])


def _effects(table: Table) -> int:
    item = table.client.get_item(TableName=table.name, Key=EFFECT).get("Item")
    return int(item["times"]["N"]) if item else 0


def _is(world: World, state: State) -> Callable[[], bool]:
    return lambda: world.job is not None and world.job.state is state


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("call", range(5), ids=["submit", "claim", "settle", "claim again", "settle with its effect"])
def test_a_job_that_fails_once_completes_despite_any_fault_of_one_call(
    begin: Begin, client: FaultyClient, table: Table, call: int, fault: Fault
) -> None:
    runs = []

    def fail_once(_payload: Any, _run: Run) -> Done:
        runs.append(1)
        if len(runs) == 1:
            raise ValueError("not yet")
        return _count(table)

    world = begin(fail_once)
    client.faults = [*[None] * call, fault]

    world.submit("test.job")
    world.run_until(_is(world, State.SUCCEEDED))

    assert not client.faults
    assert _effects(table) == 1
    world.run_until(lambda: not world.messages)
    assert _effects(table) == 1


@pytest.mark.parametrize("applied", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("send", range(2), ids=["first dispatch", "retry"])
def test_a_job_completes_when_publish_is_killed_before_or_after_a_send(
    begin: Begin, table: Table, send: int, applied: bool
) -> None:
    def fail_once(_payload: Any, run: Run) -> Done:
        if run.attempt == 1:
            raise ValueError("not yet")
        return _count(table)

    world = begin(fail_once)
    world.kill_sends = [*[None] * send, applied]

    world.submit("test.job")
    world.run_until(_is(world, State.SUCCEEDED))
    world.run_until(lambda: not world.messages)

    assert _effects(table) == 1


@pytest.mark.parametrize("fault", Fault)
def test_a_released_job_completes_despite_any_fault_of_the_release(
    begin: Begin, client: FaultyClient, table: Table, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    world = begin(lambda _payload, _run: _count(table))
    real = client.transact_write_items
    conflicts = iter(range(SETTLE_TRIES))
    response: Any = {
        "Error": {"Code": "TransactionCanceledException", "Message": ""},
        "CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}],
    }

    def conflicting(**request: Any) -> Any:
        if next(conflicts, None) is None:
            return real(**request)
        raise ClientError(response, "TransactWriteItems")

    monkeypatch.setattr(client, "transact_write_items", conflicting, raising=False)
    client.faults = [None, None, fault]

    world.submit("test.job")
    world.run_until(_is(world, State.SUCCEEDED))

    assert not client.faults
    assert _effects(table) == 1


@pytest.mark.parametrize("fault", Fault)
def test_a_redriven_job_completes_and_its_message_is_deleted_despite_any_fault(
    begin: Begin, client: FaultyClient, table: Table, fault: Fault
) -> None:
    fixed: list[bool] = []

    def broken(_payload: Any, _run: Run) -> Done:
        if not fixed:
            raise PermanentJobError("no such column")
        return _count(table)

    world = begin(broken)
    world.submit("test.job")
    world.run_until(lambda: bool(world.dead_letters.waiting))
    fixed.append(True)

    client.faults = [fault]
    world.redrive()
    world.run_until(_is(world, State.SUCCEEDED))

    assert not client.faults
    assert _effects(table) == 1
    assert not world.dead_letters.waiting
    assert not world.dead_letters.hidden


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_stranded_job_completes_despite_any_fault_of_the_nudge(
    begin: Begin, client: FaultyClient, table: Table, state: State, fault: Fault
) -> None:
    world = begin(lambda _payload, _run: _count(table))
    world.submit("test.job")
    world.run_until(lambda: bool(world.messages))
    if state is State.RUNNING:
        client.faults = [Fault.KILLED_AFTER]
        world.run_until(_is(world, State.RUNNING))
    # SQS moves the message to the dead-letter queue.
    world.dead_letters.add(world.messages.pop().body)
    world.clock.now += 2 * VISIBILITY

    client.faults = [fault]
    world.redrive()
    while world.dead_letters.waiting:
        world.clock.now += VISIBILITY + SECOND
        world.redrive()
    world.run_until(_is(world, State.SUCCEEDED))

    assert not client.faults
    assert _effects(table) == 1


def test_a_fenced_worker_leaves_the_message_to_the_worker_that_took_over(
    begin: Begin, store: DynamoJobStore, table: Table
) -> None:
    """The other worker may have claimed the job from the same message, and may be killed."""
    stolen: list[bool] = []

    def stall(_payload: Any, _run: Run) -> Done:
        if not stolen:
            stolen.append(True)
            message = world.messages[0]
            assert not hasattr(message.body, "letter")
            world.clock.now += 2 * VISIBILITY
            store.claim(
                message.body,  # type: ignore[arg-type]  # not a dead-letter message
                token="another",
                now=world.clock.now,
                lease_end=world.clock.now + VISIBILITY,
            )
        return _count(table)

    world = begin(stall)
    world.submit("test.job")
    world.run_until(_is(world, State.SUCCEEDED))

    assert [report.ending for report in world.reports] == [Ending.FENCED, Ending.SUCCEEDED]
    assert _effects(table) == 1
    assert world.job is not None
    assert (world.job.tenant, world.job.attempt) == (TENANT, 3)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    calls=st.tuples(
        st.lists(NO_FAULT | st.sampled_from(Fault), max_size=10), st.lists(NO_FAULT | st.booleans(), max_size=4)
    ),
    runs=st.lists(st.sampled_from(["fails", "stalls", "works"]), max_size=5),
)
def test_a_job_takes_effect_once_despite_faults_of_calls_and_workers(
    begin: Begin,
    client: FaultyClient,
    table: Table,
    calls: tuple[list[Fault | None], list[bool | None]],
    runs: list[str],
) -> None:
    """A stalled worker resumes after its lease expired, its message returned, and another worker ran the job."""

    def handler(_payload: Any, _run: Run) -> Done:
        way = runs.pop(0) if runs else "works"
        if way == "stalls":
            world.clock.now += 2 * VISIBILITY
            world.step()
        if way == "fails":
            raise ValueError("not yet")
        return _count(table)

    client.faults = []
    before = _effects(table)
    world = begin(handler)
    client.faults, world.kill_sends = calls

    world.submit("test.job")
    world.run_until(_is(world, State.SUCCEEDED))
    world.run_until(lambda: not world.messages)

    assert _effects(table) == before + 1
