"""The state of a metric alarm from its latest data points: M out of N, and the treatment of missing data.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

from collections.abc import Sequence
from typing import Final

from tidemill.local.alarms.definition import Missing, State

#: How many data points beyond N the evaluation range holds. AWS says that the number depends on the period, and shows 5
#: data points for an N of 3 in its examples. The tests of the alarms also try other numbers.
ADDITIONAL_POINTS: Final = 2


def judge(points: Sequence[bool | None], *, n: int, m: int, missing: Missing, current: State) -> State:
    """`points` are those of the evaluation range, oldest first: breaching, not breaching, or missing (None)."""
    present = [point for point in points if point is not None]
    if len(present) >= n:
        # "CloudWatch evaluates the alarm state based on the most recent existing data points", so one that is older
        # than N periods may count.
        return _state(sum(present[-n:]) >= m)
    breaching = sum(present)
    if missing in {Missing.BREACHING, Missing.NOT_BREACHING}:
        # "CloudWatch uses missing data points only as few times as possible."
        filled = n - len(present) if missing is Missing.BREACHING else 0
        return _state(breaching + filled >= m)
    if breaching >= m:
        return State.ALARM
    if breaching < len(present):
        return State.OK
    if missing is Missing.IGNORE:
        return current
    # All existing data points breach, but fewer than M. If the oldest is at least M periods old, the alarm fires and
    # does not wait for data that no longer comes.
    age = next((len(points) - index for index, point in enumerate(points) if point), 0)
    return State.ALARM if age >= m else State.INSUFFICIENT_DATA


def _state(breaches: bool) -> State:  # noqa: FBT001 - reads as a sentence
    return State.ALARM if breaches else State.OK
