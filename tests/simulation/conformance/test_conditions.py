"""Condition expressions."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from botocore.exceptions import ClientError

from tests.simulation.conformance.case import Aws
from tests.simulation.conformance.citations import DYNAMODB, GUIDE, cites

OPERATORS: Final = GUIDE + "Expressions.OperatorsAndFunctions.html"
ITEM: Final[Mapping[str, Any]] = {
    "n": {"N": "7"},
    "word": {"S": "shop"},
    "tree": {"M": {"twig": {"N": "3"}}},
    "entries": {"L": [{"S": "x"}, {"N": "2"}]},
    "tags": {"SS": ["p", "q"]},
    "lit": {"BOOL": True},
}


def holds(aws: Aws, condition: str, **values: Any) -> bool:
    """Whether the item meets the condition."""
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
)
def test_a_number_does_not_compare_with_text(aws: Aws) -> None:
    assert not holds(aws, "n = :v", v={"S": "7"})
    assert not holds(aws, "n < :v", v={"S": "9"})


@cites(OPERATORS, "a comparison with an attribute that the item does not have is false", quoted=False)
def test_a_missing_attribute_fails_every_comparison(aws: Aws) -> None:
    assert not holds(aws, "absent = :v", v={"N": "7"})
    assert not holds(aws, "absent <= :v", v={"N": "7"})


@cites(OPERATORS, "an attribute that the item does not have is unlike any value", quoted=False)
def test_a_missing_attribute_is_unequal_to_every_value(aws: Aws) -> None:
    assert holds(aws, "absent <> :v", v={"N": "7"})


@cites(
    GUIDE + "HowItWorks.NamingRulesDataTypes.html",
    "Numbers can have up to 38 digits of precision.",
)
def test_numbers_are_exact(aws: Aws) -> None:
    large = "12345678901234567890123456789012345678"
    aws.put("a", n={"N": large})
    aws.update("a", "SET n = n - :one", ExpressionAttributeValues={":one": {"N": "1"}})
    assert (aws.get("a") or {})["n"] == {"N": large[:-1] + "7"}


@cites(
    GUIDE + "HowItWorks.NamingRulesDataTypes.html",
    "DynamoDB collates and compares strings using the bytes of the underlying UTF-8 string encoding. For example, "
    '"a" (0x61) is greater than "A" (0x41), and "¿" (0xC2BF) is greater than "z" (0x7A).',
)
def test_texts_are_compared_by_their_bytes(aws: Aws) -> None:
    for smaller, larger in (("A", "a"), ("z", "¿")):
        given = {":smaller": {"S": smaller}, ":larger": {"S": larger}, ":done": {"N": "1"}}
        aws.put("a")
        aws.update(
            "a",
            "SET done = :done",
            ConditionExpression="attribute_exists(pk) AND :smaller < :larger",
            ExpressionAttributeValues=given,
        )


@cites(OPERATORS, "NOT a - True if a is false; false if a is true.")
def test_not_is_true_for_a_missing_attribute(aws: Aws) -> None:
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
