"""A settle with follow-up jobs: all are inserted with the success or none, in their groups and in order."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    TENANT,
    a_job,
    brought_to,
    claimed,
    stored,
)
from tests.support.faulty_client import Fault, FaultyClient, KilledError
from tests.support.interleave import meet
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import (
    EffectRefusedError,
    StoreUnavailableError,
    TransactionConflictError,
    TransactionTooLargeError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.attempt import settle_transaction
from tidemill.dynamodb.groups.group_items import HEAD_PREFIX, POSITION_PREFIX
from tidemill.dynamodb.job_store import DynamoJobStore

EFFECT = {"pk": {"S": "an effect"}}


def _with(*follow_ups: Job, writes: Sequence[Mapping[str, Any]] = ()) -> Settlement:
    return replace(SETTLEMENTS[State.SUCCEEDED], follow_ups=follow_ups, writes=writes)


def _count(table: Table) -> Mapping[str, Any]:
    return {
        "Update": {
            "TableName": table.name,
            "Key": EFFECT,
            "UpdateExpression": "ADD times :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }


def _refused(table: Table) -> Mapping[str, Any]:
    """A write of the handler whose condition fails."""
    return {"ConditionCheck": {"TableName": table.name, "Key": EFFECT, "ConditionExpression": "attribute_exists(pk)"}}


def _effects(table: Table) -> Item | None:
    found: Item | None = table.client.get_item(TableName=table.name, Key=EFFECT).get("Item")
    return found


def _stored(table: Table) -> list[str]:
    items: Any = table.client.scan(TableName=table.name, ConsistentRead=True)["Items"]
    return sorted(item["pk"]["S"] for item in items)


@pytest.fixture
def running(store: JobStore) -> Job:
    return brought_to(store, State.RUNNING)


@pytest.fixture
def other(table: Table) -> DynamoJobStore:
    """A second store on the same table."""
    return DynamoJobStore(table.client, table=table.name, retention=RETENTION)


def test_follow_ups_are_inserted_with_the_success(store: JobStore, table: Table, running: Job) -> None:
    follow_ups = [a_job(), a_job(state=State.SCHEDULED, due=NOW + 1000 * SECOND, run_at=NOW + 1000 * SECOND)]

    store.settle(running, _with(*follow_ups, writes=[_count(table)]), now=NOW)

    assert stored(store, running).state is State.SUCCEEDED
    assert [stored(store, job) for job in follow_ups] == follow_ups
    assert _effects(table) == EFFECT | {"times": {"N": "1"}}


def test_follow_ups_enter_their_groups_in_the_order_given(store: JobStore, running: Job) -> None:
    there = store.insert_if_absent(a_job(group="old"))
    follow_ups = [a_job(group=group) for group in ("old", "new", "old", "new")]

    store.settle(running, _with(*follow_ups), now=NOW)

    assert there.group.sequence == 1
    assert [(job.group.sequence, job.state, job.due) for job in (stored(store, job) for job in follow_ups)] == [
        (2, State.WAITING, None),
        (1, State.QUEUED, NOW),
        (3, State.WAITING, None),
        (2, State.WAITING, None),
    ]


def test_a_follow_up_in_the_group_of_its_parent_waits_until_the_parent_ends(store: JobStore) -> None:
    parent = claimed(store, store.insert_if_absent(a_job(group="chain")))
    follow_up = a_job(group="chain")

    store.settle(parent, _with(follow_up), now=NOW)

    assert stored(store, follow_up).state is State.WAITING
    assert store.advance(TENANT, "chain", now=NOW) == stored(store, follow_up)


def test_an_existing_follow_up_is_left_unchanged(store: JobStore, table: Table, running: Job) -> None:
    there = brought_to(store, State.RETRYING)
    fresh, last = a_job(group="parcels"), a_job(group="parcels")
    again = replace(a_job(group="parcels"), id=there.id)

    store.settle(running, _with(fresh, again, last, writes=[_count(table)]), now=NOW)

    assert stored(store, running).state is State.SUCCEEDED
    assert stored(store, there) == there
    assert [stored(store, job).group.sequence for job in (fresh, last)] == [1, 2]
    assert _effects(table) == EFFECT | {"times": {"N": "1"}}


def test_a_success_whose_follow_ups_all_exist_is_settled(store: JobStore, running: Job) -> None:
    there = [store.insert_if_absent(a_job(group=group)) for group in ("parcels", None)]

    store.settle(running, _with(*(replace(job, trace="another request") for job in there)), now=NOW)

    assert stored(store, running).state is State.SUCCEEDED
    assert [stored(store, job) for job in there] == there


def test_a_settle_is_repeated_when_a_follow_ups_group_changes_meanwhile(
    store: JobStore, other: JobStore, table: Table, running: Job, client: FaultyClient
) -> None:
    head = store.insert_if_absent(a_job(group="parcels"))
    other.cancel(head, now=NOW)
    follow_up = a_job(group="parcels")
    meet(client, lambda: other.advance(TENANT, "parcels", now=NOW))

    store.settle(running, _with(follow_up, writes=[_count(table)]), now=NOW)

    assert (stored(store, follow_up).group.sequence, stored(store, follow_up).state) == (2, State.QUEUED)
    assert _effects(table) == EFFECT | {"times": {"N": "1"}}


def test_a_group_that_keeps_changing_is_a_conflict_and_nothing_is_written(
    store: JobStore, other: JobStore, client: FaultyClient, table: Table, running: Job
) -> None:
    tries = []

    def enter(applied: bool) -> None:
        if not applied:
            tries.append(other.insert_if_absent(a_job(group="parcels")))

    client.watch = enter

    with pytest.raises(TransactionConflictError, match="moved 8 times"):
        store.settle(running, _with(a_job(group="parcels"), writes=[_count(table)]), now=NOW)

    assert len(tries) == settle_transaction.TRIES
    assert stored(store, running) == running
    assert _effects(table) is None


def test_a_run_that_lost_its_lease_leaves_no_follow_up(store: JobStore, table: Table, running: Job) -> None:
    second = claimed(store, running, token="another", now=NOW + LEASE)
    before = _stored(table)

    with pytest.raises(WriteRefusedError) as refused:
        store.settle(running, _with(a_job(), a_job(group="parcels")), now=NOW + LEASE)

    assert refused.value.current == second
    assert _stored(table) == before


def test_a_run_that_loses_its_lease_while_its_group_changes_is_fenced(
    store: JobStore, other: JobStore, table: Table, running: Job, client: FaultyClient
) -> None:
    def overtake() -> None:
        other.insert_if_absent(a_job(group="parcels"))
        claimed(other, running, token="another", now=NOW + LEASE)

    meet(client, overtake)

    with pytest.raises(WriteRefusedError):
        store.settle(running, _with(a_job(group="parcels"), writes=[_count(table)]), now=NOW + LEASE)

    assert _effects(table) is None


def test_no_follow_up_is_inserted_when_the_handlers_condition_fails(
    store: JobStore, table: Table, running: Job
) -> None:
    before = _stored(table)

    with pytest.raises(EffectRefusedError, match="ConditionalCheckFailed"):
        store.settle(running, _with(a_job(), a_job(group="parcels"), writes=[_refused(table)]), now=NOW)

    assert _stored(table) == before


def test_a_follow_up_that_the_store_rejects_is_the_handlers_fault(store: JobStore, table: Table, running: Job) -> None:
    before = _stored(table)

    with pytest.raises(EffectRefusedError):
        store.settle(running, _with(a_job(payload="x" * 500_000)), now=NOW)

    assert _stored(table) == before


@pytest.mark.parametrize(("count", "group"), [(100, None), (50, "parcels")])
def test_more_follow_ups_than_a_transaction_holds_are_refused(
    store: JobStore, table: Table, running: Job, count: int, group: str | None
) -> None:
    """In a group, each job but the first also writes a position, and the group writes its head and tail."""
    follow_ups = [a_job(group=group) for _ in range(count)]
    entries = 101 if group is None else 102

    with pytest.raises(TransactionTooLargeError, match=f"{entries} transaction entries, .* return Continue"):
        store.settle(running, _with(*follow_ups), now=NOW)

    assert len(_stored(table)) == 1
    store.settle(running, _with(*follow_ups[1:]), now=NOW)
    assert len(_stored(table)) == 100


@pytest.mark.parametrize("fault", Fault)
def test_follow_ups_enter_once_despite_any_fault_of_the_settle(
    store: JobStore, client: FaultyClient, table: Table, running: Job, fault: Fault
) -> None:
    """The second try finds changed orders of the groups, possibly changed by the first try."""
    store.insert_if_absent(a_job(group="old"))
    follow_ups = [a_job(group="old"), a_job(group="new")]
    settlement = _with(*follow_ups, writes=[_count(table)])
    client.faults = [fault]

    with suppress(KilledError, StoreUnavailableError, TransactionConflictError):
        store.settle(running, settlement, now=NOW)
    store.settle(running, settlement, now=NOW)

    assert not client.faults
    assert stored(store, running).state is State.SUCCEEDED
    assert [stored(store, job).group.sequence for job in follow_ups] == [2, 1]
    assert _effects(table) == EFFECT | {"times": {"N": "1"}}
    assert sum(name.startswith((HEAD_PREFIX, POSITION_PREFIX)) for name in _stored(table)) == 3
