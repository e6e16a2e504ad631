"""The values that the options of a job type may have: both sides of each bound."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tidemill.domain import option_values
from tidemill.domain.time_constants import LONGEST_SPAN

NAMES: dict[str, Callable[[object], str]] = {
    "job type": option_values.type_name,
    "downstream": option_values.downstream_name,
    "shared limit": option_values.limit_name,
    "event type": option_values.event_name,
}
SECOND = timedelta(seconds=1)
LONGEST_SECONDS = LONGEST_SPAN / SECOND


@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("name", ["a", "mail.welcome", "a_b-c.0d", "a" * 64])
def test_a_name_is_words_joined_by_dots(what: str, name: str) -> None:
    assert NAMES[what](name) == name


@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("name", ["", "0a", "_a", "A", "a.", ".a", "a..b", "a b", "a\n", "é", "a" * 65, 5, None, b"a"])
def test_any_other_name_is_refused_with_the_kind_and_an_example(what: str, name: object) -> None:
    with pytest.raises(ValueError, match=f"the name of the {what} is .* such as '.*', of at most 64 characters"):
        NAMES[what](name)


@pytest.mark.parametrize("value", [-1, 0, 5])
def test_a_whole_number_is_kept(value: int) -> None:
    assert option_values.whole("attempts", value) == value


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None])
def test_a_value_that_is_not_a_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"attempts is .*; it must be a whole number"):
        option_values.whole("attempts", value)


@pytest.mark.parametrize("value", [-1, 0, 0.5, 10**300])
def test_a_number_is_kept(value: float) -> None:
    assert option_values.number("rate", value) == value


@pytest.mark.parametrize("value", [True, False, float("nan"), float("inf"), "1", None, 10**400])
def test_a_value_that_is_not_a_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"rate (is .*; it must be a number|has too many digits)"):
        option_values.number("rate", value)


@pytest.mark.parametrize("value", [0.001, 1, LONGEST_SECONDS])
def test_a_span_counts_its_units(value: float) -> None:
    assert option_values.span("lease", value, SECOND) == value * SECOND
    assert option_values.span("lease", 2, timedelta(minutes=1)) == timedelta(minutes=2)


@pytest.mark.parametrize(("value", "shortest"), [(1e-12, None), (0.000_999, None), (0.5, SECOND), (59, SECOND * 60)])
def test_a_span_that_is_too_short_says_how_long_it_must_be(value: float, shortest: timedelta | None) -> None:
    least = {} if shortest is None else {"shortest": shortest}
    said = f"lease is {value}; it must be at least {(shortest or SECOND / 1000) / SECOND:g}"
    with pytest.raises(ValueError, match=re.escape(said)):
        option_values.span("lease", value, SECOND, **least)


def test_the_error_for_a_timedelta_names_its_method() -> None:
    with pytest.raises(ValueError, match="it must be a number, such as what its method total_seconds returns"):
        option_values.number("timeout_seconds", SECOND)


@pytest.mark.parametrize("value", [-1, 0, LONGEST_SECONDS + 1])
def test_a_span_beyond_its_bounds_is_refused(value: float) -> None:
    said = f"lease is {value}; it must be positive and at most {LONGEST_SECONDS:g}"
    with pytest.raises(ValueError, match=re.escape(said)):
        option_values.span("lease", value, SECOND)
