"""When the level of strain rises and falls."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import configured
from tidemill.domain.admission.governor import (
    EXPIRES_AFTER,
    FALLS_AFTER,
    GOVERNOR_SETTING,
    WINDOW,
    Governed,
    Starts,
    changed,
    in_force,
    minute_begins,
    next_level,
)
from tidemill.domain.admission.strain import HIGHEST_LEVEL
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.operations.runtime_configuration import NOTHING_SET
from tidemill.domain.operations.setting import Setting
from tidemill.domain.records import replace

LATE = Governed(starts=Starts(late=5, total=20), window_from=NOW - SECOND)
#: Raised a second ago, and late since.
RAISED = replace(LATE, level=1, since=NOW - SECOND, minute=LATE.starts, minute_from=NOW - SECOND)
#: Each minute of it is counted from `NOW`.
LASTING = Governed(level=3, since=NOW, minute_from=NOW)


def test_late_starts_raise_the_level_at_once() -> None:
    assert next_level(LATE, now=NOW) == 1


@pytest.mark.parametrize(
    "starts",
    [Starts(late=4, total=4), Starts(late=5, total=50), Starts(late=0, total=900)],
    ids=["few", "rare", "none"],
)
def test_a_few_late_starts_raise_nothing(starts: Starts) -> None:
    assert next_level(replace(LATE, starts=starts), now=NOW) == 0


def test_the_starts_of_a_past_window_raise_nothing() -> None:
    assert next_level(replace(LATE, window_from=NOW - WINDOW), now=NOW) == 0


def test_each_level_gets_a_window_to_act() -> None:
    assert next_level(RAISED, now=NOW) == 1
    assert next_level(RAISED, now=RAISED.since + WINDOW - SECOND / 10) == 1
    late_still = replace(RAISED, window_from=RAISED.since + WINDOW)
    assert next_level(late_still, now=RAISED.since + WINDOW) == 2
    assert next_level(replace(late_still, level=HIGHEST_LEVEL), now=RAISED.since + WINDOW) == HIGHEST_LEVEL


def test_the_starts_of_the_minute_before_a_fall_tell_the_share_of_late_ones_for_ten_minutes() -> None:
    # 600 starts in 60 seconds are 100 in a window.
    fell = changed(replace(LASTING, level=1, minute=Starts(late=6, total=600)), 0, now=NOW + FALLS_AFTER)
    few_report = replace(fell, starts=Starts(late=10, total=10), window_from=fell.since + 9 * WINDOW)
    more = replace(few_report, starts=Starts(late=11, total=11))

    assert (fell.usual, fell.level) == (100, 0)
    assert next_level(few_report, now=fell.since + 9 * WINDOW) == 0
    assert next_level(more, now=fell.since + 9 * WINDOW) == 1
    assert next_level(few_report, now=fell.since + timedelta(minutes=10) - SECOND) == 0
    later = fell.since + timedelta(minutes=10)
    assert next_level(replace(few_report, window_from=later), now=later) == 1


def test_from_the_first_level_on_all_processes_report_so_their_own_starts_tell_the_share() -> None:
    late = replace(LATE, level=1, since=NOW - 2 * WINDOW, minute_from=NOW - 2 * WINDOW, usual=100)

    assert next_level(late, now=NOW) == 2


def test_counts_of_starts_add_up() -> None:
    assert Starts(late=1, total=5) + Starts(late=2, total=30) == Starts(late=3, total=35)


def test_a_minute_that_lasted_two_counts_half_of_its_starts() -> None:
    fell = changed(replace(LASTING, minute=Starts(total=600)), 2, now=NOW + 2 * FALLS_AFTER)
    assert (fell.usual, changed(fell, 3, now=NOW + 3 * FALLS_AFTER).usual) == (50, 50)


def test_a_rise_from_an_expired_level_names_the_starts_that_raised_it() -> None:
    later = NOW + EXPIRES_AFTER
    expired = replace(LASTING, starts=LATE.starts, window_from=NOW)
    assert changed(expired, 1, now=later).raised_by == LATE.starts


def test_the_level_falls_one_by_one_after_a_calm_minute() -> None:
    assert next_level(LASTING, now=NOW + FALLS_AFTER - SECOND) == 3
    assert next_level(LASTING, now=NOW + FALLS_AFTER) == 2
    fallen = replace(LASTING, level=2, since=NOW + FALLS_AFTER)
    assert next_level(fallen, now=NOW + FALLS_AFTER + SECOND) == 2


@pytest.mark.parametrize(("late", "level"), [(0, 2), (1, 2), (19, 2), (20, 3), (1000, 3)])
def test_the_starts_of_all_processes_decide_whether_a_minute_was_calm(late: int, level: int) -> None:
    counted = replace(LASTING, minute=Starts(late=late, total=1000))

    assert next_level(counted, now=NOW + FALLS_AFTER) == level


def test_a_minute_follows_each_minute_that_was_not_calm() -> None:
    counted = replace(LASTING, minute=Starts(late=1, total=1))
    begins = {seconds: minute_begins(counted, now=NOW + seconds * SECOND) for seconds in (-60, -59, 0, 59, 60)}

    assert begins == {-60: True, -59: False, 0: False, 59: False, 60: True}
    assert not minute_begins(replace(counted, level=0), now=NOW + FALLS_AFTER)


@pytest.mark.parametrize("skew", [-30, 30])
def test_a_clock_that_differs_by_half_a_minute_lowers_no_level_while_starts_are_late(skew: int) -> None:
    now = NOW + skew * SECOND
    for passed in range(0, 180, 10):
        late = replace(LASTING, minute=Starts(late=5, total=20))
        assert next_level(late, now=now + passed * SECOND) == 3


@pytest.mark.parametrize("name", ["since", "window_from", "minute_from"])
def test_a_level_that_was_not_governed_for_five_minutes_is_in_force_no_more(name: str) -> None:
    past: dict[str, Any] = {name: NOW}
    old = Governed(level=3, minute=Starts(late=9, total=9), **past)

    after = NOW + timedelta(minutes=5)
    assert in_force(old, now=after - SECOND) == 3
    assert in_force(old, now=after) == next_level(old, now=after) == 0
    assert in_force(old, now=NOW - timedelta(hours=1)) == 3


def test_an_expired_level_rises_from_the_first_step_on() -> None:
    expired = replace(LATE, level=3, window_from=NOW - EXPIRES_AFTER, starts=Starts())
    assert next_level(expired, now=NOW) == 0
    late = replace(RAISED, level=0, since=NOW - WINDOW)
    assert next_level(late, now=NOW) == 1


def test_a_clock_that_is_a_little_behind_changes_nothing() -> None:
    assert next_level(RAISED, now=NOW - FALLS_AFTER / 2) == 1


def test_a_clock_that_was_far_ahead_keeps_no_level() -> None:
    ahead = NOW + timedelta(hours=1)
    written = Governed(level=2, since=ahead, window_from=ahead, minute_from=ahead)

    assert minute_begins(written, now=NOW)
    calm = replace(written, minute_from=NOW)
    assert next_level(calm, now=NOW + FALLS_AFTER) == 1
    late = replace(calm, starts=Starts(late=5, total=20), window_from=NOW)
    assert next_level(late, now=NOW) == 3


@pytest.mark.parametrize(("ahead", "level"), [(FALLS_AFTER - SECOND, 1), (FALLS_AFTER, 2)])
def test_a_change_that_lies_a_minute_ahead_does_not_count(ahead: timedelta, level: int) -> None:
    late = Governed(level=1, since=NOW + ahead, minute_from=NOW, window_from=NOW, starts=Starts(late=5, total=20))

    assert next_level(late, now=NOW) == level


def test_a_change_counts_and_begins_to_count_starts_anew() -> None:
    seen = replace(RAISED, version=3, raised_by=Starts(late=7, total=9), usual=8)
    risen = changed(seen, 2, now=NOW)

    assert risen == Governed(
        level=2, since=NOW, window_from=NOW, minute_from=NOW, raised_by=RAISED.starts, usual=8, version=4
    )
    assert changed(risen, 1, now=NOW).raised_by == RAISED.starts


def test_the_end_of_an_expired_level_keeps_the_starts_that_raised_it() -> None:
    expired = replace(LASTING, starts=LATE.starts, raised_by=Starts(late=7, total=9))

    assert changed(expired, 0, now=NOW + EXPIRES_AFTER).raised_by == Starts(late=7, total=9)


def test_a_level_that_was_never_set_knows_nothing() -> None:
    assert Governed() == Governed(level=0, starts=Starts(late=0, total=0), usual=0, version=0)


def test_a_count_is_calm_with_less_than_one_late_start_in_fifty() -> None:
    assert [Starts(late=late, total=100).calm for late in (0, 1, 2)] == [True, True, False]


def _setting(value: Any) -> Setting:
    return Setting(name=GOVERNOR_SETTING, value=value, at=NOW, by="arn:ops", reason="", until=NOW + SECOND)


def test_an_operator_switches_the_governor_off_for_a_while() -> None:
    made = configured(_setting({"off": True}))

    assert [made.governor_is_off(at) for at in (NOW, NOW + SECOND)] == [True, False]
    assert not configured(_setting({"off": False})).governor_is_off(NOW)
    assert not NOTHING_SET.governor_is_off(NOW)


@pytest.mark.parametrize("value", [True, {}, {"off": 1}, {"off": True, "on": False}, None])
def test_another_value_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSettingError, match="governor is"):
        NOTHING_SET.with_setting(_setting(value))


def test_a_value_of_a_newer_version_leaves_the_governor_on() -> None:
    newer = {"value": {"off": "maybe"}, "at": NOW.isoformat(), "by": "arn:ops", "reason": ""}

    assert not configured(settings={GOVERNOR_SETTING: newer}).governor_is_off(NOW)
