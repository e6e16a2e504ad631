"""The catalogue of alarms: metric, threshold, periods, meaning of missing data, and heading of the runbook."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs

from tidemill import names
from tidemill.cdk.alarm import Alarm, Heading
from tidemill.cdk.config import StageConfig
from tidemill.cdk.http_api import Api
from tidemill.cdk.job_function import JobFunction
from tidemill.cdk.lane import Lane
from tidemill.cdk.publisher import Publisher
from tidemill.cdk.scheduled_functions import ScheduledFunctions
from tidemill.cdk.tidemill_metric import tidemill_metric
from tidemill.names import RECONCILE_INTERVAL_SECONDS, WAKE_WINDOW_SECONDS, Metric

#: The publisher has this long to catch up. The stream keeps records for 24 hours.
LATE_STREAM: Final = Duration.minutes(5)
#: `wake` looks ahead for this long, so until then no job starts late.
WAKE_INACTIVITY: Final = Duration.seconds(WAKE_WINDOW_SECONDS)
#: Owed work that fails is counted each time it is tried, at least every 15 minutes.
QUIET_MINUTES: Final = 20
#: Three calls of reconcile.
RECONCILE_INACTIVITY: Final = Duration.seconds(3 * RECONCILE_INTERVAL_SECONDS)


def lane_alarms(lane: Lane, *, config: StageConfig) -> Iterator[Alarm]:
    name = lane.config.name
    yield Alarm(
        id=f"Deaths-{name}",
        heading=Heading.DEAD_JOBS,
        summary=f"A job of lane {name} died.",
        # Our own metric: the metrics of an idle queue come up to 15 minutes late, and a healthy DLQ is idle.
        metric=tidemill_metric(config, name, Metric.DEAD),
    )
    yield Alarm(
        id=f"StoreUnavailable-{name}",
        heading=Heading.STORE_UNAVAILABLE,
        summary=f"Workers of lane {name} cannot claim or settle jobs, so its jobs make no progress.",
        metric=tidemill_metric(config, name, Metric.UNAVAILABLE),
        # After a single lost response the retry succeeds.
        periods=3,
    )
    yield Alarm(
        id=f"DeadJobs-{name}",
        heading=Heading.DEAD_JOBS,
        summary=f"Messages wait in the dead-letter queue of lane {name}: jobs died, or SQS gave up on them.",
        # Not `NumberOfMessagesSent`: it omits the messages that SQS itself moves, and their jobs may be alive.
        metric=_messages(lane.dead_letters, config=config),
        calls_reconcile=True,
    )
    yield Alarm(
        id=f"LateJobs-{name}",
        heading=Heading.LATE_JOBS,
        summary=f"A message has waited in lane {name} for more than {lane.config.late_seconds} s.",
        metric=lane.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
        above=lane.config.late_seconds,
        periods=3,
    )
    yield Alarm(
        id=f"LostMessages-{name}",
        heading=Heading.LOST_MESSAGES,
        summary=f"Reconcile found overdue jobs of lane {name}, whose messages may be lost, and dispatched them again.",
        metric=tidemill_metric(config, name, Metric.NUDGED),
    )
    yield Alarm(
        id=f"UndeliverableJobs-{name}",
        heading=Heading.UNDELIVERABLE_JOBS,
        summary=f"Jobs of lane {name} died because no worker claimed them, although they were dispatched repeatedly.",
        metric=tidemill_metric(config, name, Metric.UNDELIVERABLE),
    )
    yield Alarm(
        id=f"StrayThreads-{name}",
        heading=Heading.STRAY_THREADS,
        # Its exit also fires `FunctionErrors`, whose other causes this alarm rules out.
        summary=f"A job of lane {name} ran on after its time was over, so its worker ended its process.",
        metric=tidemill_metric(config, name, Metric.STRAY_THREADS),
    )
    yield from function_alarms(lane.worker, of=f"-{name}")


def api_alarms(api: Api) -> Iterator[Alarm]:
    yield Alarm(
        id="ApiErrors",
        heading=Heading.API_ERRORS,
        summary="The API answers callers with 5xx errors, so jobs may not be accepted.",
        metric=api.api.metric_server_error(period=Duration.minutes(1), statistic="Sum"),
        periods=3,
    )


def publisher_alarms(publisher: Publisher) -> Iterator[Alarm]:
    yield Alarm(
        id="LateStream",
        heading=Heading.LATE_STREAM,
        summary="The publisher is more than 5 minutes behind: a record blocks the stream, or too many records arrive.",
        metric=publisher.function.function.metric(
            "IteratorAge", period=Duration.minutes(1), statistic="Maximum", unit=cloudwatch.Unit.MILLISECONDS
        ),
        above=LATE_STREAM.to_milliseconds(),
        periods=3,
    )
    yield Alarm(
        id="UnpublishedRecords",
        heading=Heading.UNPUBLISHED_RECORDS,
        summary="Lambda set aside changes of jobs that the publisher could not process.",
        metric=_messages(publisher.failures, config=publisher.config),
        calls_reconcile=True,
    )
    yield Alarm(
        id="PassedOverRecords",
        heading=Heading.UNPUBLISHED_RECORDS,
        summary="Work that the publisher could not do still fails after five minutes: some jobs or groups wait.",
        metric=tidemill_metric(publisher.config, names.Lane.DEFAULT, Metric.PASSED_OVER),
        quiet_periods=QUIET_MINUTES,
        calls_reconcile=True,
    )
    yield from function_alarms(publisher.function)


def scheduler_alarms(scheduled: ScheduledFunctions, *, config: StageConfig) -> Iterator[Alarm]:
    yield Alarm(
        id="StoppedClock",
        heading=Heading.STOPPED_CLOCK,
        summary="The function wake was not called, so scheduled jobs start late.",
        metric=scheduled.wake.function.metric_invocations(period=WAKE_INACTIVITY, statistic="Sum"),
        fires_on_inactivity=True,
    )
    yield Alarm(
        id="UnreadableJobs",
        heading=Heading.UNREADABLE_JOBS,
        summary="The deployed code cannot read some job documents, so these jobs wait.",
        # Reconcile itself counts them, so calling it again does not help.
        metric=tidemill_metric(config, names.Lane.DEFAULT, Metric.UNREADABLE),
    )
    yield Alarm(
        id="MissedCalls",
        heading=Heading.MISSED_CALLS,
        summary="A call failed at every try: a periodic job was not submitted, or reconcile did not run.",
        metric=_messages(scheduled.missed_calls, config=config),
    )
    yield Alarm(
        id="StoppedReconcile",
        heading=Heading.LATE_RECONCILE,
        summary="The function reconcile was not called, so lost messages are not found.",
        metric=scheduled.reconcile.function.metric_invocations(period=RECONCILE_INACTIVITY, statistic="Sum"),
        fires_on_inactivity=True,
    )
    yield Alarm(
        id="LateReconcile",
        heading=Heading.LATE_RECONCILE,
        summary="Reconcile takes too long to scan the jobs table, so lost messages are found late.",
        # Each run writes the age, so a shorter period would be empty between two runs and resolve the alarm.
        metric=tidemill_metric(
            config, names.Lane.DEFAULT, Metric.RECONCILE_AGE, statistic="Maximum", period=RECONCILE_INACTIVITY
        ),
        above=config.longest_reconcile_age / timedelta(milliseconds=1),
    )


def function_alarms(function: JobFunction, *, of: str = "") -> Iterator[Alarm]:
    """A handler of the engine never raises on purpose, so a single error is a crash, a timeout or a bug.

    The exception is a worker that ends its process because of a stray thread: see the alarm `StrayThreads`.
    """
    yield Alarm(
        id=f"FunctionErrors-{function.verb}{of}",
        heading=Heading.FUNCTION_ERRORS,
        summary=f"The function {function.verb} crashed or ran out of time.",
        metric=function.function.metric_errors(period=Duration.minutes(5), statistic="Sum"),
    )
    yield Alarm(
        id=f"FunctionThrottles-{function.verb}{of}",
        heading=Heading.FUNCTION_THROTTLES,
        summary=f"Lambda throttles the function {function.verb}: no concurrency is available for it.",
        metric=function.function.metric_throttles(period=Duration.minutes(5), statistic="Sum"),
        # A burst throttles while Lambda scales. Throttling that lasts means a limit.
        periods=2,
    )


def _messages(queue: sqs.Queue, *, config: StageConfig) -> cloudwatch.Metric | cloudwatch.MathExpression:
    """All messages of a queue that is empty when the system is healthy.

    A sweep, and an operator who looks at messages in the console, hide them for a while. An alarm on the visible ones
    would resolve then, and fire again.
    """
    period = Duration.minutes(1)
    visible = queue.metric_approximate_number_of_messages_visible(period=period, statistic="Maximum")
    hidden = queue.metric_approximate_number_of_messages_not_visible(period=period, statistic="Maximum")
    if not config.metric_math:
        return visible
    return cloudwatch.MathExpression(
        expression="visible + hidden", period=period, using_metrics={"visible": visible, "hidden": hidden}
    )
