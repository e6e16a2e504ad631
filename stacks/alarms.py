"""The catalogue of alarms: what rings, when, what silence means, and where the runbook says what to do.

Alarms are of one metric each, without metric math or composites: a page names the one thing that is wrong.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from shared.names import Metric
from stacks.alarm_topic import AlarmTopic
from stacks.api import Api
from stacks.config import StageConfig
from stacks.job_function import JobFunction
from stacks.lane import Lane
from stacks.own_metric import own_metric
from stacks.publisher import Publisher

#: The publisher has this long to catch up; the stream forgets after a day.
LATE_STREAM = Duration.minutes(5)


class Heading(StrEnum):
    """Headings of the runbook, as their anchors: one for each kind of alarm."""

    DEAD_JOBS = "dead-jobs"
    LATE_JOBS = "late-jobs"
    STORE_UNAVAILABLE = "store-unavailable"
    API_ERRORS = "api-errors"
    FUNCTION_ERRORS = "function-errors"
    FUNCTION_THROTTLES = "function-throttles"
    LATE_STREAM = "late-stream"
    UNPUBLISHED_RECORDS = "unpublished-records"


@dataclass(frozen=True, kw_only=True)
class Alarm:
    id: str
    heading: Heading
    #: What has happened, to somebody who was asleep.
    says: str
    metric: cloudwatch.Metric
    #: Rings when the metric is greater than this.
    above: float
    #: For so many periods on end; how long a period is, the metric says.
    periods: int
    #: All of these metrics fall silent when there is nothing to do, which is no fault.
    silence: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING


def lane_alarms(lane: Lane, *, config: StageConfig) -> Iterator[Alarm]:
    name = lane.config.name
    yield Alarm(
        id=f"Deaths-{name}",
        heading=Heading.DEAD_JOBS,
        says=f"A job of lane {name} has just died.",
        # Our own, since the metrics of an idle queue come up to 15 minutes late, and a healthy one of letters is idle.
        metric=own_metric(config, name, Metric.DEAD),
        above=0,
        periods=1,
    )
    yield Alarm(
        id=f"StoreUnavailable-{name}",
        heading=Heading.STORE_UNAVAILABLE,
        says=f"Workers of lane {name} cannot claim or settle jobs.",
        metric=own_metric(config, name, Metric.UNAVAILABLE),
        above=0,
        # A single lost answer mends itself.
        periods=3,
    )
    yield Alarm(
        id=f"DeadJobs-{name}",
        heading=Heading.DEAD_JOBS,
        says=f"Jobs of lane {name} are dead and wait in its dead-letter queue.",
        # Not the number sent: that leaves out the messages which SQS itself moves.
        metric=lane.letters.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(1), statistic="Maximum"
        ),
        above=0,
        periods=1,
    )
    yield Alarm(
        id=f"LateJobs-{name}",
        heading=Heading.LATE_JOBS,
        says=f"A job has been waiting in lane {name} for more than {lane.config.late_seconds} s.",
        metric=lane.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
        above=lane.config.late_seconds,
        periods=3,
    )
    yield from function_alarms(lane.worker, of=f"-{name}")


def api_alarms(api: Api) -> Iterator[Alarm]:
    yield Alarm(
        id="ApiErrors",
        heading=Heading.API_ERRORS,
        says="Callers are answered with errors that are our fault, so jobs may not get in.",
        metric=api.api.metric_server_error(period=Duration.minutes(1), statistic="Sum"),
        above=0,
        periods=3,
    )


def publisher_alarms(publisher: Publisher) -> Iterator[Alarm]:
    yield Alarm(
        id="LateStream",
        heading=Heading.LATE_STREAM,
        says="Changes of jobs are published late: a record blocks the stream, or there are too many.",
        metric=publisher.function.function.metric(
            "IteratorAge", period=Duration.minutes(1), statistic="Maximum", unit=cloudwatch.Unit.MILLISECONDS
        ),
        above=LATE_STREAM.to_milliseconds(),
        periods=3,
    )
    yield Alarm(
        id="UnpublishedRecords",
        heading=Heading.UNPUBLISHED_RECORDS,
        says="Changes of jobs could not be published and were set aside.",
        metric=publisher.failures.metric_approximate_number_of_messages_visible(
            period=Duration.minutes(1), statistic="Maximum"
        ),
        above=0,
        periods=1,
    )
    yield from function_alarms(publisher.function)


def function_alarms(function: JobFunction, *, of: str = "") -> Iterator[Alarm]:
    """A handler of ours answers rather than raises, so one error is one too many: a crash, a timeout or a mistake."""
    yield Alarm(
        id=f"FunctionErrors-{function.verb}{of}",
        heading=Heading.FUNCTION_ERRORS,
        says=f"The function {function.verb} crashed or ran out of time.",
        metric=function.function.metric_errors(period=Duration.minutes(5), statistic="Sum"),
        above=0,
        periods=1,
    )
    yield Alarm(
        id=f"FunctionThrottles-{function.verb}{of}",
        heading=Heading.FUNCTION_THROTTLES,
        says=f"The function {function.verb} is being refused concurrency.",
        metric=function.function.metric_throttles(period=Duration.minutes(5), statistic="Sum"),
        above=0,
        # A burst throttles while Lambda scales; what lasts is a limit.
        periods=2,
    )


def add_alarms(scope: Construct, alarms: Iterable[Alarm], *, config: StageConfig, topic: AlarmTopic) -> None:
    for alarm in alarms:
        cloudwatch.Alarm(
            scope,
            alarm.id,
            alarm_description=f"{config.name}: {alarm.says} What to do: {config.runbook_url}#{alarm.heading}",
            metric=alarm.metric,
            threshold=alarm.above,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            evaluation_periods=alarm.periods,
            datapoints_to_alarm=alarm.periods,
            treat_missing_data=alarm.silence,
        ).add_alarm_action(actions.SnsAction(topic.topic))
