"""`Alarm` and `Composite`: the entries of the catalogue, and the resources that they become."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from tidemill.application.operations.objectives import Objective
from tidemill.cdk.alarms.alarm_topic import AlarmTopics
from tidemill.cdk.config import StageConfig
from tidemill.names import ALARM_ADVICE

#: The id of the composite that alone notifies the topic of pages.
PAGE: Final = "Page"
#: Metrics come up to two minutes late, so an alarm that judged only the last minute would never see one. One minute of
#: five, and three of five, leave room for that.
ONCE: Final = (1, 5)
LASTING: Final = (3, 5)
ONCE_BOUND: Final = timedelta(minutes=5)
LASTING_BOUND: Final = timedelta(minutes=7)


class Heading(StrEnum):
    """Headings of the runbook, as their anchors: one for each kind of alarm."""

    PAGE = "page"
    LATE_CANARY = "late-canary"
    FAILED_SUBMISSIONS = "failed-submissions"
    LATE_STARTS = "late-starts"
    SILENT_SCHEDULER = "silent-scheduler"
    FAILED_JOBS = "failed-jobs"
    BROKEN_INVARIANT = "broken-invariant"
    SPENT_BUDGET = "spent-error-budget"
    DEAD_JOBS = "dead-jobs"
    LATE_JOBS = "late-jobs"
    IDLE_WORKER = "idle-worker"
    LOST_MESSAGES = "lost-messages"
    STRAY_THREADS = "stray-threads"
    STORE_UNAVAILABLE = "store-unavailable"
    OPEN_BREAKER = "open-breaker"
    THROTTLED_TABLE = "throttled-table"
    MISSED_CALLS = "missed-calls"
    API_ERRORS = "api-errors"
    NOT_ACCEPTED = "submissions-not-accepted"
    FUNCTION_ERRORS = "function-errors"
    FUNCTION_THROTTLES = "function-throttles"
    NEAR_QUOTA = "near-quota"
    LATE_STREAM = "late-stream"
    UNPUBLISHED_RECORDS = "unpublished-records"
    LATE_RECONCILE = "late-reconcile"
    DRIFT = "drifted-resources"
    REPEATED_RUNS = "repeated-runs"
    BROKEN_JOB_FILE = "broken-job-file"
    MISSING_SUBSCRIBER = "missing-subscriber"
    EVENT_SOURCE = "event-source"


class Severity(StrEnum):
    #: Users are affected now. It notifies the topic of tickets, and the composite of all pages notifies that of pages.
    PAGE = "page"
    #: It can wait for working hours.
    TICKET = "ticket"
    #: It notifies no topic. A composite reads it.
    PART = "part"


class Missing(StrEnum):
    """The meaning of missing data."""

    #: The system is idle, which is healthy.
    HEALTHY = "notBreaching"
    #: The metric is written always, so its absence is the fault.
    FAULT = "breaching"
    #: The alarm keeps its state.
    NOTHING = "ignore"


MISSING_DATA: Final = {
    Missing.HEALTHY: cloudwatch.TreatMissingData.NOT_BREACHING,
    Missing.FAULT: cloudwatch.TreatMissingData.BREACHING,
    Missing.NOTHING: cloudwatch.TreatMissingData.IGNORE,
}


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """Fires when the metric is greater than `above` in M of the last N periods. The metric has the period."""

    id: str
    heading: Heading
    #: One sentence for the operator: what happened.
    meaning: str
    metric: cloudwatch.Metric | cloudwatch.MathExpression
    #: In the metric's own unit.
    above: float = 0
    m_of_n: tuple[int, int] = (1, 1)
    missing: Missing = Missing.HEALTHY
    severity: Severity = Severity.TICKET
    objective: Objective | None = None
    #: It fires at most this long after the fault begins to show. A part has no bound of its own.
    within: timedelta = timedelta(0)
    #: Messages may have been lost, so the alarm calls reconcile when it fires, and again when it resolves: a message
    #: that is lost while the alarm is active does not fire it again. Never set it for an alarm that reconcile causes.
    calls_reconcile: bool = False


@dataclass(frozen=True, kw_only=True)
class Composite:
    """Fires when all alarms of one of the tuples fire."""

    id: str
    heading: Heading
    meaning: str
    #: Ids of earlier entries.
    any_of: tuple[tuple[str, ...], ...]
    severity: Severity = Severity.TICKET
    objective: Objective | None = None
    within: timedelta


Entry = Alarm | Composite


@dataclass
class AddedAlarms:
    """The names of the alarms that were created."""

    #: By the id of the entry.
    of: dict[str, str] = field(default_factory=dict)
    #: The pages, and the composite that notifies for them.
    pages: list[str] = field(default_factory=list)
    tickets: list[str] = field(default_factory=list)
    #: Those that call reconcile.
    calling_reconcile: list[str] = field(default_factory=list)


def add_alarms(scope: Construct, entries: Iterable[Entry], *, config: StageConfig, topics: AlarmTopics) -> AddedAlarms:
    """Create the alarms. All pages among them become one composite, so that one incident is one page.

    A stage without metric math has neither alarms on several metrics nor composites.
    """
    added = AddedAlarms()
    pages = []
    for entry in entries:
        if isinstance(entry, Alarm) and (config.metric_math or isinstance(entry.metric, cloudwatch.Metric)):
            added.of[entry.id] = _add_alarm(scope, entry, config, topics)
            if entry.calls_reconcile:
                added.calling_reconcile.append(added.of[entry.id])
        elif isinstance(entry, Composite) and config.metric_math:
            topic = None if entry.severity is Severity.PART else topics.tickets.topic.topic_arn
            added.of[entry.id] = _add_composite(scope, entry, config, added, topic)
        if entry.severity is Severity.PAGE and entry.id in added.of:
            pages.append(entry)
            added.pages.append(added.of[entry.id])
        if entry.severity is Severity.TICKET and entry.id in added.of:
            added.tickets.append(added.of[entry.id])
    if pages and config.metric_math:
        page = Composite(
            id=PAGE,
            heading=Heading.PAGE,
            meaning="Users are affected now.",
            any_of=tuple((entry.id,) for entry in pages),
            severity=Severity.PAGE,
            within=max(entry.within for entry in pages),
        )
        added.pages.insert(0, _add_composite(scope, page, config, added, topics.pages.topic.topic_arn))
    return added


def _add_alarm(scope: Construct, alarm: Alarm, config: StageConfig, topics: AlarmTopics) -> str:
    m, n = alarm.m_of_n
    made = cloudwatch.Alarm(
        scope,
        alarm.id,
        alarm_description=_description(alarm, config),
        metric=alarm.metric,
        threshold=alarm.above,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
        # "M out of N": https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
        evaluation_periods=n,
        datapoints_to_alarm=m,
        treat_missing_data=MISSING_DATA[alarm.missing],
    )
    if alarm.severity is not Severity.PART:
        made.add_alarm_action(actions.SnsAction(topics.tickets.topic))
    if alarm.calls_reconcile:
        made.add_ok_action(actions.SnsAction(topics.tickets.topic))
    return made.alarm_name


def _add_composite(
    scope: Construct, composite: Composite, config: StageConfig, added: AddedAlarms, topic: str | None
) -> str:
    """The L1 resource: the L2 construct sets a name, so a second stack could collide with it."""
    rule = " OR ".join(
        "(" + " AND ".join(f'ALARM("{added.of[each]}")' for each in every) + ")" for every in composite.any_of
    )
    return cloudwatch.CfnCompositeAlarm(
        scope,
        composite.id,
        alarm_rule=rule,
        alarm_description=_description(composite, config),
        alarm_actions=[topic] if topic else None,
    ).ref


def _description(entry: Entry, config: StageConfig) -> str:
    return f"{config.name}: {entry.meaning}{ALARM_ADVICE}{config.runbook_url}#{entry.heading}"
