"""Writing and reading single items."""

from typing import Any

import pytest

from tests.simulation.conformance.case import TABLE, Aws, code, refusal
from tests.simulation.conformance.citations import DYNAMODB, GUIDE, cites

KEY = {"pk": {"S": "a"}}
IF_ABSENT: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}


@cites(
    DYNAMODB,
    "Creates a new item, or replaces an old item with a new item. If an item that has the same primary key as the new "
    "item already exists in the specified table, the new item completely replaces the existing item.",
)
def test_a_put_replaces_the_whole_item(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    aws.put("a", m={"N": "2"})
    assert aws.get("a") == KEY | {"m": {"N": "2"}}


@cites(DYNAMODB, "A condition that must be satisfied in order for a conditional PutItem operation to succeed.")
def test_a_put_whose_condition_fails_changes_nothing(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    again = KEY | {"n": {"N": "2"}}
    refused = code(lambda: aws.dynamodb.put_item(TableName=TABLE, Item=again, **IF_ABSENT))
    assert refused == "ConditionalCheckFailedException"
    assert aws.get("a") == KEY | {"n": {"N": "1"}}


@cites(
    DYNAMODB,
    "An optional parameter that returns the item attributes for a PutItem operation that failed a condition check.",
)
def test_a_refused_put_returns_the_item_that_refused_it(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    refused = refusal(
        lambda: aws.dynamodb.put_item(
            TableName=TABLE, Item=KEY, ReturnValuesOnConditionCheckFailure="ALL_OLD", **IF_ABSENT
        )
    )
    assert refused["Item"] == KEY | {"n": {"N": "1"}}


@cites(DYNAMODB, "For ReturnValuesOnConditionCheckFailure, the valid values are: NONE and ALL_OLD.")
def test_a_refused_put_returns_no_item_unless_asked(aws: Aws) -> None:
    aws.put("a")
    assert "Item" not in refusal(lambda: aws.dynamodb.put_item(TableName=TABLE, Item=KEY, **IF_ABSENT))


@cites(DYNAMODB, "Item which caused the ConditionalCheckFailedException.")
def test_a_write_refused_by_nothing_returns_no_item(aws: Aws) -> None:
    refused = refusal(
        lambda: aws.update(
            "a",
            "SET n = :n",
            ConditionExpression="attribute_exists(pk)",
            ExpressionAttributeValues={":n": {"N": "1"}},
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    )
    assert refused["Error"]["Code"] == "ConditionalCheckFailedException"
    assert "Item" not in refused


@cites(DYNAMODB, "Edits an existing item's attributes, or adds a new item to the table if it does not already exist.")
def test_an_update_of_a_missing_item_makes_it(aws: Aws) -> None:
    aws.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "1"}})
    assert aws.get("a") == KEY | {"n": {"N": "1"}}


@cites(DYNAMODB, "A condition that must be satisfied in order for a conditional update to succeed.")
def test_an_update_whose_condition_fails_changes_nothing(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    values = {":n": {"N": "2"}, ":other": {"N": "7"}}
    refused = code(
        lambda: aws.update("a", "SET n = :n", ConditionExpression="n = :other", ExpressionAttributeValues=values)
    )
    assert refused == "ConditionalCheckFailedException"
    assert aws.get("a") == KEY | {"n": {"N": "1"}}


@cites(DYNAMODB, "ALL_NEW - Returns all of the attributes of the item, as they appear after the UpdateItem operation.")
def test_all_new_is_the_whole_item_afterwards(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, m={"N": "5"})
    answer = aws.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "2"}}, ReturnValues="ALL_NEW")
    assert answer["Attributes"] == KEY | {"n": {"N": "2"}, "m": {"N": "5"}}


@cites(DYNAMODB, "UPDATED_NEW - Returns only the updated attributes, as they appear after the UpdateItem operation.")
def test_updated_new_is_the_written_attributes(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, m={"N": "5"})
    answer = aws.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "2"}}, ReturnValues="UPDATED_NEW")
    assert answer["Attributes"] == {"n": {"N": "2"}}


@cites(
    DYNAMODB,
    "ALL_OLD - Returns all of the attributes of the item, as they appeared before the UpdateItem operation.",
)
def test_all_old_of_an_update_is_the_item_before(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    answer = aws.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "2"}}, ReturnValues="ALL_OLD")
    assert answer["Attributes"] == KEY | {"n": {"N": "1"}}


@cites(
    DYNAMODB,
    "UPDATED_OLD - Returns only the updated attributes, as they appeared before the UpdateItem operation.",
)
def test_updated_old_is_the_overwritten_attributes(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, m={"N": "5"})
    answer = aws.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "2"}}, ReturnValues="UPDATED_OLD")
    assert answer["Attributes"] == {"n": {"N": "1"}}


@cites(
    DYNAMODB,
    "ALL_OLD - If PutItem overwrote an attribute name-value pair, then the content of the old item is returned.",
)
def test_all_old_of_a_put_is_the_replaced_item(aws: Aws) -> None:
    for before in ({}, {"Attributes": KEY}):
        answer = aws.dynamodb.put_item(TableName=TABLE, Item=KEY, ReturnValues="ALL_OLD")
        assert {name: value for name, value in answer.items() if name == "Attributes"} == before


