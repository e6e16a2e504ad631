"""What a handler may add to an item."""

from typing import Any

import pytest

from tidemill.domain.attempt.effects import Add


def add(amounts: Any) -> Add:
    return Add(table="t", key={"pk": {"S": "a"}}, amounts=amounts)


@pytest.mark.parametrize("amount", [1, 0, -5, 10**20])
def test_a_whole_number_is_added(amount: int) -> None:
    assert add({"n": amount}).amounts == {"n": amount}


@pytest.mark.parametrize("amount", [1.0, "1", None, True, False])
def test_any_other_amount_is_refused(amount: Any) -> None:
    with pytest.raises(TypeError, match=f"Add takes whole numbers; got {amount!r} for 'm'"):
        add({"n": 1, "m": amount})


@pytest.mark.parametrize("amount", [10**38, -(10**38), 10**4_000])
def test_a_number_that_dynamodb_cannot_keep_is_refused(amount: int) -> None:
    assert add({"n": 10**38 - 1}).amounts
    with pytest.raises(ValueError, match="Add takes numbers of at most 38 digits; the one for 'm' has more"):
        add({"n": 1, "m": amount})


def test_nothing_to_add_is_refused() -> None:
    with pytest.raises(ValueError, match="Add has no amounts; name an attribute and what to add to it"):
        add({})
