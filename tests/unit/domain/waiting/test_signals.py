"""Signals and the waits for them: which waits count in a row, which signal a run may take, and what a name may be."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW
from tidemill.domain.waiting.signals import Awaited, Signal, is_name, next_wait, same_json, unused, with_used
from tidemill.domain.waiting.waiting import Cause

MINUTE = timedelta(minutes=1)
LAST = Awaited(cause=Cause.INPUT, name="address", since=NOW - MINUTE, until=NOW, times=2)
GREEN, RED = (Signal(name="colour", at=NOW, data=f'"{text}"', used=text == "red") for text in ("green", "red"))
OTHER = Signal(name="size", at=NOW, data="7")


@pytest.mark.parametrize(
    ("last", "cause", "name", "times"),
    [
        (None, Cause.INPUT, "address", 1),
        (LAST, Cause.INPUT, "address", 3),
        (LAST, Cause.INPUT, "telephone", 1),
        (LAST, Cause.SIGNAL, "address", 1),
    ],
)
def test_waits_count_in_a_row_while_they_are_for_the_same(
    last: Awaited | None, cause: Cause, name: str, times: int
) -> None:
    awaited = Awaited(cause=cause, name=name, since=NOW, until=NOW + MINUTE, times=times)
    assert next_wait(last, cause, name, after=MINUTE, now=NOW) == awaited


def test_a_run_may_take_a_signal_that_none_has_used() -> None:
    assert unused((RED, OTHER, GREEN), "colour") == GREEN
    assert unused((RED, OTHER), "colour") is None


def test_a_signal_that_a_run_has_used_stays_used() -> None:
    kept = with_used((RED, GREEN, OTHER), "size")
    assert [(signal.data, signal.used) for signal in kept] == [('"red"', True), ('"green"', False), ("7", True)]


@pytest.mark.parametrize("name", ["a", "0", "a_.-", "x" * 32])
def test_a_name_may_be_so(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "A", "-a", ".a", "x" * 33, "a b", "é", "a\n", None, 7])
def test_a_name_may_not_be_so(name: object) -> None:
    assert not is_name(name)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [('{"a":1,"b":[2]}', '{"b": [2], "a": 1}', True), ("[1,2]", "[2,1]", False), ("1", "1", True), ('"1"', "1", False)],
)
def test_the_order_of_members_does_not_count(one: str, other: str, *, same: bool) -> None:
    assert same_json(one, other) is same