@cites(DYNAMODB, "ALL_OLD - The content of the old item is returned.")
def test_all_old_of_a_delete_is_the_deleted_item(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    answer = aws.dynamodb.delete_item(TableName=TABLE, Key=KEY, ReturnValues="ALL_OLD")
    assert answer["Attributes"] == KEY | {"n": {"N": "1"}}


@cites(
    DYNAMODB,
    "Unless you specify conditions, the DeleteItem is an idempotent operation; running it multiple times on the same "
    "item or attribute does not result in an error response.",
)
def test_a_delete_may_be_repeated(aws: Aws) -> None:
    aws.put("a")
    for _ in range(2):
        aws.dynamodb.delete_item(TableName=TABLE, Key=KEY)
    assert aws.get("a") is None


@cites(DYNAMODB, "A condition that must be satisfied in order for a conditional DeleteItem to succeed.")
def test_a_delete_whose_condition_fails_deletes_nothing(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    refused = code(
        lambda: aws.dynamodb.delete_item(
            TableName=TABLE,
            Key=KEY,
            ConditionExpression="n = :n",
            ExpressionAttributeValues={":n": {"N": "2"}},
        )
    )
    assert refused == "ConditionalCheckFailedException"
    assert aws.get("a") is not None


@cites(
    DYNAMODB,
    "If there is no matching item, GetItem does not return any data and there will be no Item element in the response.",
)
def test_a_get_of_nothing_has_no_item(aws: Aws) -> None:
    assert "Item" not in aws.dynamodb.get_item(TableName=TABLE, Key=KEY)


@cites(
    GUIDE + "Constraints.html",
    "Empty String and Binary attribute values are allowed, if the attribute is not used as a key attribute for"
    " a table or index.",
)
def test_a_key_may_not_be_empty(aws: Aws) -> None:
    assert code(lambda: aws.put("")) == "ValidationException"


@cites(
    GUIDE + "ServiceQuotas.html",
    "The minimum length of a partition key value is 1 byte. The maximum length is 2048 bytes.",
)
def test_a_key_holds_two_kilobytes(aws: Aws) -> None:
    aws.put("a" * 2048)
    assert code(lambda: aws.put("a" * 2049)) == "ValidationException"


@cites(
    DYNAMODB,
    "Attribute values of type String and Binary must have a length greater than zero if the attribute is used as a key "
    "attribute for a table or index.",
)
def test_an_index_key_may_not_be_empty(aws: Aws) -> None:
    assert code(lambda: aws.put("a", colour={"S": ""}, size={"N": "1"})) == "ValidationException"


@cites(DYNAMODB, "Empty String and Binary attribute values are allowed.")
def test_other_texts_may_be_empty(aws: Aws) -> None:
    aws.put("a", text={"S": ""})
    assert aws.get("a") == KEY | {"text": {"S": ""}}


@cites(DYNAMODB, "You cannot use UpdateItem to update any primary key attributes.")
def test_an_update_may_not_touch_the_key(aws: Aws) -> None:
    aws.put("a")
    refused = code(lambda: aws.update("a", "SET pk = :k", ExpressionAttributeValues={":k": {"S": "b"}}))
    assert refused == "ValidationException"


@cites(
    GUIDE + "Constraints.html",
    "The maximum item size in DynamoDB is 400 KB, which includes both attribute name binary length (UTF-8 "
    "length) and attribute value lengths (again binary length).",
)
def test_an_item_holds_400_kilobytes(aws: Aws) -> None:
    aws.put("a", text={"S": "x" * 400_000})
    assert code(lambda: aws.put("a", text={"S": "x" * 420_000})) == "ValidationException"


@cites(
    GUIDE + "Constraints.html",
    "The maximum item size in DynamoDB is 400 KB, which includes both attribute name binary length (UTF-8 "
    "length) and attribute value lengths (again binary length).",
)
def test_an_update_may_not_make_an_item_too_large(aws: Aws) -> None:
    aws.put("a", text={"S": "x" * 300_000})
    refused = code(
        lambda: aws.update("a", "SET more = :more", ExpressionAttributeValues={":more": {"S": "é" * 60_000}})
    )
    assert refused == "ValidationException"
    assert set(aws.get("a") or {}) == {"pk", "text"}


@cites(
    DYNAMODB,
    "If any attributes are present in the item that are part of an index key schema for the table, their types"
    " must match the index key schema.",
)
def test_an_index_key_must_be_of_its_type(aws: Aws) -> None:
    assert code(lambda: aws.put("a", colour={"N": "1"}, size={"N": "1"})) == "ValidationException"


@cites(DYNAMODB, "The operation tried to access a nonexistent table or index.")
def test_a_missing_table_raises_resource_not_found(aws: Aws) -> None:
    assert code(lambda: aws.dynamodb.get_item(TableName="nothing", Key=KEY)) == "ResourceNotFoundException"


@pytest.mark.parametrize(
    ("names", "values"), [({"#unused": "n"}, {":n": {"N": "1"}}), (None, {":n": {"N": "1"}, ":unused": {"N": "2"}})]
)
@cites(
    GUIDE + "Expressions.ExpressionAttributeNames.html",
    'a name or value that no expression uses is an error: "unused in expressions"',
    quoted=False,
)
def test_every_placeholder_must_be_used(aws: Aws, names: Any, values: Any) -> None:
    given: dict[str, Any] = {"ExpressionAttributeValues": values}
    if names:
        given["ExpressionAttributeNames"] = names
    assert code(lambda: aws.update("a", "SET n = :n", **given)) == "ValidationException"


@cites(
    GUIDE + "Expressions.ExpressionAttributeNames.html",
    "a placeholder that is used and not defined is an error",
    quoted=False,
)
def test_every_placeholder_must_be_defined(aws: Aws) -> None:
    refused = code(lambda: aws.update("a", "SET #n = :n", ExpressionAttributeValues={":n": {"N": "1"}}))
    assert refused == "ValidationException"
