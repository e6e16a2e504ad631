"""Update expressions."""

from functools import partial
from typing import Any, Final

from tests.simulation.conformance.case import Aws, code
from tests.simulation.conformance.citations import DYNAMODB, GUIDE, cites

UPDATES: Final = GUIDE + "Expressions.UpdateExpressions.html"


@cites(DYNAMODB, "REMOVE - Removes one or more attributes from an item.")
def test_remove_removes(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, m={"N": "2"})
    aws.update("a", "REMOVE n, absent")
    assert aws.get("a") == {"pk": {"S": "a"}, "m": {"N": "2"}}


@cites(
    UPDATES,
    "When you use SET to update a list element, the contents of that element are replaced with the new data that you "
    "specify. If the element doesn't already exist, SET appends the new element at the end of the list.",
)
def test_set_replaces_an_element_or_appends_it(aws: Aws) -> None:
    aws.put("a", entries={"L": [{"N": "1"}, {"N": "2"}]})
    values = {":x": {"N": "8"}, ":y": {"N": "9"}}
    aws.update("a", "SET entries[0] = :x, entries[7] = :y", ExpressionAttributeValues=values)
    assert (aws.get("a") or {})["entries"] == {"L": [{"N": "8"}, {"N": "2"}, {"N": "9"}]}


@cites(UPDATES, "After Hammer and Nails are removed, the remaining elements are shifted.")
def test_elements_after_a_removed_one_move_up(aws: Aws) -> None:
    aws.put("a", entries={"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]})
    aws.update("a", "REMOVE entries[0]")
    assert (aws.get("a") or {})["entries"] == {"L": [{"N": "2"}, {"N": "3"}]}


@cites(UPDATES, "SET #pr.#5star[1] = :r5, #pr.#3star = :r3")
def test_a_path_leads_into_maps_and_lists(aws: Aws) -> None:
    aws.put("a", tree={"M": {"twig": {"N": "1"}, "nest": {"L": [{"S": "egg"}]}}})
    values = {":two": {"N": "2"}, ":bird": {"S": "bird"}}
    aws.update("a", "SET tree.twig = :two, tree.nest[0] = :bird REMOVE tree.leaf", ExpressionAttributeValues=values)
    assert (aws.get("a") or {})["tree"] == {"M": {"twig": {"N": "2"}, "nest": {"L": [{"S": "bird"}]}}}


@cites(DYNAMODB, "The document path provided in the update expression is invalid for update.")
def test_a_path_must_lead_somewhere(aws: Aws) -> None:
    aws.put("a", n={"N": "1"}, tree={"M": {}})
    for path in ("absent.twig", "tree.absent.twig", "n.twig", "n[0]"):
        more: Any = {"ExpressionAttributeValues": {":v": {"N": "2"}}}
        refused = code(partial(aws.update, "a", f"SET {path} = :v", **more))
        assert refused == "ValidationException"


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
def test_a_sum_with_a_missing_attribute_is_refused(aws: Aws) -> None:
    aws.put("a")
    refused = code(lambda: aws.update("a", "SET n = n + :v", ExpressionAttributeValues={":v": {"N": "3"}}))
    assert refused == "ValidationException"


@cites(
    DYNAMODB,
    "if_not_exists (path, operand) - if the item does not contain an attribute at the specified path, then "
    "if_not_exists evaluates to operand; otherwise, it evaluates to path.",
)
def test_if_not_exists_keeps_a_present_value(aws: Aws) -> None:
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
    values = {":none": {"L": []}, ":v": {"L": [{"N": "2"}]}}
    aws.update("a", "SET further = list_append(if_not_exists(further, :none), :v)", ExpressionAttributeValues=values)
    assert (aws.get("a") or {})["further"] == {"L": [{"N": "2"}]}


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
def test_add_rejects_text(aws: Aws) -> None:
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
