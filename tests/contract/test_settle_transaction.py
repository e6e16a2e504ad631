"""A settle with the handler's own writes: all or none commit, and each kind of refusal has its own error."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import LEASE, NOW, SETTLEMENTS, a_job, brought_to, claimed, stored
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.ports import JobStore
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import (
    EffectRefusedError,
    InvalidEffectError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

EFFECT = {"pk": {"S": "an effect"}}
Answer = Callable[..., None]


def _with(*writes: Any) -> Settlement:
    return replace(SETTLEMENTS[State.SUCCEEDED], writes=writes)


def _count(table: Table) -> Mapping[str, Any]:
    """Increment a counter, as a handler counts a click."""
    return {
        "Update": {
            "TableName": table.name,
            "Key": EFFECT,
            "UpdateExpression": "ADD clicks :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }


def _insist(table: Table) -> Mapping[str, Any]:
    """A write of the handler whose condition fails."""
    return {"ConditionCheck": {"TableName": table.name, "Key": EFFECT, "ConditionExpression": "attribute_exists(pk)"}}


def _effect(table: Table) -> Item | None:
    found: Item | None = table.client.get_item(TableName=table.name, Key=EFFECT).get("Item")
    return found


@pytest.fixture
def running(store: JobStore) -> Job:
    return brought_to(store, State.RUNNING)


def test_the_effect_commits_with_the_settle(store: JobStore, table: Table, running: Job) -> None:
    store.settle(running, _with(_count(table)), now=NOW)

    assert _effect(table) == EFFECT | {"clicks": {"N": "1"}}
    assert stored(store, running).state is State.SUCCEEDED


def test_nothing_commits_when_the_lease_was_taken_over(store: JobStore, table: Table, running: Job) -> None:
    second = claimed(store, running, token="another", now=NOW + LEASE)

    with pytest.raises(WriteRefusedError) as refused:
        store.settle(running, _with(_count(table)), now=NOW + LEASE)

    assert refused.value.current == second
    assert _effect(table) is None
    assert stored(store, running) == second


def test_nothing_commits_when_the_handlers_condition_fails(store: JobStore, table: Table, running: Job) -> None:
    with pytest.raises(EffectRefusedError, match="write 1: ConditionalCheckFailed"):
        store.settle(running, _with(_insist(table)), now=NOW)

    assert stored(store, running) == running


def test_a_lost_lease_outweighs_the_handlers_condition(store: JobStore, table: Table, running: Job) -> None:
    claimed(store, running, token="another", now=NOW + LEASE)

    with pytest.raises(WriteRefusedError):
        store.settle(running, _with(_insist(table)), now=NOW + LEASE)


@pytest.mark.parametrize(
    "write",
    [
        {"Put": {"TableName": "no-such-table", "Item": EFFECT}},
        {"Put": {"TableName": "no-such-table", "Item": {"pk": 1}}},
        {"Put": {"Item": EFFECT}},
        "not a write",
    ],
    ids=["no such table", "not the wire form", "no table", "not a write"],
)
def test_invalid_writes_are_the_handlers_fault(store: JobStore, running: Job, write: Any) -> None:
    with pytest.raises(EffectRefusedError):
        store.settle(running, _with(write), now=NOW)

    assert stored(store, running) == running


@pytest.mark.parametrize("fault", [Fault.SENT_TWICE, Fault.ANSWER_LOST])
def test_the_effect_happens_once_even_if_it_is_sent_several_times(
    store: JobStore, client: FaultyClient, table: Table, running: Job, fault: Fault
) -> None:
    client.faults = [fault]

    for _ in range(2):
        try:
            store.settle(running, _with(_count(table)), now=NOW)
        except StoreUnavailableError:
            assert fault is Fault.ANSWER_LOST

    assert _effect(table) == EFFECT | {"clicks": {"N": "1"}}


@pytest.fixture
def answer(client: FaultyClient, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Make DynamoDB refuse transactions with this code, and each of their writes with its reason."""

    def refuse(code: str, *reasons: str) -> None:
        response: Any = {
            "Error": {"Code": code, "Message": "so it is"},
            "CancellationReasons": [{"Code": reason} for reason in reasons],
        }

        def transact_write_items(**_request: Any) -> None:
            raise ClientError(response, "TransactWriteItems")

        monkeypatch.setattr(client, "transact_write_items", transact_write_items, raising=False)

    return refuse


