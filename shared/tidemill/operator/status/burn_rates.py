"""How fast the error budgets are spent now: the values of the metric math that the alarms on burn rates judge.

The deployed alarms hold the expressions, so the numbers here are those that fire them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from tidemill.application.operations.objectives import BAD_EVENTS, burn_rate
from tidemill.aws.clients import POOL_SIZE, translated
from tidemill.operator.status.alarm_states import Alarms, AlarmState

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRate:
    """The burn rate of one objective over one window."""

    #: What is counted.
    bad_events: str
    window: timedelta
    #: 1 spends the budget of 30 days in 30 days. None without any event.
    rate: float | None
    #: The alarm of this window fires above this rate.
    fires_above: float


def read(client: "CloudWatchClient", alarms: Alarms, *, now: datetime) -> tuple[BurnRate, ...]:
    """By objective, then by window. Empty if the installation has no such alarms."""
    judging = [alarm for alarm in alarms.by_name.values() if alarm.heading in BAD_EVENTS and alarm.queries]
    with ThreadPoolExecutor(POOL_SIZE) as pool:
        found = pool.map(partial(_burn_rate, client, now=now), judging)
    return tuple(sorted(found, key=lambda burn: (burn.bad_events, burn.window)))


def _burn_rate(client: "CloudWatchClient", alarm: AlarmState, *, now: datetime) -> BurnRate:
    window = _period(alarm.queries)
    end = now.replace(second=0, microsecond=0)
    with translated():
        # One data point: it begins at the start time, of which CloudWatch also drops the seconds.
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
        answer = client.get_metric_data(
            MetricDataQueries=alarm.queries, StartTime=end - window, EndTime=end, ScanBy="TimestampDescending"
        )
    values = [value for result in answer["MetricDataResults"] for value in result["Values"]]
    return BurnRate(
        bad_events=BAD_EVENTS[alarm.heading],
        window=window,
        rate=burn_rate(values[0]) if values else None,
        fires_above=burn_rate(alarm.threshold),
    )


def _period(queries: Sequence[Any]) -> timedelta:
    """The metrics of one alarm have one period."""
    return timedelta(seconds=next(query["MetricStat"]["Period"] for query in queries if "MetricStat" in query))
