"""The arithmetic of a limit item: slots, reservations, rates, and the turns of parked jobs."""

import re
from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.domain.limits.limit_state import (
    AHEAD,
    MOST_AT_ONCE,
    NEAR,
    RESERVED,
    LimitState,
    Turn,
    burst,
    earliest,
    interval,
    reservation_name,
    run_name,
    slack,
)
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH
from tidemill.names import WAKE_INTERVAL_SECONDS

MICROSECOND = timedelta(microseconds=1)
TWO = Limit(concurrency=2)
EVERY_50_S = Rate(count=2, period=100 * SECOND)


def test_a_slot_is_over_from_the_instant_at_which_it_ends() -> None:
    state = LimitState(held={"past": NOW - MICROSECOND, "now": NOW, "later": NOW + MICROSECOND})

    assert state.over(NOW) == ["past", "now"]
    assert state.taken(NOW) == {"later"}


@pytest.mark.parametrize("held", [None, {}])
def test_an_item_without_slots_has_none_taken(held: dict[str, object] | None) -> None:
    state = LimitState(held=held)  # type: ignore[arg-type]  # empty

    assert (state.over(NOW), state.taken(NOW), state.reservations()) == ([], set(), 0)
    assert state.reservation_for_use("+a") is None


def test_an_item_that_was_never_written_has_no_last_job_and_no_mark() -> None:
    state = LimitState()

    assert (state.last_tenant, state.marked, state.blind) == (None, False, False)
    assert LimitState(last=("tenant", "job")).last_tenant == "tenant"
    assert Turn(reservation="+a", due=NOW).reserved is False


def test_a_released_job_has_a_minute_and_a_newcomer_waits_half_of_one_at_most() -> None:
    assert (RESERVED, NEAR) == (60 * SECOND, 30 * SECOND)


def test_a_released_job_takes_its_own_reservation_and_otherwise_one_that_waits() -> None:
    state = LimitState(held={"run": NOW, "+a": NOW, "+b": NOW})

    assert [state.reservation_for_use(name) for name in ("+a", "+b", "+c")] == ["+a", "+b", "+a"]
    assert LimitState(held={"run": NOW}).reservation_for_use("+c") is None
    assert state.reservations() == 2


def test_without_a_known_limit_as_many_jobs_follow_as_one_release_takes() -> None:
    assert LimitState(held={"run": NOW + SECOND}).turns(NOW) == [NOW] * MOST_AT_ONCE
    assert MOST_AT_ONCE == 25


@pytest.mark.parametrize(
    ("held", "leaving", "free"),
    [
        ({}, None, 2),
        ({"a": SECOND}, None, 1),
        ({"a": timedelta(0)}, None, 2),
        ({"a": SECOND, "b": SECOND}, None, 0),
        ({"a": SECOND, "b": SECOND}, "b", 1),
        ({"a": SECOND, "b": SECOND, "c": SECOND}, None, 0),
        ({"a": SECOND, "b": SECOND, "c": SECOND}, "b", 0),
    ],
)
def test_a_job_follows_for_each_slot_that_is_free_or_given_back(
    held: dict[str, timedelta], leaving: str | None, free: int
) -> None:
    state = LimitState(limit=TWO, held={name: NOW + left for name, left in held.items()})

    assert state.turns(NOW, leaving=leaving) == [NOW] * free


@pytest.mark.parametrize(
    ("arrival", "promised", "first"),
    [
        (EPOCH, EPOCH, timedelta(0)),
        (NOW, EPOCH, timedelta(0)),
        (NOW + 50 * SECOND, EPOCH, timedelta(0)),
        (NOW + 80 * SECOND, EPOCH, 30 * SECOND),
        (NOW + 80 * SECOND, NOW + 45 * SECOND, 45 * SECOND),
    ],
)
def test_a_rate_gives_one_time_for_each_interval_that_comes_soon(
    arrival: object, promised: object, first: timedelta
) -> None:
    state = LimitState(limit=Limit(rate=EVERY_50_S), arrival=arrival, promised=promised)  # type: ignore[arg-type]

    expected = [first + number * 50 * SECOND for number in range(5)]
    assert [turn - NOW for turn in state.turns(NOW)] == [after for after in expected if after <= AHEAD]


