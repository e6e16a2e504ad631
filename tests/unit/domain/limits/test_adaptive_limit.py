"""The rule of adaptive concurrency, by itself and in a loop with a downstream of a known capacity."""

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND
from tidemill.domain.limits.adaptive_limit import (
    DECREASE,
    Adapted,
    Adaptive,
    ConcurrencyChange,
    RunSample,
    Trouble,
    change_after,
    changed,
)
from tidemill.domain.records import replace

#: In seconds.
DAY = 86_400
BOUNDS = Adaptive(floor=2, ceiling=20, target_seconds=1)
#: It has fallen once, long ago.
TEN = Adapted(allowed=10.0, falls=1, fell_at=NOW - timedelta(minutes=1), why=Trouble.SLOW)


def a_sample(**changes: Any) -> RunSample:
    given: dict[str, Any] = {"entered": TEN, "taken": 10, "seconds": 0.5}
    return RunSample(**given | changes)


def after(sample: RunSample | None, present: Adapted | None = TEN) -> ConcurrencyChange | None:
    return change_after(BOUNDS, present, sample, now=NOW)


def test_a_good_run_adds_its_share_of_one_so_that_a_round_adds_one() -> None:
    assert after(a_sample()) == ConcurrencyChange(step=0.1, sample=a_sample())


def test_until_the_first_decrease_each_good_run_adds_one() -> None:
    sample = a_sample(entered=replace(TEN, falls=0))

    assert after(sample) == ConcurrencyChange(step=1.0, sample=sample)


@pytest.mark.parametrize(("taken", "rises"), [(4, False), (5, True)])
def test_a_number_rises_only_while_half_of_it_is_in_use(taken: int, *, rises: bool) -> None:
    assert (after(a_sample(taken=taken)) is not None) is rises


def test_it_does_not_rise_at_the_ceiling() -> None:
    assert after(a_sample(entered=replace(TEN, allowed=20.3), taken=20)) is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"seconds": 1.01}, Trouble.SLOW),
        ({"trouble": Trouble.THROTTLED}, Trouble.THROTTLED),
        ({"trouble": Trouble.TIMEOUT, "seconds": 9}, Trouble.TIMEOUT),
    ],
)
def test_a_bad_run_lowers_it_to_a_share_of_what_the_run_found(changes: dict[str, Any], why: Trouble) -> None:
    change = after(a_sample(**changes), replace(TEN, allowed=12.0))

    assert change is not None
    assert change.lowered == Adapted(allowed=10 * DECREASE, falls=2, fell_at=NOW, why=why)


def test_a_run_as_long_as_the_target_is_good() -> None:
    assert after(a_sample(seconds=1.0)) is not None
    assert after(a_sample(seconds=1.0)) == ConcurrencyChange(step=0.1, sample=a_sample(seconds=1.0))


def test_only_a_run_that_entered_after_the_last_decrease_lowers_it_again() -> None:
    assert after(a_sample(seconds=9), replace(TEN, allowed=7.0, falls=2)) is None


@pytest.mark.parametrize(
    ("ago", "falls"),
    [
        (SECOND - MILLISECOND, False),
        (SECOND, True),
        # The clock of the process that lowered it is ahead.
        (MILLISECOND - SECOND, False),
        (-SECOND, True),
    ],
)
def test_it_falls_once_a_second(ago: timedelta, *, falls: bool) -> None:
    present = replace(TEN, fell_at=NOW - ago)

    assert (after(a_sample(seconds=9, entered=present), present) is not None) is falls


def test_it_keeps_its_floor() -> None:
    low, floor = replace(TEN, allowed=2.5), replace(TEN, allowed=2.0)

    change = after(a_sample(seconds=9, entered=low), low)

    assert change is not None
    assert change.lowered is not None
    assert change.lowered.allowed == BOUNDS.floor
    assert after(a_sample(seconds=9, entered=floor), floor) is None


