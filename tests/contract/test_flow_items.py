"""The items of flows, and the writes to their documents: each clause has the race that it closes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, reference_to, with_changes
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.attempt.outcomes import Awaits, Failed, Outcome, Settlement, Succeeded, settlement
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.flows.flows import LOOK, NODES_KEPT
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Signal
from tidemill.domain.waiting.waiting import Cause
from tidemill.dynamodb.document import key
from tidemill.dynamodb.flows.flow_items import CURSOR_PREFIX, DynamoFlows
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import FLOW_TYPE
from tidemill.system.ids import new_job_id

LATER = NOW + SECOND
GAVE_UP = Failed(error_class="GiveUp", message="", death=DeathReason.GAVE_UP)
WAITS = Awaits(cause=Cause.SIGNAL, name=LOOK, after=timedelta(hours=1))


@pytest.fixture
def flows(client: FaultyClient, table: Table) -> DynamoFlows:
    return DynamoFlows(client, table=table.name)  # type: ignore[arg-type]  # a proxy


def a_flow(store: DynamoJobStore) -> Job:
    return store.insert_if_absent(a_job(id=new_job_id(), type=FLOW_TYPE))


def run(store: DynamoJobStore, flow: Job) -> Job:
    return store.claim(reference_to(flow), token=new_job_id(), now=NOW, lease_end=NOW + 60 * SECOND)


def settled(store: DynamoJobStore, claimed: Job, outcome: Outcome) -> Job:
    written: Settlement = settlement(claimed, outcome, RetryPolicy(max_attempts=8), now=NOW, draw=0)
    store.settle(claimed, written, now=NOW)
    return read(store, claimed)


def read(store: DynamoJobStore, flow: Job) -> Job:
    found = store.get(flow.tenant, flow.id)
    assert found is not None
    return found


def waiting(store: DynamoJobStore) -> Job:
    return settled(store, run(store, a_flow(store)), WAITS)


def node_of(flow: Job, mark: Mark | None = None, **changes: Any) -> Job:
    marked: Mapping[str, Any] = {"state": State.CANCELLED, "due": None} if mark else {}
    place = FlowPlace(id=flow.id, node="a", mark=mark)
    return a_job(**{"id": "node", "trace": new_job_id(), "flow": place, **marked, **changes})


def test_a_cursor_is_there_once_it_has_moved(store: DynamoJobStore, flows: DynamoFlows, table: Table) -> None:
    flow = a_flow(store)
    assert flows.cursors(flow, [3, 4]) == {3: Cursor(), 4: Cursor()}
    moved = flows.move(flow, 3, Cursor(at=2, by=1, clean=False, additions=5))
    assert moved is not None
    assert flows.cursors(flow, [3, 4]) == {3: moved, 4: Cursor()}
    (item,) = [
        item for item in table.client.scan(TableName=table.name)["Items"] if item["pk"]["S"].startswith(CURSOR_PREFIX)
    ]
    assert item["expires_at"]["N"] == str(round((flow.created_at + NODES_KEPT).timestamp()))


def test_a_cursor_does_not_move_if_another_advance_has_moved_it(store: DynamoJobStore, flows: DynamoFlows) -> None:
    flow = a_flow(store)
    first = flows.move(flow, 0, Cursor(at=1))
    assert first is not None
    assert flows.move(flow, 0, Cursor(at=2)) is None
    second = flows.move(flow, 0, replace(first, at=2))
    assert second is not None
    assert flows.move(flow, 0, replace(first, at=3)) is None
    assert flows.cursors(flow, [0]) == {0: second}
    assert flows.move(flow, 1, replace(first, at=4)) is None, "its item has expired"
    assert flows.cursors(flow, [1]) == {1: Cursor()}


def test_a_move_that_the_sdk_sends_twice_is_made_once(
    store: DynamoJobStore, flows: DynamoFlows, client: FaultyClient
) -> None:
    flow, cursor = a_flow(store), Cursor()
    for at in (1, 2):
        client.faults = [Fault.SENT_TWICE]
        moved = flows.move(flow, 0, replace(cursor, at=at))
        assert moved is not None
        assert flows.cursors(flow, [0]) == {0: moved}
        cursor = moved
    assert cursor.at == 2


def test_a_refused_request_gives_the_flow_as_it_is_now(store: DynamoJobStore, flows: DynamoFlows, table: Table) -> None:
    flow = run(store, a_flow(store))
    flows.add(flow, '{"nodes":1}', now=LATER)
    ended = settled(store, run(store, a_flow(store)), Succeeded(result="{}"))
    for stale, now in ((flow, read(store, flow)), (replace(ended, state=State.RUNNING), ended)):
        with pytest.raises(WriteRefusedError) as refused:
            flows.add(stale, '{"nodes":2}', now=LATER)
        assert refused.value.current == now
    with pytest.raises(WriteRefusedError) as refused:
        flows.look(replace(ended, state=State.RUNNING), now=LATER)
    assert refused.value.current == ended

    table.client.delete_item(TableName=table.name, Key=key(flow.tenant, flow.id))
    for ask in (lambda: flows.look(flow, now=LATER), lambda: flows.add(flow, "{}", now=LATER)):
        with pytest.raises(WriteRefusedError) as refused:
            ask()
        assert refused.value.current is None


def test_a_later_flow_of_the_same_key_has_cursors_of_its_own(store: DynamoJobStore, flows: DynamoFlows) -> None:
    flow = a_flow(store)
    flows.move(flow, 0, Cursor(at=1))
    assert flows.cursors(replace(flow, created_at=LATER), [0]) == {0: Cursor()}


def test_a_flow_that_waits_is_queued(store: DynamoJobStore, flows: DynamoFlows) -> None:
    flow = waiting(store)
    assert flow.state is State.PARKED
    flows.look(flow, now=LATER)
    asked = read(store, flow)
    assert (asked.state, asked.due, asked.generation) == (State.QUEUED, LATER, flow.generation + 1)
    assert (asked.wait, asked.flow_state.looks) == (None, 1)
    # A run is to come, so there is nothing to write.
    flows.look(asked, now=LATER)
    assert read(store, flow) == asked


def test_a_run_of_a_flow_does_not_settle_if_it_was_asked_to_look(store: DynamoJobStore, flows: DynamoFlows) -> None:
    for outcome in (WAITS, Succeeded(result="{}"), GAVE_UP):
        claimed = run(store, a_flow(store))
        flows.look(claimed, now=LATER)
        with pytest.raises(WriteRefusedError):
            settled(store, claimed, outcome)
        again = read(store, claimed)
        assert (again.state, again.flow_state.looks) == (State.RUNNING, 1)


def test_a_run_that_began_after_the_request_to_look_settles(store: DynamoJobStore, flows: DynamoFlows) -> None:
    flow = waiting(store)
    flows.look(flow, now=LATER)
    claimed = store.claim(reference_to(read(store, flow)), token=new_job_id(), now=LATER, lease_end=LATER + 60 * SECOND)
    assert settled(store, claimed, Succeeded(result="{}")).state is State.SUCCEEDED


@pytest.mark.parametrize("as_read", ["state", "generation", "created_at"])
def test_a_request_to_look_is_refused_if_the_flow_has_changed(
    store: DynamoJobStore, flows: DynamoFlows, as_read: str
) -> None:
    flow = waiting(store)
    other: Mapping[str, Mapping[str, Any]] = {
        "state": {"state": State.RUNNING},
        "generation": {"generation": flow.generation + 1},
        "created_at": {"created_at": LATER},
    }
    with pytest.raises(WriteRefusedError):
        flows.look(with_changes(flow, **other[as_read]), now=LATER)
    assert read(store, flow) == flow


def test_a_request_to_look_is_refused_if_a_signal_came_first(store: DynamoJobStore, flows: DynamoFlows) -> None:
    flow = waiting(store)
    signalled = store.signal(flow, Signal(name="other", at=NOW, data="1"), wakes=False)
    with pytest.raises(WriteRefusedError):
        flows.look(flow, now=LATER)
    assert read(store, flow) == signalled


def test_an_addition_is_counted_and_asks_for_a_look(store: DynamoJobStore, flows: DynamoFlows) -> None:
    for flow in (waiting(store), run(store, a_flow(store)), a_flow(store)):
        first = flows.add(flow, '{"nodes":1}', now=LATER)
        assert read(store, flow).flow_state.looks == 1
        flows.add(read(store, flow), '{"nodes":2}', now=LATER)
        extended = read(store, flow)
        assert (first.flow_state.additions, extended.flow_state.additions) == (1, 2)
        assert flows.added(extended, range(3)) == ['{"nodes":1}', '{"nodes":2}']


def test_an_addition_is_refused_if_another_one_came_first(store: DynamoJobStore, flows: DynamoFlows) -> None:
    flow = a_flow(store)
    flows.add(flow, '{"nodes":1}', now=LATER)
    with pytest.raises(WriteRefusedError):
        flows.add(flow, '{"nodes":2}', now=LATER)
    once = read(store, flow)
    flows.add(once, '{"nodes":2}', now=LATER)
    with pytest.raises(WriteRefusedError):
        flows.add(once, '{"nodes":3}', now=LATER)
    assert flows.added(flow, range(3)) == ['{"nodes":1}', '{"nodes":2}']


def test_an_addition_is_refused_if_the_flow_has_ended_since(store: DynamoJobStore, flows: DynamoFlows) -> None:
    claimed = run(store, a_flow(store))
    settled(store, claimed, Succeeded(result="{}"))
    with pytest.raises(WriteRefusedError):
        flows.add(claimed, '{"nodes":1}', now=LATER)
    assert flows.added(claimed, [0]) == []
    with pytest.raises(WriteRefusedError) as refused:
        flows.add(read(store, claimed), '{"nodes":1}', now=LATER)
    assert refused.value.current == read(store, claimed)
    assert flows.added(claimed, [0]) == []


@pytest.mark.parametrize("later", [None, Mark.SKIPPED])
def test_a_blocked_node_may_start_or_be_skipped(store: DynamoJobStore, later: Mark | None) -> None:
    flow = a_flow(store)
    store.insert_if_absent(node_of(flow, Mark.BLOCKED))
    replaced = store.insert_if_absent(node_of(flow, later))
    assert read(store, replaced) == replaced


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (None, None),
        (None, Mark.SKIPPED),
        (None, Mark.BLOCKED),
        (Mark.SKIPPED, None),
        (Mark.SKIPPED, Mark.BLOCKED),
        (Mark.BLOCKED, Mark.BLOCKED),
    ],
)
def test_nothing_else_replaces_the_document_of_a_node(
    store: DynamoJobStore, first: Mark | None, second: Mark | None
) -> None:
    flow = a_flow(store)
    stored = store.insert_if_absent(node_of(flow, first))
    with pytest.raises(WriteRefusedError):
        store.insert_if_absent(node_of(flow, second))
    assert read(store, stored) == stored


def test_a_node_that_an_operator_cancelled_is_not_started_again(store: DynamoJobStore) -> None:
    flow = a_flow(store)
    stored = store.insert_if_absent(node_of(flow))
    store.cancel(stored, now=NOW)
    with pytest.raises(WriteRefusedError):
        store.insert_if_absent(node_of(flow))
