"""The service level objectives that alarms guard, and the burn rates at which they fire. Pure."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Objective(StrEnum):
    """Over 30 days each."""

    #: Counted by item: each submission of a batch request is one.
    SUBMISSIONS = "99.9 % of the submissions are accepted, or refused for a fault of their caller"
    STARTS = "99.9 % of the runs on the lane critical begin within a minute of their due time"
    #: It has no error budget.
    ENDS = "every accepted job ends"


#: What the burn rates count, by the heading of the runbook that their alarms name.
BAD_EVENTS: Final = {"failed-submissions": "failed submissions", "late-starts": "late starts of the lane critical"}
#: The part of the events that an objective with a budget allows to be bad.
ERROR_BUDGET: Final = 0.001
#: A run on the lane critical that begins later than this after its due time is bad.
LATE_START: Final = timedelta(minutes=1)
#: With fewer bad events in a window, no burn rate is computed. One failure among few events would look like an outage.
#: https://sre.google/workbook/alerting-on-slos/, "Low-Traffic Services and Error Budget Alerting"
LEAST_BAD_EVENTS: Final = 5


class Burn(Struct, frozen=True):
    """The budget is spent at `rate` times the speed that would use it up in 30 days.

    Both windows must show it: the long one so that the loss matters, and the short one so that the alarm resolves soon
    after the fault has ended. https://sre.google/workbook/alerting-on-slos/, "Multiwindow, Multi-Burn-Rate Alerts"
    """

    rate: float
    long: timedelta
    short: timedelta

    @property
    def bad_percent(self) -> float:
        """The part of the events, in percent, that is bad at this rate."""
        return round(100 * self.rate * ERROR_BUDGET, 6)


def burn_rate(bad_percent: float) -> float:
    """The rate at which so many percent of the events are bad: the inverse of `Burn.bad_percent`."""
    return round(bad_percent / (100 * ERROR_BUDGET), 6)


#: 2 % of the budget in an hour.
FAST_BURN: Final = Burn(14.4, timedelta(hours=1), timedelta(minutes=5))
#: 5 % of the budget in six hours.
SLOW_BURN: Final = Burn(6, timedelta(hours=6), timedelta(minutes=30))