def test_it_begins_at_its_floor_which_is_one_unless_the_type_says_otherwise() -> None:
    assert BOUNDS.begin() == Adapted(allowed=2.0, falls=0, fell_at=None, why=None)
    assert Adaptive(ceiling=20, target_seconds=1).slots(None) == 1


def test_nothing_is_changed_without_a_sample_or_a_number() -> None:
    assert after(None) is None
    assert after(a_sample(), None) is None


def test_the_slots_lie_within_bounds_that_may_have_changed() -> None:
    assert [BOUNDS.slots(replace(TEN, allowed=allowed)) for allowed in (1.0, 2.0, 2.1, 20.5)] == [2, 2, 3, 20]
    assert BOUNDS.slots(None) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"floor": 0}, "floor is 0 and ceiling 20; they must satisfy 1 <= floor <= ceiling <= 100"),
        ({"floor": 21}, "floor is 21 and ceiling 20"),
        ({"floor": 1.0}, "floor is 1.0; it must be a whole number"),
        ({"floor": True}, "floor is True; it must be a whole number"),
        ({"ceiling": 101}, "ceiling 101"),
        ({"ceiling": 2.5}, "ceiling is 2.5; it must be a whole number"),
        ({"target_seconds": 0}, "target_seconds is 0; it must be positive"),
        ({"target_seconds": 366 * DAY + 1}, "it must be positive and at most 3.16224e+07"),
        ({"target_seconds": "1"}, "target_seconds is '1'; it must be a number"),
    ],
)
def test_wrong_bounds_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Adaptive(**{"floor": 2, "ceiling": 20, "target_seconds": 1} | wrong)


@pytest.mark.parametrize(
    "bounds",
    [
        {"floor": 1},
        {"floor": 20},
        {"ceiling": 2},
        {"ceiling": 100},
        {"target_seconds": 0.001},
        {"target_seconds": 366 * DAY},
    ],
)
def test_bounds_may_be_as_wide_and_as_narrow_as_this(bounds: dict[str, Any]) -> None:
    made = Adaptive(**{"floor": 2, "ceiling": 20, "target_seconds": 1} | bounds)

    assert made.slots(None) == made.floor


def in_a_loop(capacity: int, *, rounds: int, start: Adapted | None = None) -> list[float]:
    """The numbers of rounds in which each slot has one run. Above its capacity, the downstream takes longer."""
    adapted, numbers = start or BOUNDS.begin(), []
    for number in range(rounds):
        entered, runs = adapted, BOUNDS.slots(adapted)
        for _ in range(runs):
            sample = RunSample(entered=entered, taken=runs, seconds=0.8 * max(runs / capacity, 1))
            adapted = changed(adapted, change_after(BOUNDS, adapted, sample, now=NOW + number * SECOND))
        numbers.append(adapted.allowed)
    return numbers


@pytest.mark.parametrize("capacity", [4, 8, 12])
def test_it_finds_the_capacity_and_stays_around_it(capacity: int) -> None:
    """0.8 s at the capacity, so the target of 1 s is passed at a quarter more."""
    settled = in_a_loop(capacity, rounds=200)[20:]

    assert max(settled) <= 1.25 * capacity + 2
    assert min(settled) >= DECREASE * capacity
    assert sum(settled) / len(settled) >= 0.9 * capacity


def test_a_capacity_that_drops_is_followed_within_a_few_rounds() -> None:
    fast = in_a_loop(16, rounds=50)[-1]

    slow = in_a_loop(4, rounds=8, start=Adapted(allowed=fast, falls=3, fell_at=NOW - SECOND))

    assert slow[-1] <= 1.25 * 4 + 1


def test_it_reaches_the_ceiling_of_a_downstream_that_is_never_slow() -> None:
    assert BOUNDS.slots(Adapted(allowed=in_a_loop(1_000, rounds=6)[-1])) == BOUNDS.ceiling
