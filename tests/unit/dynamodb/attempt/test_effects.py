"""The entries of handlers' writes in one transaction."""

from typing import Any

import pytest

from tidemill import Add
from tidemill.domain.errors import EffectRefusedError
from tidemill.dynamodb.attempt.effects import entries, entry_names

KEY = {"pk": {"S": "a"}}
PUT = {"Put": {"TableName": "t", "Item": {"pk": {"S": "a"}, "n": {"N": "1"}}}}
UPDATE = {"Update": {"TableName": "t", "Key": KEY, "UpdateExpression": "ADD n :one"}}


def _added(entry: Any) -> dict[str, str]:
    update = entry["Update"]
    names, values = update["ExpressionAttributeNames"], update["ExpressionAttributeValues"]
    parts = [part.split() for part in update["UpdateExpression"].removeprefix("ADD ").split(", ")]
    return {names[name]: values[value]["N"] for name, value in parts}


def test_what_is_added_to_one_item_is_summed_in_one_entry() -> None:
    adds = [Add("t", KEY, {"clicks": 1, "browser:A.B": 1}), Add("t", dict(KEY), {"clicks": 2, "bots": -1})]

    (entry,) = entries(adds)

    assert (entry["Update"]["TableName"], entry["Update"]["Key"]) == ("t", KEY)
    assert _added(entry) == {"clicks": "3", "browser:A.B": "1", "bots": "-1"}


def test_what_is_added_to_two_items_or_tables_is_two_entries() -> None:
    adds = [Add("t", KEY, {"n": 1}), Add("u", KEY, {"n": 2}), Add("t", {"pk": {"S": "b"}}, {"n": 3})]

    assert [_added(entry)["n"] for entry in entries(adds)] == ["1", "2", "3"]


def test_equal_puts_without_a_condition_are_one_entry() -> None:
    other = {"Put": {"TableName": "t", "Item": {"pk": {"S": "a"}, "n": {"N": "2"}}}}

    assert entries([PUT, {"Put": dict(PUT["Put"])}, other]) == [PUT, other]


CIRCULAR: dict[str, Any] = {"TableName": "t"}
CIRCULAR["Item"] = CIRCULAR


@pytest.mark.parametrize(
    "write",
    [
        UPDATE,
        {"Delete": {"TableName": "t", "Key": KEY}},
        {"ConditionCheck": {"TableName": "t", "Key": KEY, "ConditionExpression": "attribute_exists(pk)"}},
        {"Put": PUT["Put"] | {"ConditionExpression": "attribute_not_exists(pk)"}},
        "not a write",
        {"Put": {"TableName": "t", "Item": {1: 2, "b": 3}}},
        {"Put": CIRCULAR},
    ],
)
def test_every_other_write_keeps_its_own_entry_even_if_it_is_the_same_object(write: Any) -> None:
    """Two updates that add to an item, for example, must both count."""
    assert entries([write, write]) == [write, write]
    assert len(set(entry_names([write, write]))) == 2


@pytest.mark.parametrize("amounts", [{"n": 1.5}, {"n": True}, {"n": "1"}])
def test_only_whole_numbers_are_added(amounts: Any) -> None:
    with pytest.raises(TypeError, match="Add takes whole numbers; got "):
        Add("t", KEY, amounts)


def test_an_add_without_amounts_is_refused() -> None:
    with pytest.raises(ValueError, match="Add has no amounts"):
        Add("t", KEY, {})


class _Exiting:
    def __repr__(self) -> str:
        raise SystemExit

    def __radd__(self, _amount: int) -> int:
        raise SystemExit


def _changed(name: Any, amount: Any) -> Add:
    """Its amounts were right when they were checked."""
    amounts: dict[str, Any] = {"n": 1}
    add = Add("t", KEY, amounts)
    amounts[name] = amount
    return add


@pytest.mark.parametrize(
    "effect",
    [_changed("n", "one"), _changed("n", None), _changed("m", 10**5_000), _changed("n", _Exiting())],
    ids=["text", "nothing", "huge", "exit"],
)
def test_what_cannot_be_encoded_is_refused(effect: Any) -> None:
    with pytest.raises(EffectRefusedError, match="the handler's writes cannot be encoded: "):
        entries([PUT, effect])
