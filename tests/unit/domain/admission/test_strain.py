"""The level of strain: its setting, what it sheds, and which lanes it slows down."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.configurations import configured, strained
from tidemill.domain.admission.strain import Importance, deferral, level_of, sheds, slowdown
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.operations.runtime_configuration import NOTHING_SET
from tidemill.domain.records import replace
from tidemill.names import Lane


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_only_sheddable_types_are_shed_and_only_under_strain(level: int) -> None:
    assert sheds(Importance.SHEDDABLE, level=level) == (level > 0)
    assert not sheds(Importance.NORMAL, level=level)


@pytest.mark.parametrize(("draw", "minutes"), [(0, 5), (0.5, 10), (1, 15)])
def test_only_deferrable_types_are_deferred_by_5_to_15_minutes_and_only_under_strain(draw: float, minutes: int) -> None:
    for level in (1, 2, 3):
        assert deferral(Importance.DEFERRABLE, level=level, draw=draw) == timedelta(minutes=minutes)
    assert deferral(Importance.DEFERRABLE, level=0, draw=draw) is None
    assert deferral(Importance.NORMAL, level=3, draw=draw) is None
    assert deferral(Importance.SHEDDABLE, level=3, draw=draw) is None


@pytest.mark.parametrize(
    ("lane", "times"), [(Lane.CRITICAL, [1, 1, 1, 1]), (Lane.DEFAULT, [1, 1, 2, 4]), (Lane.BULK, [1, 2, 4, 8])]
)
def test_bulk_slows_down_first_then_default_and_critical_never(lane: Lane, times: list[int]) -> None:
    assert [slowdown(lane, level=level) for level in range(4)] == times


def test_the_level_is_in_force_until_its_end() -> None:
    setting = strained(2, until=NOW + SECOND)
    made = configured(setting)

    assert (made.strain_level(NOW), made.strain(NOW)) == (2, setting)
    assert (made.strain_level(NOW + SECOND), made.strain(NOW + SECOND)) == (0, None)
    assert NOTHING_SET.strain_level(NOW) == 0


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_an_operator_may_set_each_level(level: int) -> None:
    assert level_of(level) == level


def test_level_0_counts_as_without_strain() -> None:
    assert configured(strained(0)).strain(NOW) is None


@pytest.mark.parametrize("value", [-1, 4, 1.5, "2", True, None])
def test_another_level_is_refused(value: Any) -> None:
    with pytest.raises(InvalidSettingError, match=r"strain\.level is"):
        level_of(value)
    with pytest.raises(InvalidSettingError, match=r"strain\.level is"):
        NOTHING_SET.with_setting(replace(strained(1), value=value))


def test_a_level_of_a_newer_version_counts_as_none() -> None:
    newer = {"value": 9, "at": NOW.isoformat(), "by": "arn:ops", "reason": ""}
    made = configured(settings={"strain.level": newer})

    assert (made.strain_level(NOW), made.strain(NOW)) == (0, None)
