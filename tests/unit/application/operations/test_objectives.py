"""The burn rates of the objectives: how much of the budget an alarm lets go, and how soon it resolves."""

from datetime import timedelta

import pytest

from tidemill.application.operations.objectives import (
    BAD_EVENTS,
    ERROR_BUDGET,
    FAST_BURN,
    LATE_START,
    LEAST_BAD_EVENTS,
    SLOW_BURN,
    Burn,
    burn_rate,
)

_BUDGETED = timedelta(days=30)


@pytest.mark.parametrize(("burn", "hours", "budget_spent"), [(FAST_BURN, 1, 0.02), (SLOW_BURN, 6, 0.05)])
def test_an_alarm_fires_once_its_part_of_the_budget_is_spent(burn: Burn, hours: int, budget_spent: float) -> None:
    assert burn.long == timedelta(hours=hours)
    assert burn.rate * (burn.long / _BUDGETED) == pytest.approx(budget_spent)


@pytest.mark.parametrize("burn", [FAST_BURN, SLOW_BURN])
def test_an_alarm_resolves_after_a_twelfth_of_its_window(burn: Burn) -> None:
    """The workbook of Google advises this."""
    assert burn.short == burn.long / 12


def test_a_rate_of_one_spends_the_whole_budget_of_a_thousandth() -> None:
    assert ERROR_BUDGET == 0.001
    # To six decimals, as a tool shows it.
    assert (burn_rate(0.0333333333333), Burn(1 / 3, LATE_START, LATE_START).bad_percent) == (0.333333, 0.033333)
    assert burn_rate(0.1) == 1
    assert [each.bad_percent for each in (FAST_BURN, SLOW_BURN)] == [1.44, 0.6]
    assert [burn_rate(each.bad_percent) for each in (FAST_BURN, SLOW_BURN)] == [FAST_BURN.rate, SLOW_BURN.rate]


def test_a_run_is_late_a_minute_after_its_time() -> None:
    assert timedelta(minutes=1) == LATE_START


def test_a_burn_rate_needs_five_bad_events_of_a_kind_that_the_runbook_names() -> None:
    assert LEAST_BAD_EVENTS == 5
    assert BAD_EVENTS == {
        "failed-submissions": "failed submissions",
        "late-starts": "late starts of the lane critical",
    }
