"""What conditions and updates mean."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from tests.simulation.conformance.bench import Aws, code
from tests.simulation.conformance.cited import DYNAMODB, GUIDE, cites

OPERATORS: Final = GUIDE + "Expressions.OperatorsAndFunctions.html"
UPDATES: Final = GUIDE + "Expressions.UpdateExpressions.html"
ITEM: Final[Mapping[str, Any]] = {
    "n": {"N": "7"},
    "word": {"S": "shop"},
    "tree": {"M": {"twig": {"N": "3"}}},
    "entries": {"L": [{"S": "x"}, {"N": "2"}]},
    "tags": {"SS": ["p", "q"]},
    "lit": {"BOOL": True},
}


def holds(aws: Aws, condition: str, **values: Any) -> bool:
    """Whether the item meets it."""
    aws.put("a", **ITEM)
    given = {f":{name}": value for name, value in values.items()} | {":done": {"N": "1"}}
    try:
        aws.update("a", "SET done = :done", ConditionExpression=condition, ExpressionAttributeValues=given)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return False
    return True


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("n = :v", {"N": "7"}, True),
        ("n = :v", {"N": "7.0"}, True),
        ("n <> :v", {"N": "7"}, False),
        ("n < :v", {"N": "10"}, True),
        ("n <= :v", {"N": "7"}, True),
        ("n > :v", {"N": "7"}, False),
        ("n >= :v", {"N": "8"}, False),
        ("word < :v", {"S": "shot"}, True),
        ("lit = :v", {"BOOL": True}, True),
        ("tree.twig = :v", {"N": "3"}, True),
        ("entries[1] = :v", {"N": "2"}, True),
    ],
)
@cites(OPERATORS, "a < b - True if a is less than b.")
def test_comparators_compare(aws: Aws, condition: str, value: Any, expected: bool) -> None:
    assert holds(aws, condition, v=value) is expected


@cites(
    DYNAMODB,
    "If an item contains an AttributeValue element of a different type than the one provided in the request, "
    "the value does not match.",
    moto_differs="fails on an order between the two types",
)
def test_a_number_is_no_text(aws: Aws) -> None:
    assert not holds(aws, "n = :v", v={"S": "7"})
    assert not holds(aws, "n < :v", v={"S": "9"})


@cites(OPERATORS, "a comparison with an attribute that the item does not have is false", quoted=False)
def test_what_is_missing_compares_with_nothing(aws: Aws) -> None:
    assert not holds(aws, "absent = :v", v={"N": "7"})
    assert not holds(aws, "absent <= :v", v={"N": "7"})


@cites(OPERATORS, "NOT a - True if a is false; false if a is true.")
def test_not_turns_what_is_missing_into_true(aws: Aws) -> None:
    assert holds(aws, "NOT absent = :v", v={"N": "7"})


@cites(OPERATORS, "a AND b - True if a and b are both true.")
def test_and_needs_both(aws: Aws) -> None:
    assert holds(aws, "n = :v AND attribute_exists(word)", v={"N": "7"})
    assert not holds(aws, "n = :v AND attribute_exists(absent)", v={"N": "7"})


@cites(OPERATORS, "a OR b - True if either a or b (or both) are true.")
def test_or_needs_one(aws: Aws) -> None:
    assert holds(aws, "n = :v OR attribute_exists(word)", v={"N": "1"})


@cites(
    OPERATORS,
    "DynamoDB evaluates conditions from left to right using the following precedence rules: = <> < <= > >=, "
    "IN, BETWEEN, attribute_exists …, Parentheses, NOT, AND, OR",
)
def test_and_binds_tighter_than_or(aws: Aws) -> None:
    assert holds(aws, "n = :v OR n = :v AND attribute_exists(absent)", v={"N": "7"})
    assert not holds(aws, "(n = :v OR n = :v) AND attribute_exists(absent)", v={"N": "7"})


@cites(OPERATORS, "a BETWEEN b AND c - True if a is greater than or equal to b, and less than or equal to c.")
def test_between_includes_both_ends(aws: Aws) -> None:
    assert holds(aws, "n BETWEEN :low AND :high", low={"N": "7"}, high={"N": "7"})
    assert not holds(aws, "n BETWEEN :low AND :high", low={"N": "8"}, high={"N": "9"})


@cites(OPERATORS, "a IN (b, c, d) - True if a is equal to any value in the list")
def test_in_is_any_of_a_list(aws: Aws) -> None:
    assert holds(aws, "word IN (:a, :b)", a={"S": "x"}, b={"S": "shop"})
    assert not holds(aws, "word IN (:a)", a={"S": "x"})


@cites(OPERATORS, "attribute_exists (path) - True if the item contains the attribute specified by path.")
def test_attribute_exists_follows_a_path(aws: Aws) -> None:
    assert holds(aws, "attribute_exists(tree.twig)")
    assert not holds(aws, "attribute_exists(tree.leaf)")


@cites(OPERATORS, "attribute_not_exists (path) - True if the attribute specified by path does not exist in the item.")
def test_attribute_not_exists_is_the_reverse(aws: Aws) -> None:
    assert holds(aws, "attribute_not_exists(absent)")
    assert not holds(aws, "attribute_not_exists(n)")


@cites(
    OPERATORS, "attribute_type (path, type) - True if the attribute at the specified path is of a particular data type."
)
def test_attribute_type_names_the_type(aws: Aws) -> None:
    assert holds(aws, "attribute_type(n, :kind)", kind={"S": "N"})
    assert not holds(aws, "attribute_type(n, :kind)", kind={"S": "S"})


@cites(
    OPERATORS,
    "begins_with (path, substr) - True if the attribute specified by path begins with a particular substring.",
)
def test_begins_with_is_of_texts(aws: Aws) -> None:
    assert holds(aws, "begins_with(word, :start)", start={"S": "sh"})
    assert not holds(aws, "begins_with(word, :start)", start={"S": "op"})


@cites(
    OPERATORS,
    "contains (path, operand) - True if the attribute specified by path is one of the following: a String "
    "that contains a particular substring, a Set that contains a particular element within the set, a List "
    "that contains a particular element within the list.",
)
def test_contains_is_of_texts_sets_and_lists(aws: Aws) -> None:
    assert holds(aws, "contains(word, :part)", part={"S": "ho"})
    assert holds(aws, "contains(tags, :part)", part={"S": "p"})
    assert holds(aws, "contains(entries, :part)", part={"S": "x"})


@cites(OPERATORS, "size (path) - Returns a number that represents an attribute's size.")
def test_size_is_a_number(aws: Aws) -> None:
    assert holds(aws, "size(word) = :four", four={"N": "4"})
    assert holds(aws, "size(entries) = :two", two={"N": "2"})


@cites(DYNAMODB, "REMOVE - Removes one or more attributes from an item.")
def test_remove_removes(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, m={"N": "2"})
    aws.update("a", "REMOVE n, absent")
    assert aws.get("a") == {"pk": {"S": "a"}, "m": {"N": "2"}}


@cites(UPDATES, "the right-hand sides of SET see the item as it was before the update", quoted=False)
def test_right_hand_sides_are_read_before_anything_is_written(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, m={"N": "2"})
    aws.update("a", "SET n = m, m = n")
    assert aws.get("a") == {"pk": {"S": "a"}, "n": {"N": "2"}, "m": {"N": "1"}}


@cites(UPDATES, "SET Price = Price - :p")
def test_set_adds_and_subtracts(aws: Aws) -> None:
    aws.put("a", n={"N": "10"})
    aws.update("a", "SET n = n - :v, m = n + :v", ExpressionAttributeValues={":v": {"N": "3"}})
    assert aws.get("a") == {"pk": {"S": "a"}, "n": {"N": "7"}, "m": {"N": "13"}}


@cites(UPDATES, "The provided expression refers to an attribute that does not exist in the item", quoted=False)
def test_a_sum_with_what_is_missing_is_refused(aws: Aws) -> None:
    aws.put("a")
    refused = code(lambda: aws.update("a", "SET n = n + :v", ExpressionAttributeValues={":v": {"N": "3"}}))
    assert refused == "ValidationException"


@cites(
    DYNAMODB,
    "if_not_exists (path, operand) - if the item does not contain an attribute at the specified path, then "
    "if_not_exists evaluates to operand; otherwise, it evaluates to path.",
)
def test_if_not_exists_keeps_what_is_there(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    aws.update(
        "a", "SET n = if_not_exists(n, :v), m = if_not_exists(m, :v)", ExpressionAttributeValues={":v": {"N": "9"}}
    )
    assert aws.get("a") == {"pk": {"S": "a"}, "n": {"N": "1"}, "m": {"N": "9"}}


@cites(DYNAMODB, "list_append (operand, operand) - evaluates to a list with a new element added to it.")
def test_list_append_joins_lists(aws: Aws) -> None:
    aws.put("a", entries={"L": [{"N": "1"}]})
    aws.update("a", "SET entries = list_append(entries, :v)", ExpressionAttributeValues={":v": {"L": [{"N": "2"}]}})
    assert (aws.get("a") or {})["entries"] == {"L": [{"N": "1"}, {"N": "2"}]}


@cites(
    DYNAMODB,
    "If you use ADD to increment or decrement a number value for an item that doesn't exist before the "
    "update, DynamoDB uses 0 as the initial value.",
)
def test_add_begins_at_zero(aws: Aws) -> None:
    for _ in range(2):
        aws.update("a", "ADD n :v", ExpressionAttributeValues={":v": {"N": "3"}})
    assert (aws.get("a") or {})["n"] == {"N": "6"}


@cites(DYNAMODB, "The ADD action only supports Number and set data types.")
def test_add_takes_no_text(aws: Aws) -> None:
    aws.put("a")
    assert code(lambda: aws.update("a", "ADD n :v", ExpressionAttributeValues={":v": {"S": "x"}})) == (
        "ValidationException"
    )


@cites(UPDATES, "Use the DELETE action in an update expression to remove one or more elements from a set.")
def test_delete_takes_elements_out_of_a_set(aws: Aws) -> None:
    aws.put("a", things={"SS": ["p", "q"]})
    aws.update("a", "DELETE things :v", ExpressionAttributeValues={":v": {"SS": ["p"]}})
    assert (aws.get("a") or {})["things"] == {"SS": ["q"]}


@cites(UPDATES, "Two document paths overlap with each other; must remove or rewrite one of these paths", quoted=False)
def test_one_attribute_is_written_once(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    refused = code(lambda: aws.update("a", "SET n = :v REMOVE n", ExpressionAttributeValues={":v": {"N": "3"}}))
    assert refused == "ValidationException"


@cites(
    UPDATES,
    "An update expression consists of one or more clauses. Each clause begins with a SET, REMOVE, ADD, or "
    "DELETE keyword. You can include any of these clauses in an update expression, in any order. However, "
    "each action keyword can appear only once.",
)
def test_each_clause_comes_once(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, m={"N": "1"})
    assert code(lambda: aws.update("a", "REMOVE n REMOVE m")) == "ValidationException"


@cites(
    GUIDE + "ReservedWords.html",
    "If you need to write an expression containing an attribute name that conflicts with a DynamoDB reserved word, you "
    "can define an expression attribute name to use in the place of the reserved word.",
)
def test_a_reserved_word_needs_an_alias(aws: Aws) -> None:
    aws.put("a")
    refused = code(lambda: aws.update("a", "SET state = :v", ExpressionAttributeValues={":v": {"N": "3"}}))
    assert refused == "ValidationException"
    aws.update(
        "a", "SET #s = :v", ExpressionAttributeNames={"#s": "state"}, ExpressionAttributeValues={":v": {"N": "3"}}
    )
    assert (aws.get("a") or {})["state"] == {"N": "3"}
