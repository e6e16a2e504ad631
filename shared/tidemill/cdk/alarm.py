"""`Alarm`: one metric, or the sum of the messages in one queue, so that each page names exactly one fault."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from tidemill.cdk.alarm_topic import AlarmTopic
from tidemill.cdk.config import StageConfig

#: By `Alarm.fires_on_inactivity`.
COMPARISONS: Final = {
    False: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
    True: cloudwatch.ComparisonOperator.LESS_THAN_OR_EQUAL_TO_THRESHOLD,
}
MISSING_DATA: Final = {
    False: cloudwatch.TreatMissingData.NOT_BREACHING,
    True: cloudwatch.TreatMissingData.BREACHING,
}


class Heading(StrEnum):
    """Headings of the runbook, as their anchors: one for each kind of alarm."""

    DEAD_JOBS = "dead-jobs"
    LATE_JOBS = "late-jobs"
    LOST_MESSAGES = "lost-messages"
    UNDELIVERABLE_JOBS = "undeliverable-jobs"
    STRAY_THREADS = "stray-threads"
    STORE_UNAVAILABLE = "store-unavailable"
    STOPPED_CLOCK = "stopped-clock"
    MISSED_CALLS = "missed-calls"
    API_ERRORS = "api-errors"
    FUNCTION_ERRORS = "function-errors"
    FUNCTION_THROTTLES = "function-throttles"
    LATE_STREAM = "late-stream"
    UNPUBLISHED_RECORDS = "unpublished-records"
    UNREADABLE_JOBS = "unreadable-jobs"
    LATE_RECONCILE = "late-reconcile"


@dataclass(frozen=True, kw_only=True)
class Alarm:
    id: str
    heading: Heading
    #: One sentence for the operator: what happened.
    summary: str
    metric: cloudwatch.Metric | cloudwatch.MathExpression
    #: The alarm fires when the metric is greater than this, in the metric's own unit.
    above: float = 0
    #: Consecutive periods that must breach. The metric sets the length of a period.
    periods: int = 1
    #: The alarm stays on until so many periods in a row have not breached: longer than the time between two data points
    #: of one fault, so that it does not resolve and fire again and again.
    quiet_periods: int = 1
    #: The alarm fires when the metric is 0 or has no data. For all other alarms missing data means that the system is
    #: idle, which is healthy.
    fires_on_inactivity: bool = False
    #: Messages may have been lost, so the alarm calls reconcile when it fires, and again when it resolves: a message
    #: that is lost while the alarm is active does not fire it again. Never set it for an alarm that reconcile causes.
    calls_reconcile: bool = False


def add_alarms(scope: Construct, alarms: Iterable[Alarm], *, config: StageConfig, topic: AlarmTopic) -> list[str]:
    """Create the alarms. Returns the names of those that call reconcile."""
    reconciling = []
    for alarm in alarms:
        made = cloudwatch.Alarm(
            scope,
            alarm.id,
            alarm_description=f"{config.name}: {alarm.summary} What to do: {config.runbook_url}#{alarm.heading}",
            metric=alarm.metric,
            threshold=alarm.above,
            comparison_operator=COMPARISONS[alarm.fires_on_inactivity],
            # "M out of N": https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
            evaluation_periods=max(alarm.periods, alarm.quiet_periods),
            datapoints_to_alarm=alarm.periods,
            treat_missing_data=MISSING_DATA[alarm.fires_on_inactivity],
        )
        made.add_alarm_action(actions.SnsAction(topic.topic))
        if alarm.calls_reconcile:
            made.add_ok_action(actions.SnsAction(topic.topic))
            reconciling.append(made.alarm_name)
    return reconciling
