"""The catalogue of alarms: what rings, when, what silence means, and where the runbook says what to do."""

from collections.abc import Iterator
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
from tidemill.cdk.tidemill_metric import own_metric
from tidemill.names import WAKE_WINDOW_SECONDS, Metric

#: The publisher has this long to catch up; the stream forgets after a day.
LATE_STREAM: Final = Duration.minutes(5)
#: The clock looks ahead for as long, so until then nobody has been woken late.
STOPPED_CLOCK: Final = Duration.seconds(WAKE_WINDOW_SECONDS)


def lane_alarms(lane: Lane, *, config: StageConfig) -> Iterator[Alarm]:
    name = lane.config.name
    yield Alarm(
        id=f"Deaths-{name}",
        heading=Heading.DEAD_JOBS,
        says=f"A job of lane {name} has just died.",
        # Our own, since the metrics of an idle queue come up to 15 minutes late, and a healthy one of letters is idle.
        metric=own_metric(config, name, Metric.DEAD),
    )
    yield Alarm(
        id=f"StoreUnavailable-{name}",
        heading=Heading.STORE_UNAVAILABLE,
        says=f"Workers of lane {name} cannot claim or settle jobs.",
        metric=own_metric(config, name, Metric.UNAVAILABLE),
        # A single lost answer mends itself.
        periods=3,
    )
    yield Alarm(
        id=f"DeadJobs-{name}",
        heading=Heading.DEAD_JOBS,
        says=f"Jobs of lane {name} are dead and wait in its dead-letter queue.",
        # Not the number sent: that leaves out the messages which SQS itself moves. Theirs are the jobs that are alive.
        metric=_waiting(lane.dead_letters),
        reconciles=True,
    )
    yield Alarm(
        id=f"LateJobs-{name}",
        heading=Heading.LATE_JOBS,
        says=f"A job has been waiting in lane {name} for more than {lane.config.late_seconds} s.",
        metric=lane.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
        above=lane.config.late_seconds,
        periods=3,
    )
    yield Alarm(
        id=f"LostMessages-{name}",
        heading=Heading.LOST_MESSAGES,
        says=f"Jobs of lane {name} were long overdue, as if their messages were lost, and were dispatched again.",
        metric=own_metric(config, name, Metric.NUDGED),
    )
    yield Alarm(
        id=f"UndeliverableJobs-{name}",
        heading=Heading.UNDELIVERABLE_JOBS,
        says=f"Jobs of lane {name} died because no worker took them up however often they were dispatched.",
        metric=own_metric(config, name, Metric.UNDELIVERABLE),
    )
    yield from function_alarms(lane.worker, of=f"-{name}")


def api_alarms(api: Api) -> Iterator[Alarm]:
    yield Alarm(
        id="ApiErrors",
        heading=Heading.API_ERRORS,
        says="Callers are answered with errors that are our fault, so jobs may not get in.",
        metric=api.api.metric_server_error(period=Duration.minutes(1), statistic="Sum"),
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
        metric=_waiting(publisher.failures),
        reconciles=True,
    )
    yield Alarm(
        id="PassedOverRecords",
        heading=Heading.UNPUBLISHED_RECORDS,
        says="Changes of jobs were given up, so that they hold up no others.",
        metric=own_metric(publisher.config, names.Lane.DEFAULT, Metric.PASSED_OVER),
        reconciles=True,
    )
    yield from function_alarms(publisher.function)


def scheduler_alarms(scheduled: ScheduledFunctions, *, config: StageConfig) -> Iterator[Alarm]:
    yield Alarm(
        id="StoppedClock",
        heading=Heading.STOPPED_CLOCK,
        says="Nothing has looked for jobs whose time has come, so scheduled jobs start late.",
        metric=scheduled.wake.function.metric_invocations(period=STOPPED_CLOCK, statistic="Sum"),
        at_silence=True,
    )
    yield Alarm(
        id="UnreadableJobs",
        heading=Heading.UNREADABLE_JOBS,
        says="Jobs wait that the code deployed cannot read.",
        # Reconcile counts them, and would read no better for being called.
        metric=own_metric(config, names.Lane.DEFAULT, Metric.UNREADABLE),
    )
    yield Alarm(
        id="MissedCalls",
        heading=Heading.MISSED_CALLS,
        says="A call by the clock came to nothing: a periodic job was not submitted, or reconcile did not run.",
        metric=_waiting(scheduled.missed),
    )


def function_alarms(function: JobFunction, *, of: str = "") -> Iterator[Alarm]:
    """A handler of ours answers rather than raises, so one error is one too many: a crash, a timeout or a mistake."""
    yield Alarm(
        id=f"FunctionErrors-{function.verb}{of}",
        heading=Heading.FUNCTION_ERRORS,
        says=f"The function {function.verb} crashed or ran out of time.",
        metric=function.function.metric_errors(period=Duration.minutes(5), statistic="Sum"),
    )
    yield Alarm(
        id=f"FunctionThrottles-{function.verb}{of}",
        heading=Heading.FUNCTION_THROTTLES,
        says=f"The function {function.verb} is being refused concurrency.",
        metric=function.function.metric_throttles(period=Duration.minutes(5), statistic="Sum"),
        # A burst throttles while Lambda scales; what lasts is a limit.
        periods=2,
    )


def _waiting(queue: sqs.Queue) -> cloudwatch.Metric:
    """The messages of a queue that is empty when all is well."""
    return queue.metric_approximate_number_of_messages_visible(period=Duration.minutes(1), statistic="Maximum")
