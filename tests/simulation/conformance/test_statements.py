"""BatchExecuteStatement with updates and inserts in PartiQL."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulation.conformance.case import TABLE, Aws, code
from tests.simulation.conformance.citations import DYNAMODB, GUIDE, cites

UPDATES = f"{GUIDE}ql-reference.update.html"


def change(name: str, *, where: str = "", old: str = "NONE", removes: str = "", **values: str) -> dict[str, Any]:
    """Set `n` to 1, if the condition holds. Its values are texts."""
    return {
        "Statement": f'UPDATE "{TABLE}" SET "n" = ? {removes}WHERE "pk" = ?{where}',
        "Parameters": [{"N": "1"}, {"S": name}, *({"S": value} for value in values.values())],
        "ReturnValuesOnConditionCheckFailure": old,
    }


def executed(aws: Aws, *statements: Mapping[str, Any]) -> Sequence[Any]:
    answers: Sequence[Any] = aws.dynamodb.batch_execute_statement(Statements=list(statements))["Responses"]
    return answers


def codes(answers: Sequence[Any]) -> list[str | None]:
    return [answer.get("Error", {}).get("Code") for answer in answers]


@cites(
    DYNAMODB,
    "A HTTP 200 response does not mean that all statements in the BatchExecuteStatement succeeded.",
    moto=False,
)
def test_a_refused_statement_leaves_the_others(aws: Aws) -> None:
    for name in ("a", "b", "c"):
        aws.put(name, colour={"S": name}, size={"N": "1"})
    statements = [change(name, where=' AND "colour" = ?', colour="b") for name in ("a", "b", "c")]
    assert codes(executed(aws, *statements)) == ["ConditionalCheckFailed", None, "ConditionalCheckFailed"]
    changed = [name for name in ("a", "b", "c") if "n" in (aws.get(name) or {})]
    assert changed == ["b"]


@cites(
    DYNAMODB,
    "The item which caused the condition check to fail. This will be set if ReturnValuesOnConditionCheckFailure is "
    "specified as ALL_OLD .",
    moto=False,
)
def test_a_refused_statement_returns_the_item(aws: Aws) -> None:
    aws.put("a", n={"N": "7"})
    asks, does_not = executed(
        aws,
        change("a", where=' AND "n" IS MISSING', old="ALL_OLD"),
        change("b", where=' AND "n" IS MISSING'),
    )
    assert asks["Error"]["Item"] == {"pk": {"S": "a"}, "n": {"N": "7"}}
    assert "Item" not in does_not["Error"]


@cites(
    UPDATES,
    "If the WHERE clause of the UPDATE statement does not evaluate to true for any item in the DynamoDB table, "
    "ConditionalCheckFailedException is returned.",
    moto=False,
)
def test_an_update_by_statement_makes_no_item(aws: Aws) -> None:
    assert codes(executed(aws, change("a"))) == ["ConditionalCheckFailed"]
    assert aws.get("a") is None


@cites(
    f"{GUIDE}ql-functions.missing.html",
    "Returns TRUE if the item does not contain the attribute specified.",
    moto=False,
)
def test_a_condition_on_a_missing_attribute(aws: Aws) -> None:
    aws.put("a")
    statement = change("a", where=' AND "n" IS MISSING')
    assert codes(executed(aws, statement)) == [None]
    assert codes(executed(aws, statement)) == ["ConditionalCheckFailed"]


@cites(UPDATES, "UPDATE table [SET | REMOVE] path [= data] […] WHERE condition", moto=False)
def test_a_statement_sets_and_removes(aws: Aws) -> None:
    aws.put("a", gone={"S": "x"}, kept={"S": "y"})
    assert codes(executed(aws, change("a", removes='REMOVE "gone" '))) == [None]
    assert aws.get("a") == {"pk": {"S": "a"}, "n": {"N": "1"}, "kept": {"S": "y"}}


@cites(
    f"{GUIDE}ql-reference.multiplestatements.batching.html",
    "BatchExecuteStatement and BatchWriteItem can perform no more than 25 statements per batch.",
    moto=False,
)
def test_a_batch_has_25_statements_at_most(aws: Aws) -> None:
    aws.put("a")
    assert code(lambda: executed(aws, *[change("a")] * 26)) == "ValidationException"


def insert(name: str, colour: str) -> dict[str, Any]:
    statement = f"INSERT INTO \"{TABLE}\" VALUE {{'pk': ?, 'colour': ?}}"
    return {"Statement": statement, "Parameters": [{"S": name}, {"S": colour}]}


@cites(
    DYNAMODB,
    "There was an attempt to insert an item with the same primary key as an item that already exists in the DynamoDB "
    "table.",
    moto=False,
)
def test_an_insert_by_statement_replaces_no_item(aws: Aws) -> None:
    aws.put("a", colour={"S": "red"})
    assert codes(executed(aws, insert("a", "green"), insert("b", "green"))) == ["DuplicateItem", None]
    assert [(aws.get(name) or {})["colour"] for name in ("a", "b")] == [{"S": "red"}, {"S": "green"}]


@cites(
    GUIDE + "Streams.html",
    "Whenever an application creates, updates, or deletes items in the table, DynamoDB Streams writes a stream record "
    "with the primary key attributes of the items that were modified.",
    moto=False,
)
def test_a_write_by_statement_has_a_record(aws: Aws) -> None:
    executed(aws, insert("a", "red"))
    executed(aws, insert("a", "green"))
    executed(aws, change("a"))
    images = [(record["eventName"], record["dynamodb"]["NewImage"]) for record in aws.records()]
    inserted = {"pk": {"S": "a"}, "colour": {"S": "red"}}
    assert images == [("INSERT", inserted), ("MODIFY", {**inserted, "n": {"N": "1"}})]
