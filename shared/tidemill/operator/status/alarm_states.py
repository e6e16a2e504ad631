"""The alarms of an installation: which fire, since when, and what to do about each."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import translated
from tidemill.names import ALARM_ADVICE

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

#: The alarms in the rule of a composite:
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html
_IN_RULE: Final = re.compile(r'ALARM\("([^"]+)"\)')
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
_LARGEST_PAGE: Final = 100


class Severity(StrEnum):
    """The severity of an alarm. `INCIDENT` is the composite of all pages, which alone notifies the topic of pages."""

    INCIDENT = "incident"
    PAGE = "page"
    TICKET = "ticket"
    #: It notifies no topic. A composite reads it.
    PART = "part"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmState:
    """One alarm."""

    name: str
    severity: Severity
    #: CloudWatch's name of the state: `OK`, `ALARM` or `INSUFFICIENT_DATA`.
    state: str
    #: The last change of the state.
    since: datetime
    #: One sentence, and the link to the runbook, which may be empty.
    meaning: str
    advice: str
    #: The names of the alarms in the rule of a composite.
    rule: frozenset[str] = frozenset()
    #: What the alarm judges, as `GetMetricData` takes it. Empty for composites and for alarms on one metric.
    queries: Sequence[Any] = ()
    threshold: float = 0
    missing_data: str = ""

    @property
    def fires(self) -> bool:
        return self.state == "ALARM"

    @property
    def heading(self) -> str:
        """The heading of the runbook."""
        return self.advice.rpartition("#")[2]


@dataclass(frozen=True, slots=True)
class Alarms:
    """All alarms of the installation, by name."""

    by_name: Mapping[str, AlarmState] = field(default_factory=dict)

    def firing(self, severity: Severity) -> list[AlarmState]:
        """The first one to fire comes first: it is closest to the cause."""
        found = (alarm for alarm in self.by_name.values() if alarm.severity is severity and alarm.fires)
        return sorted(found, key=lambda alarm: (alarm.since, alarm.name))

    def firing_parts(self, composite: AlarmState) -> list[AlarmState]:
        """Those that say what is wrong. A part that keeps its state without data only says that a fault is possible."""
        return [
            part for part in self.firing(Severity.PART) if part.name in composite.rule and part.missing_data != "ignore"
        ]


def read(client: "CloudWatchClient", stacks: Iterable[str], *, page_topic: str) -> Alarms:
    """The alarms of these stacks. CloudFormation begins their names with that of their stack.

    The right to describe alarms must not be narrowed to some of them, or composites are missing:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_DescribeAlarms.html
    """
    metric_alarms: list[Any] = []
    composites: list[Any] = []
    with translated():
        for stack in stacks:
            # Without types, only metric alarms are returned.
            pages = client.get_paginator("describe_alarms").paginate(
                AlarmNamePrefix=f"{stack}-",
                AlarmTypes=["MetricAlarm", "CompositeAlarm"],
                PaginationConfig={"PageSize": _LARGEST_PAGE},
            )
            for page in pages:
                metric_alarms += page.get("MetricAlarms", [])
                composites += page.get("CompositeAlarms", [])
    rules = {alarm["AlarmName"]: frozenset(_IN_RULE.findall(alarm["AlarmRule"])) for alarm in composites}
    incidents = {alarm["AlarmName"] for alarm in composites if page_topic in alarm.get("AlarmActions", ())}
    pages_of = frozenset[str]().union(*(rules[name] for name in incidents))

    def severity(alarm: Any) -> Severity:
        if alarm["AlarmName"] in incidents:
            return Severity.INCIDENT
        if alarm["AlarmName"] in pages_of:
            return Severity.PAGE
        return Severity.TICKET if alarm.get("AlarmActions") else Severity.PART

    found = (
        _state(alarm, severity(alarm), rules.get(alarm["AlarmName"], frozenset()))
        for alarm in [*metric_alarms, *composites]
    )
    return Alarms({alarm.name: alarm for alarm in found})


def _state(alarm: Any, severity: Severity, rule: frozenset[str]) -> AlarmState:
    meaning, separator, advice = alarm.get("AlarmDescription", "").partition(ALARM_ADVICE)
    return AlarmState(
        name=alarm["AlarmName"],
        severity=severity,
        state=alarm["StateValue"],
        # `StateUpdatedTimestamp` also changes when only the reason of the state does.
        since=alarm.get("StateTransitionedTimestamp") or alarm["StateUpdatedTimestamp"],
        # Ours begins with the name of the stage.
        meaning=(meaning.partition(": ")[2] if separator else meaning) or alarm["AlarmName"],
        advice=advice,
        rule=rule,
        queries=alarm.get("Metrics", ()),
        threshold=alarm.get("Threshold", 0),
        missing_data=alarm.get("TreatMissingData", ""),
    )
