"""TransactWriteItems."""

from functools import partial
from typing import Any

import pytest

from tests.simulation.conformance.case import TABLE, Aws, code, refusal
from tests.simulation.conformance.citations import DYNAMODB, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault


def put(name: str, **more: Any) -> dict[str, Any]:
    return {"Put": {"TableName": TABLE, "Item": {"pk": {"S": name}}, **more}}


ABSENT: Any = {"ConditionExpression": "attribute_not_exists(pk)"}


def add(name: str, **more: Any) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": TABLE,
            "Key": {"pk": {"S": name}},
            "UpdateExpression": "ADD n :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            **more,
        }
    }


def transact(aws: Aws, *entries: Any, **more: Any) -> None:
    aws.dynamodb.transact_write_items(TransactItems=list(entries), **more)


@cites(DYNAMODB, "The actions are completed atomically so that either all of them succeed, or all of them fail.")
def test_all_or_nothing(aws: Aws) -> None:
    aws.put("b")
    assert code(lambda: transact(aws, put("a"), put("b", **ABSENT))) == "TransactionCanceledException"
    assert aws.get("a") is None


@cites(
    DYNAMODB,
    "Transaction cancellation reasons are ordered in the order of requested items, if an item has no error it will "
    "have None code and Null message.",
)
def test_reasons_stand_in_the_order_of_the_entries(aws: Aws) -> None:
    aws.put("b")
    refused = refusal(lambda: transact(aws, put("a"), put("b", **ABSENT), put("c")))
    codes = [reason["Code"] for reason in refused["CancellationReasons"]]
    assert codes == ["None", "ConditionalCheckFailed", "None"]


@cites(DYNAMODB, "Item in the request which caused the transaction to get cancelled.")
def test_a_reason_has_the_item_that_refused(aws: Aws) -> None:
    aws.put("b", n={"N": "4"})
    refused = refusal(
        lambda: transact(aws, put("a"), put("b", ReturnValuesOnConditionCheckFailure="ALL_OLD", **ABSENT))
    )
    assert refused["CancellationReasons"][1]["Item"] == {"pk": {"S": "b"}, "n": {"N": "4"}}


@cites(DYNAMODB, "For example, you cannot both ConditionCheck and Update the same item.")
def test_no_item_twice(aws: Aws) -> None:
    assert code(lambda: transact(aws, put("a"), add("a"))) == "ValidationException"


@cites(
    DYNAMODB,
    "An ordered array of up to 100 TransactWriteItem objects, each of which contains a ConditionCheck, Put, "
    "Update, or Delete object.",
)
def test_a_hundred_entries_at_most(aws: Aws) -> None:
    transact(aws, *(put(f"item-{number}") for number in range(100)))
    assert code(lambda: transact(aws, *(put(f"item-{number}") for number in range(101)))) == "ValidationException"


@cites(DYNAMODB, "ConditionCheck — Applies a condition to an item that is not being modified by the transaction.")
def test_a_condition_check_writes_nothing(aws: Aws) -> None:
    check = {"ConditionCheck": {"TableName": TABLE, "Key": {"pk": {"S": "b"}}, **ABSENT}}
    transact(aws, put("a"), check)
    assert aws.get("b") is None
    aws.put("b")
    assert code(lambda: transact(aws, put("c"), check)) == "TransactionCanceledException"


@cites(DYNAMODB, "The aggregate size of the items in the transaction cannot exceed 4 MB.")
def test_four_megabytes_at_most(aws: Aws) -> None:
    entries = [put(f"item-{number}") for number in range(12)]
    for entry in entries:
        entry["Put"]["Item"]["text"] = {"S": "x" * 390_000}
    assert code(lambda: transact(aws, *entries)) == "ValidationException"
    transact(aws, *entries[:10])


@pytest.mark.parametrize(
    ("change", "value"), [("SET more = :v", {"S": "x" * 200_000}), ("SET n = absent + :v", {"N": "1"})]
)
@cites(
    DYNAMODB,
    "Validation Error: Code: ValidationError Messages: One or more parameter values were invalid. The update "
    "expression attempted to update the secondary index key beyond allowed size limits. The update expression "
    "attempted to update the secondary index key to unsupported type. An operand in the update expression has an "
    "incorrect data type. Item size to update has exceeded the maximum allowed size.",
)
def test_an_invalid_update_cancels_the_transaction(aws: Aws, change: str, value: Any) -> None:
    aws.put("a", text={"S": "x" * 300_000})
    entry = add("a", UpdateExpression=change, ExpressionAttributeValues={":v": value})
    refused = refusal(lambda: transact(aws, put("b"), entry))
    assert [reason["Code"] for reason in refused["CancellationReasons"]] == ["None", "ValidationError"]
    assert aws.get("b") is None