@pytest.mark.parametrize(
    "reasons",
    [
        ("TransactionConflict", "None"),
        ("None", "TransactionConflict"),
        ("None", "ThrottlingError"),
        ("None", "ProvisionedThroughputExceeded"),
    ],
)
def test_contention_is_a_conflict_and_not_the_handlers_fault(
    store: JobStore, table: Table, running: Job, answer: Answer, reasons: Sequence[str]
) -> None:
    answer("TransactionCanceledException", *reasons)

    with pytest.raises(TransactionConflictError):
        store.settle(running, _with(_count(table)), now=NOW)


@pytest.mark.parametrize(
    "reasons",
    [
        ("None", "ConditionalCheckFailed"),
        ("TransactionConflict", "ConditionalCheckFailed"),
        ("None", "ValidationError"),
        ("None", "ItemCollectionSizeLimitExceeded"),
        # If it counted as a conflict, a document that is too large would be retried for ever.
        ("ValidationError", "None"),
    ],
)
def test_a_refused_write_outweighs_contention(
    store: JobStore, table: Table, running: Job, answer: Answer, reasons: Sequence[str]
) -> None:
    answer("TransactionCanceledException", *reasons)

    with pytest.raises(EffectRefusedError):
        store.settle(running, _with(_count(table)), now=NOW)


@pytest.mark.parametrize(
    "refusal",
    [
        ("ValidationException", InvalidEffectError),
        ("AccessDeniedException", EffectRefusedError),
        ("TransactionConflictException", TransactionConflictError),
        ("TransactionInProgressException", StoreUnavailableError),
        ("ThrottlingException", StoreUnavailableError),
    ],
)
def test_a_transaction_refused_as_a_whole_reports_the_reason(
    store: JobStore, table: Table, running: Job, answer: Answer, refusal: tuple[str, type[Exception]]
) -> None:
    code, error = refusal
    answer(code)

    with pytest.raises(error):
        store.settle(running, _with(_count(table)), now=NOW)


def test_a_fenced_transaction_without_an_item_means_a_missing_document(
    store: JobStore, table: Table, running: Job, answer: Answer
) -> None:
    answer("TransactionCanceledException", "ConditionalCheckFailed", "None")

    with pytest.raises(WriteRefusedError) as refused:
        store.settle(running, _with(_count(table)), now=NOW)

    assert refused.value.current is None


def test_the_follow_up_job_of_an_earlier_send_is_not_taken_for_that_of_another_submission(
    store: JobStore, client: FaultyClient, table: Table, running: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_up = a_job(payload="", payload_at="item/one")
    settlement = replace(SETTLEMENTS[State.SUCCEEDED], follow_ups=(follow_up,))
    store.settle(running, settlement, now=NOW)
    send: Callable[..., Any] = client.transact_write_items
    reasons = [{"Code": "TransactionConflict"}, {"Code": "ConditionalCheckFailed", "Item": table.item(follow_up)}]
    refusals: list[Any] = [{"Error": {"Code": "TransactionCanceledException"}, "CancellationReasons": reasons}]

    def transact_write_items(**request: Any) -> Any:
        if refusals:
            raise ClientError(refusals.pop(), "TransactWriteItems")
        return send(**request)

    monkeypatch.setattr(client, "transact_write_items", transact_write_items, raising=False)

    # Else its payload would be deleted as a spare one.
    assert store.settle(running, settlement, now=NOW) == []
    assert not refusals
