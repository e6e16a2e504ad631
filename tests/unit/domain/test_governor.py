"""When the level of strain rises and falls."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import configured
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.governor import FALLS_AFTER, GOVERNOR_SETTING, WINDOW, Governed, Starts, next_level
from tidemill.domain.runtime_configuration import NOTHING_SET
from tidemill.domain.setting import Setting
from tidemill.domain.strain import HIGHEST_LEVEL

LATE = Governed(starts=Starts(late=5, total=20), window_from=NOW - SECOND, troubled_at=NOW)
#: Raised a second ago, and late since.
RAISED = replace(LATE, level=1, since=NOW - SECOND)


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


def test_the_level_falls_one_by_one_after_a_calm_minute() -> None:
    calm = replace(RAISED, level=3, starts=Starts(), troubled_at=NOW)
    assert next_level(calm, now=NOW + FALLS_AFTER - SECOND) == 3
    assert next_level(calm, now=NOW + FALLS_AFTER) == 2
    assert next_level(replace(calm, level=2, since=NOW + FALLS_AFTER), now=NOW + FALLS_AFTER + SECOND) == 2


def test_a_clock_that_is_a_little_behind_changes_nothing() -> None:
    assert next_level(RAISED, now=NOW - FALLS_AFTER / 2) == 1


@pytest.mark.parametrize("name", ["since", "troubled_at"])
def test_a_clock_that_was_far_ahead_does_not_keep_the_level(name: str) -> None:
    calm = Governed(level=2, since=NOW - FALLS_AFTER, troubled_at=NOW - FALLS_AFTER)
    ahead: dict[str, Any] = {name: NOW + timedelta(hours=1)}

    assert next_level(replace(calm, **ahead), now=NOW) == 1


def test_a_report_is_calm_with_less_than_one_late_start_in_fifty() -> None:
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
