"""Several settles in one transaction: each is fenced by itself, and no job takes another's effect with it."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import LEASE, NOW, SETTLEMENTS, brought_to, claimed, stored
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill import Add
from tidemill.application.ports import Settling
from tidemill.domain.attempt.effects import Effect
from tidemill.domain.errors import (
    EffectRefusedError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore

COUNTER = {"pk": {"S": "the counter"}}


def _record(table: Table, name: str) -> Mapping[str, Any]:
    return {"Put": {"TableName": table.name, "Item": {"pk": {"S": f"record {name}"}}}}


def _settling(table: Table, job: Job, *more: Effect) -> Settling:
    """Each job has a record of its own, and counts in one item."""
    writes = (_record(table, job.id), Add(table.name, COUNTER, {"n": 1}), *more)
    return Settling(job, replace(SETTLEMENTS[State.SUCCEEDED], writes=writes), NOW)


def _count(table: Table) -> int:
    item = table.client.get_item(TableName=table.name, Key=COUNTER).get("Item", {})
    return int(item["n"]["N"]) if item else 0


def _states(store: DynamoJobStore, jobs: Sequence[Job]) -> list[State]:
    return [stored(store, job).state for job in jobs]


@pytest.fixture
def running(store: DynamoJobStore) -> list[Job]:
    return [brought_to(store, State.RUNNING) for _ in range(4)]


class Transactions:
    """The sizes of the transactions that were sent."""

    def __init__(self, client: FaultyClient, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        self.errors: list[Exception | None] = []
        send = client.transact_write_items

        def sent(**request: Any) -> Any:
            self.sizes.append(len(request["TransactItems"]))
            if self.errors and (error := self.errors.pop(0)):
                raise error
            return send(**request)

        monkeypatch.setattr(client, "transact_write_items", sent, raising=False)


@pytest.fixture
def sent(client: FaultyClient, monkeypatch: pytest.MonkeyPatch) -> Transactions:
    return Transactions(client, monkeypatch)


def test_all_settle_with_the_sum_of_their_effects_in_one_transaction(
    store: DynamoJobStore, table: Table, running: list[Job], sent: Transactions
) -> None:
    errors = store.settle_jointly([_settling(table, job) for job in running])

    assert errors == [None] * 4
    assert (_states(store, running), _count(table)) == ([State.SUCCEEDED] * 4, 4)
    # A settle and a record of each, and one counter.
    assert sent.sizes == [9]


def test_a_job_that_another_worker_has_taken_over_takes_no_effect(
    store: DynamoJobStore, table: Table, running: list[Job]
) -> None:
    second = claimed(store, running[1], token="another", now=NOW + LEASE)

    errors = store.settle_jointly([_settling(table, job) for job in running])

    (refused,) = [error for error in errors if error]
    assert errors[1] is refused
    assert isinstance(refused, WriteRefusedError)
    assert refused.current == second
    assert _states(store, running) == [State.SUCCEEDED, State.RUNNING, State.SUCCEEDED, State.SUCCEEDED]
    assert _count(table) == 3
    assert "Item" not in table.client.get_item(TableName=table.name, Key={"pk": {"S": f"record {running[1].id}"}})


@pytest.mark.parametrize("fault", [Fault.SENT_TWICE, Fault.ANSWER_LOST])
def test_effects_happen_once_even_if_they_are_sent_several_times(
    store: DynamoJobStore, client: FaultyClient, table: Table, running: list[Job], fault: Fault
) -> None:
    settlings = [_settling(table, job) for job in running]
    client.faults = [fault]

    first = store.settle_jointly(settlings)
    if fault is Fault.ANSWER_LOST:
        assert {type(error) for error in first} == {StoreUnavailableError}
        first = store.settle_jointly(settlings)

    assert first == [None] * 4
    assert (_states(store, running), _count(table)) == ([State.SUCCEEDED] * 4, 4)


def test_a_settle_alone_after_a_lost_answer_finds_it_written(
    store: DynamoJobStore, client: FaultyClient, table: Table, running: list[Job]
) -> None:
    settlings = [_settling(table, job) for job in running]
    client.faults = [Fault.ANSWER_LOST]
    store.settle_jointly(settlings)

    for each in settlings:
        store.settle(each.job, each.settlement, now=each.now)

    assert _count(table) == 4


@pytest.mark.parametrize("poison", [0, 1, 2, 3])
def test_an_effect_that_is_refused_stops_its_own_job_only(
    store: DynamoJobStore, table: Table, running: list[Job], poison: int
) -> None:
    check = {"ConditionCheck": {"TableName": table.name, "Key": {"pk": {"S": "none"}}}}
    check["ConditionCheck"]["ConditionExpression"] = "attribute_exists(pk)"
    settlings = [_settling(table, job, *([check] if index == poison else [])) for index, job in enumerate(running)]

    errors = store.settle_jointly(settlings)

    assert isinstance(errors[poison], EffectRefusedError)
    assert [error for error in errors if error] == [errors[poison]]
    assert stored(store, running[poison]) == running[poison]
    assert _count(table) == 3


def test_conflicting_transactions_leave_each_job_as_it_was(
    store: DynamoJobStore, table: Table, running: list[Job], sent: Transactions
) -> None:
    reasons = [{"Code": "TransactionConflict"}] + [{"Code": "None"}] * 8
    response: Any = {"Error": {"Code": "TransactionCanceledException", "Message": "no"}, "CancellationReasons": reasons}
    sent.errors = [ClientError(response, "TransactWriteItems")]

    errors = store.settle_jointly([_settling(table, job) for job in running])

    assert {type(error) for error in errors} == {TransactionConflictError}
    assert (_states(store, running), _count(table)) == ([State.RUNNING] * 4, 0)


def test_more_than_a_transaction_holds_is_settled_in_several(
    store: DynamoJobStore, table: Table, sent: Transactions
) -> None:
    jobs = [brought_to(store, State.RUNNING) for _ in range(51)]

    errors: Sequence[TidemillError | None] = store.settle_jointly([_settling(table, job) for job in jobs])

    assert errors == [None] * 51
    assert (sent.sizes, _count(table)) == ([99, 5], 51)


def test_a_job_alone_settles_as_any_other(store: DynamoJobStore, table: Table, running: list[Job]) -> None:
    assert store.settle_jointly([_settling(table, running[0])]) == [None]
    assert _states(store, running) == [State.SUCCEEDED, *[State.RUNNING] * 3]
    assert store.settle_jointly([]) == []
