"""What an alarm is here: one metric, without metric math or composites, so that a page names the one thing wrong."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from tidemill.cdk.alarm_topic import AlarmTopic
from tidemill.cdk.config import StageConfig

#: By whether the metric's silence is what rings.
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
    STORE_UNAVAILABLE = "store-unavailable"
    STOPPED_CLOCK = "stopped-clock"
    MISSED_CALLS = "missed-calls"
    API_ERRORS = "api-errors"
    FUNCTION_ERRORS = "function-errors"
    FUNCTION_THROTTLES = "function-throttles"
    LATE_STREAM = "late-stream"
    UNPUBLISHED_RECORDS = "unpublished-records"
    UNREADABLE_JOBS = "unreadable-jobs"


@dataclass(frozen=True, kw_only=True)
class Alarm:
    id: str
    heading: Heading
    #: What has happened, to somebody who was asleep.
    says: str
    metric: cloudwatch.Metric
    #: Rings when the metric is greater than this.
    above: float = 0
    #: For so many periods on end; how long a period is, the metric says.
    periods: int = 1
    #: Rings when the metric stays at 0 or away instead. All others fall silent when there is nothing to do, which is no
    #: fault.
    at_silence: bool = False
    #: Messages may have been lost, so reconcile is called, and once more when it is over: what comes while it rings
    #: rings nobody again. Never for what reconcile itself makes ring.
    reconciles: bool = False


def add_alarms(scope: Construct, alarms: Iterable[Alarm], *, config: StageConfig, topic: AlarmTopic) -> list[str]:
    """The names of those upon which reconcile is to be called."""
    reconciling = []
    for alarm in alarms:
        made = cloudwatch.Alarm(
            scope,
            alarm.id,
            alarm_description=f"{config.name}: {alarm.says} What to do: {config.runbook_url}#{alarm.heading}",
            metric=alarm.metric,
            threshold=alarm.above,
            comparison_operator=COMPARISONS[alarm.at_silence],
            evaluation_periods=alarm.periods,
            datapoints_to_alarm=alarm.periods,
            treat_missing_data=MISSING_DATA[alarm.at_silence],
        )
        made.add_alarm_action(actions.SnsAction(topic.topic))
        if alarm.reconciles:
            made.add_ok_action(actions.SnsAction(topic.topic))
            reconciling.append(made.alarm_name)
    return reconciling