def test_the_last_time_of_a_rate_is_the_one_that_is_just_near_enough() -> None:
    state = LimitState(limit=Limit(rate=Rate(count=1, period=AHEAD)))

    assert state.turns(NOW) == [NOW, NOW + AHEAD]


def test_concurrency_and_rate_bound_the_turns_together() -> None:
    both = Limit(concurrency=2, rate=Rate(count=9, period=9 * SECOND))

    assert LimitState(limit=both, held={"a": NOW + SECOND}).turns(NOW) == [NOW]
    assert LimitState(limit=both).turns(NOW) == [NOW, NOW + SECOND]


def test_a_changed_rate_lets_parked_jobs_start_though_the_times_of_the_former_lie_far_ahead() -> None:
    day = timedelta(days=1)
    state = LimitState(limit=Limit(rate=EVERY_50_S), arrival=NOW + day, promised=NOW + 2 * day, spacing=day)

    assert state.turns(NOW) == [NOW, NOW + 50 * SECOND, NOW + 100 * SECOND]


@pytest.mark.parametrize("spacing", [None, 50 * SECOND])
def test_times_far_ahead_hold_unless_another_rate_has_set_them(spacing: timedelta | None) -> None:
    """The look at the clock may be hours old."""
    state = LimitState(arrival=NOW + timedelta(hours=1), promised=NOW + timedelta(hours=1), spacing=spacing)

    assert state.under(EVERY_50_S, NOW) == state


def test_times_that_a_changed_rate_would_set_hold() -> None:
    state = LimitState(arrival=NOW + 100 * SECOND, promised=NOW + AHEAD + 50 * SECOND, spacing=SECOND)

    assert state.under(EVERY_50_S, NOW) == state
    late = LimitState(arrival=NOW + 100 * SECOND + MICROSECOND, promised=state.promised + MICROSECOND, spacing=SECOND)
    assert late.under(EVERY_50_S, NOW) == replace(late, arrival=NOW + 50 * SECOND, promised=NOW)


def test_an_interval_is_rounded_up_so_that_rounding_never_adds_a_run() -> None:
    thirds = Rate(count=3, period=10 * SECOND)

    assert interval(thirds) == timedelta(microseconds=3_333_334)
    assert interval(Rate(count=4, period=10 * SECOND)) == timedelta(seconds=2.5)
    assert interval(Rate(count=3, period=20 * SECOND)) == timedelta(microseconds=6_666_667)
    assert burst(thirds) == 2 * interval(thirds)
    assert burst(Rate(count=1, period=SECOND)) == timedelta(0)


def test_a_rate_lets_a_run_start_a_burst_before_its_arrival_time_and_at_once_if_none_has_used_it() -> None:
    assert earliest(EVERY_50_S, NOW) == NOW - 50 * SECOND
    assert earliest(EVERY_50_S, EPOCH) == EPOCH


@pytest.mark.parametrize(
    ("period", "expected"),
    [(SECOND / 10, SECOND / 20), (SECOND, SECOND / 2), (2 * SECOND, SECOND), (3 * SECOND, SECOND)],
)
def test_a_job_may_start_half_an_interval_sooner_and_at_most_a_second(period: timedelta, expected: timedelta) -> None:
    assert slack(Rate(count=10, period=10 * period)) == expected


def test_names_are_short_and_tell_slots_apart() -> None:
    names = [run_name("token"), run_name("other"), reservation_name("a", "b"), reservation_name("a", "c")]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w-]{8}", name) for name in names[:2])
    assert all(re.fullmatch(r"\+[\w-]{8}", name) for name in names[2:])
    assert run_name("token") == names[0]


def test_wake_releases_jobs_for_later_times_than_a_newcomer_takes_until_its_next_call() -> None:
    """So a newcomer finds the near times taken while anybody is parked, and does not overtake."""
    assert NEAR + timedelta(seconds=WAKE_INTERVAL_SECONDS) < AHEAD
