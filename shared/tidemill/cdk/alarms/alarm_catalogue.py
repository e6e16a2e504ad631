"""The catalogue of alarms: meaning, metric, threshold, M of N, missing data, severity, objective, bound and runbook.

At most six entries are pages. The bounds in `within` are those that the tests of the alarms measure; the table of
docs/operations/alarms.md shows them. A sum over lanes or functions is one alarm, and its graph shows which one rose.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from tidemill.application.operations.objectives import FAST_BURN, Objective
from tidemill.cdk.alarms import alarm_metrics as metrics
from tidemill.cdk.alarms.alarm import (
    LASTING,
    LASTING_BOUND,
    ONCE,
    ONCE_BOUND,
    Alarm,
    Composite,
    Entry,
    Heading,
    Missing,
    Severity,
)
from tidemill.cdk.alarms.alarm_topic import AlarmTopics
from tidemill.cdk.alarms.application_alarms import function_alarms
from tidemill.cdk.alarms.burn_rate_alarms import burn_parts, windows
from tidemill.cdk.alarms.job_type_alarms import repeated_runs
from tidemill.cdk.alarms.tidemill_metric import tidemill_metric
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.scheduled_functions import ScheduledFunctions
from tidemill.cdk.job_api import JobApi
from tidemill.cdk.lanes.lane import LaneConstruct
from tidemill.cdk.publisher import Publisher
from tidemill.metrics import Metric
from tidemill.names import RECONCILE_INTERVAL_SECONDS, Lane

#: Each page fires within this time of its fault.
PAGE_BOUND: Final = timedelta(minutes=5)
#: The metrics of an idle queue come up to 15 minutes late, and a healthy dead-letter queue is idle.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-monitoring-using-cloudwatch.html
IDLE_QUEUE: Final = timedelta(minutes=15)
#: Four minutes in a row without a call are silence. Two may only be late, and one missed call is harmless.
SILENT_MINUTES: Final = 4
#: Without this part, silence is not a fault: the installation is new.
ESTABLISHED: Final = "Established"
#: A canary job that takes longer is late.
LATE_CANARY_MS: Final = 60_000
#: Owed work that fails is counted each time it is tried, at least every 15 minutes.
QUIET_MINUTES: Final = 20
#: A service that works again within it needs no operator: the next probe closes its breaker.
LONG_OPEN: Final = timedelta(minutes=15)
#: Three calls of reconcile.
RECONCILE_INACTIVITY: Final = Duration.seconds(3 * RECONCILE_INTERVAL_SECONDS)


def pages(api: JobApi, scheduled: ScheduledFunctions, *, config: StageConfig) -> Iterator[Entry]:
    """The pages and their parts."""
    wake = metrics.invocations(scheduled.wake.function)
    yield Alarm(
        id=ESTABLISHED,
        heading=Heading.SILENT_SCHEDULER,
        meaning="The scheduler has called wake for ten minutes, so a path without calls has a fault and is not new.",
        metric=wake.with_(period=Duration.minutes(1)),
        m_of_n=(10, 15),
        # It stays on for ever. A new alarm without data is in the state INSUFFICIENT_DATA.
        missing=Missing.NOTHING,
        severity=Severity.PART,
    )
    if config.canary:
        yield from _canary(config)
    yield from burn_parts(api, FAST_BURN, config=config)
    yield Alarm(
        id="UnreachedSubmit",
        # The heading of a burn rate would make it one.
        heading=Heading.API_ERRORS,
        meaning="The API answers with 5xx and does not call submit.",
        metric=metrics.unreached_submit(api, config=config),
        # One metric may come a minute after the other.
        m_of_n=(2, 4),
        severity=Severity.PART,
    )
    yield Composite(
        id="FailedSubmissions",
        heading=Heading.FAILED_SUBMISSIONS,
        meaning="The API fails to accept submissions, and would spend the error budget of a month within two days.",
        any_of=(windows("FailedSubmissions", FAST_BURN), ("UnreachedSubmit",)),
        severity=Severity.PAGE,
        objective=Objective.SUBMISSIONS,
        within=PAGE_BOUND,
    )
    yield Composite(
        id="LateStarts",
        heading=Heading.LATE_STARTS,
        meaning="Jobs of the lane critical start late, and would spend the error budget of a month within two days.",
        any_of=(windows("LateStarts", FAST_BURN),),
        severity=Severity.PAGE,
        objective=Objective.STARTS,
        within=PAGE_BOUND,
    )
    yield Alarm(
        id="UncalledWake",
        heading=Heading.SILENT_SCHEDULER,
        meaning="The function wake was not called.",
        metric=metrics.math("IF(FILL(calls, 0) < 1, 1, 0)", calls=wake),
        m_of_n=(SILENT_MINUTES, SILENT_MINUTES),
        missing=Missing.FAULT,
        severity=Severity.PART,
    )
    yield Composite(
        id="SilentScheduler",
        heading=Heading.SILENT_SCHEDULER,
        meaning="The scheduler no longer calls wake, so scheduled, parked and owed work waits.",
        any_of=(("UncalledWake", ESTABLISHED),),
        severity=Severity.PAGE,
        objective=Objective.ENDS,
        within=PAGE_BOUND,
    )
    yield Alarm(
        id="FailedJobs",
        heading=Heading.FAILED_JOBS,
        meaning="Many jobs of the lane critical die, not counting those that gave up or passed their deadline.",
        metric=metrics.failed_jobs(config, Lane.CRITICAL),
        above=5,
        severity=Severity.PAGE,
        objective=Objective.ENDS,
        within=PAGE_BOUND,
    )
    yield Alarm(
        id="BrokenInvariant",
        heading=Heading.BROKEN_INVARIANT,
        meaning="The engine cannot keep its promise: a job is undeliverable, or its document is unreadable.",
        metric=metrics.broken_invariants(config),
        m_of_n=ONCE,
        severity=Severity.PAGE,
        objective=Objective.ENDS,
        within=PAGE_BOUND,
    )


def _canary(config: StageConfig) -> Iterator[Entry]:
    for lane in Lane:
        yield Alarm(
            id=f"LateCanary-{lane}",
            heading=Heading.LATE_CANARY,
            meaning=f"The canary job of lane {lane} is late or missing.",
            metric=metrics.canary_latency(config, lane),
            above=LATE_CANARY_MS,
            m_of_n=(SILENT_MINUTES, SILENT_MINUTES),
            missing=Missing.FAULT,
            severity=Severity.PART,
        )
    yield Composite(
        id="LateCanary",
        heading=Heading.LATE_CANARY,
        meaning="A canary job, which takes the path of every job, is late or missing. Its part names the lane.",
        any_of=tuple((f"LateCanary-{lane}", ESTABLISHED) for lane in Lane),
        severity=Severity.PAGE,
        objective=Objective.ENDS,
        within=PAGE_BOUND,
    )


def shift_parts(config: StageConfig) -> Iterator[Entry]:
    """For the gradual deployment alone: a type of a less urgent lane that the new version breaks pages no operator."""
    if config.gradual_deployment:
        for lane in Lane:
            if lane is not Lane.CRITICAL:
                yield Alarm(
                    id=f"FailedJobs-{lane}",
                    heading=Heading.FAILED_JOBS,
                    meaning=f"Many jobs of lane {lane} die, not counting those that gave up or passed their deadline.",
                    metric=metrics.failed_jobs(config, lane),
                    above=5,
                    severity=Severity.PART,
                )


def lane_alarms(lane: LaneConstruct, *, config: StageConfig) -> Iterator[Entry]:
    name = lane.config.name
    yield Alarm(
        id=f"DeadJobs-{name}",
        heading=Heading.DEAD_JOBS,
        meaning=f"Messages wait in the dead-letter queue of lane {name}: jobs died, or SQS gave up on them.",
        # Not `NumberOfMessagesSent`: it omits the messages that SQS itself moves, and their jobs may be alive.
        metric=metrics.all_messages(lane.dead_letters, config=config),
        m_of_n=ONCE,
        calls_reconcile=True,
        objective=Objective.ENDS,
        within=IDLE_QUEUE + ONCE_BOUND,
    )
    late_seconds = lane.config.late_seconds
    yield Alarm(
        id=f"LateJobs-{name}",
        heading=Heading.LATE_JOBS,
        meaning=f"A message has waited in lane {name} for more than {late_seconds} s.",
        metric=lane.queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
        above=late_seconds,
        m_of_n=LASTING,
        within=timedelta(seconds=late_seconds) + LASTING_BOUND,
    )
    yield Alarm(
        id=f"IdleWorker-{name}",
        heading=Heading.IDLE_WORKER,
        meaning=f"Messages are visible in lane {name}, and its worker does not run.",
        metric=metrics.idle_worker(lane),
        # The depth of the last two minutes is not known yet.
        m_of_n=(SILENT_MINUTES, SILENT_MINUTES + 2),
        objective=Objective.ENDS,
        within=IDLE_QUEUE + LASTING_BOUND,
    )
    yield repeated_runs(f"of lane {name}", id_=name, config=config, lane=name)


def engine_alarms(lanes: Sequence[LaneConstruct], topics: AlarmTopics, *, config: StageConfig) -> Iterator[Entry]:
    yield Alarm(
        id="StoreUnavailable",
        heading=Heading.STORE_UNAVAILABLE,
        meaning="Workers cannot claim or settle jobs, so these make no progress.",
        metric=metrics.over_lanes(config, Metric.UNAVAILABLE),
        # After a single lost response the retry succeeds.
        m_of_n=LASTING,
        objective=Objective.ENDS,
        within=LASTING_BOUND,
    )
    yield Alarm(
        id="BreakerOpen",
        heading=Heading.OPEN_BREAKER,
        meaning=f"A circuit breaker has been open for {LONG_OPEN // timedelta(minutes=1)} minutes: its jobs wait.",
        metric=metrics.largest(config, Metric.BREAKER_OPEN, metrics.MINUTE),
        above=LONG_OPEN / timedelta(seconds=1),
        # The age counts on while a breaker is forced open. Right after the force, a probe has a minute to close it.
        m_of_n=LASTING,
        within=LONG_OPEN + LASTING_BOUND,
    )
    yield Alarm(
        id="ThrottledTable",
        heading=Heading.THROTTLED_TABLE,
        meaning="DynamoDB throttles writes to the jobs table or to an index: a key is hot, or a quota is near.",
        metric=tidemill_metric(config, Lane.DEFAULT, Metric.WRITES_THROTTLED, statistic="Sum", period=metrics.MINUTE),
        m_of_n=LASTING,
        within=LASTING_BOUND,
    )
    yield Alarm(
        id="LostMessages",
        heading=Heading.LOST_MESSAGES,
        meaning="Reconcile found overdue jobs, whose messages may be lost, and dispatched them again.",
        metric=metrics.over_lanes(config, Metric.NUDGED),
        m_of_n=ONCE,
        within=ONCE_BOUND,
    )
    yield Alarm(
        id="StrayThreads",
        heading=Heading.STRAY_THREADS,
        # Its exit may also fire `FunctionErrors`, whose other causes this alarm rules out.
        meaning="A job ran on after its time was over, so its worker ended its process.",
        metric=metrics.over_lanes(config, Metric.STRAY_THREADS),
        m_of_n=ONCE,
        within=ONCE_BOUND,
    )
    yield Alarm(
        id="NotAccepted",
        heading=Heading.NOT_ACCEPTED,
        meaning="Functions continued without jobs that the store did not accept, such as clicks.",
        metric=metrics.over_lanes(config, Metric.NOT_ACCEPTED),
        m_of_n=ONCE,
        objective=Objective.SUBMISSIONS,
        within=ONCE_BOUND,
    )
    yield Alarm(
        id="NearConcurrencyQuota",
        heading=Heading.NEAR_QUOTA,
        meaning="The functions of the account use more than 80 % of its concurrency.",
        metric=metrics.used_concurrency(),
        above=80,
        m_of_n=LASTING,
        within=LASTING_BOUND,
    )
    yield Alarm(
        id="UnheardPages",
        heading=Heading.MISSING_SUBSCRIBER,
        meaning="A page was published and no subscriber received it.",
        metric=metrics.undelivered(topics.pages.topic),
        within=ONCE_BOUND,
    )
    yield from function_alarms("workers", {lane.config.name: lane.worker for lane in lanes})


def publisher_alarms(publisher: Publisher) -> Iterator[Entry]:
    config = publisher.config
    yield Alarm(
        id="LateStream",
        heading=Heading.LATE_STREAM,
        meaning="The publisher is more than 5 minutes behind: a record blocks the stream, or too many records arrive.",
        metric=publisher.function.function.metric(
            "IteratorAge", period=Duration.minutes(1), statistic="Maximum", unit=cloudwatch.Unit.MILLISECONDS
        ),
        above=5 * 60_000,
        m_of_n=LASTING,
        within=timedelta(minutes=5) + LASTING_BOUND,
    )
    yield Alarm(
        id="IdlePublisher",
        heading=Heading.LATE_STREAM,
        meaning="Jobs are submitted, and the publisher is not called: its mapping is disabled or missing.",
        metric=metrics.idle_publisher(publisher),
        # The calls of the last minutes are not known yet, but those of the first five minutes are.
        m_of_n=(2, 4),
        objective=Objective.ENDS,
        within=timedelta(minutes=12),
    )
    yield Alarm(
        id="UnpublishedRecords",
        heading=Heading.UNPUBLISHED_RECORDS,
        meaning="Lambda set aside changes of jobs that the publisher could not process.",
        metric=metrics.all_messages(publisher.failures, config=config),
        m_of_n=ONCE,
        calls_reconcile=True,
        objective=Objective.ENDS,
        within=IDLE_QUEUE + ONCE_BOUND,
    )
    yield Alarm(
        id="PassedOverRecords",
        heading=Heading.UNPUBLISHED_RECORDS,
        meaning="Work that the publisher could not do still fails after five minutes: some jobs or groups wait.",
        metric=tidemill_metric(config, Lane.DEFAULT, Metric.PASSED_OVER),
        # It stays on between two tries.
        m_of_n=(1, QUIET_MINUTES),
        calls_reconcile=True,
        objective=Objective.ENDS,
        within=ONCE_BOUND,
    )
    yield from function_alarms("publisher", {"publish": publisher.function})


def scheduler_alarms(scheduled: ScheduledFunctions, *, config: StageConfig) -> Iterator[Entry]:
    yield Alarm(
        id="MissedCalls",
        heading=Heading.MISSED_CALLS,
        meaning="A call failed at every try: a periodic job was not submitted, or reconcile did not run.",
        metric=metrics.all_messages(scheduled.missed_calls, config=config),
        m_of_n=ONCE,
        within=IDLE_QUEUE + ONCE_BOUND,
    )
    yield Alarm(
        id="StoppedReconcile",
        heading=Heading.LATE_RECONCILE,
        meaning="The scheduler calls wake and not reconcile, so lost messages are not found.",
        metric=metrics.stopped_reconcile(scheduled, RECONCILE_INACTIVITY, config=config),
        objective=Objective.ENDS,
        within=timedelta(minutes=18),
    )
    yield Alarm(
        id="LateReconcile",
        heading=Heading.LATE_RECONCILE,
        meaning="Reconcile takes too long to scan the jobs table, so lost messages are found late.",
        # Each run writes the age, so a shorter period would be empty between two runs and resolve the alarm.
        metric=metrics.largest(config, Metric.RECONCILE_AGE, RECONCILE_INACTIVITY),
        above=config.longest_reconcile_age / timedelta(milliseconds=1),
        within=timedelta(minutes=8),
    )
    yield Alarm(
        id="DriftedResources",
        heading=Heading.DRIFT,
        meaning="A resource of the stack differs from the template, or could not be compared with it.",
        metric=metrics.largest(config, Metric.DRIFTED, Duration.seconds(RECONCILE_INTERVAL_SECONDS)),
        # A deployment changes resources for a few minutes.
        m_of_n=(3, 4),
        objective=Objective.ENDS,
        within=timedelta(minutes=22),
    )
    yield from function_alarms("scheduled", {function.verb: function for function in scheduled.functions})