@cites(
    DYNAMODB,
    "Put — Initiates a PutItem operation to write a new item. This structure specifies the primary key of the item to "
    "be written, the name of the table to write it in, an optional condition expression that must be satisfied for the "
    "write to succeed, a list of the item's attributes, and a field indicating whether to retrieve the item's "
    "attributes if the condition is not met.",
)
def test_a_reason_has_no_item_unless_asked(aws: Aws) -> None:
    aws.put("b")
    refused = refusal(lambda: transact(aws, put("b", **ABSENT)))
    assert "Item" not in refused["CancellationReasons"][0]


@cites(
    DYNAMODB,
    "Providing a ClientRequestToken makes the call to TransactWriteItems idempotent, meaning that multiple identical "
    "calls have the same effect as one single call.",
)
def test_a_token_makes_a_repeat_harmless(aws: Aws) -> None:
    for _ in range(3):
        transact(aws, add("a"), ClientRequestToken="token")
    assert (aws.get("a") or {})["n"] == {"N": "1"}


@cites(
    DYNAMODB,
    "If you submit a request with the same client token but a change in other parameters within the 10-minute "
    "idempotency window, DynamoDB returns an IdempotentParameterMismatch exception.",
)
def test_a_token_stands_for_its_parameters(aws: Aws) -> None:
    transact(aws, add("a"), ClientRequestToken="token")
    refused = code(lambda: transact(aws, add("b"), ClientRequestToken="token"))
    assert refused == "IdempotentParameterMismatchException"


@cites(
    DYNAMODB,
    "A client request token is valid for 10 minutes after the first request that uses it is completed.",
)
def test_a_token_expires_after_ten_minutes(simulated: Simulated) -> None:
    transact(simulated, add("a"), ClientRequestToken="token")
    simulated.sleep(601)
    transact(simulated, add("a"), ClientRequestToken="token")
    assert (simulated.get("a") or {})["n"] == {"N": "2"}


@cites(DYNAMODB, "The transaction with the given request token is already in progress.")
def test_a_repeat_meets_the_transaction_under_way(simulated: Simulated) -> None:
    codes: list[str] = []

    def one() -> None:
        try:
            simulated.answer("dynamodb", "TransactWriteItems", TransactItems=[add("a")], ClientRequestToken="token")
        except Exception as error:  # noqa: BLE001 - looked at below
            codes.append(getattr(error, "code", "?"))

    for _ in range(2):
        simulated.scheduler.spawn(simulated.world.process("caller"), one)
    simulated.sleep(1)
    assert codes == ["TransactionInProgressException"]
    assert (simulated.get("a") or {})["n"] == {"N": "1"}


@cites(
    DYNAMODB,
    "There is an ongoing TransactWriteItems operation that conflicts with a concurrent TransactWriteItems request.",
)
def test_of_two_transactions_on_one_item_one_is_cancelled(simulated: Simulated) -> None:
    ended: list[str] = []

    def one(other: str) -> None:
        try:
            simulated.answer("dynamodb", "TransactWriteItems", TransactItems=[add("shared"), put(other)])
            ended.append("done")
        except Exception as error:  # noqa: BLE001 - looked at below
            ended.append(error.more["CancellationReasons"][0]["Code"])  # type: ignore[attr-defined]

    for name in ("a", "b"):
        simulated.scheduler.spawn(simulated.world.process(name), partial(one, name))
    simulated.sleep(1)
    assert sorted(ended) == ["TransactionConflict", "done"]


@cites(DYNAMODB, "Operation was rejected because there is an ongoing transaction for the item.")
def test_a_write_meets_a_transaction_on_its_item(simulated: Simulated) -> None:
    simulated.put("a")
    simulated.table.held.add(("a",))
    refused = code(lambda: simulated.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "1"}}))
    assert refused == "TransactionConflictException"


@cites(
    DYNAMODB,
    "Transaction Conflict: Code: TransactionConflict Message: Transaction is ongoing for the item.",
)
def test_conflicts_occur_as_a_fault(simulated: Simulated) -> None:
    simulated.inject(Fault.TRANSACTION_CONFLICT)
    refused = refusal(lambda: transact(simulated, add("a")))
    assert [reason["Code"] for reason in refused["CancellationReasons"]] == ["TransactionConflict"]
    assert simulated.get("a") is None


@pytest.mark.parametrize("kind", ["Put", "Delete"])
@cites(DYNAMODB, "Delete — Initiates a DeleteItem operation to delete an existing item.")
def test_entries_put_and_delete(aws: Aws, kind: str) -> None:
    aws.put("a")
    entry = put("b") if kind == "Put" else {"Delete": {"TableName": TABLE, "Key": {"pk": {"S": "a"}}}}
    transact(aws, entry)
    assert (aws.get("a") is None) is (kind == "Delete")
