"""Alarms as values: what CloudWatch would know about them after their creation."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from tidemill.local.alarms.composite_rule import Rule, parse_rule
from tidemill.local.alarms.metric_math import Expression, parse_expression


class State(StrEnum):
    OK = "OK"
    ALARM = "ALARM"
    #: The state of a new alarm, and of one whose data is missing if `Missing.MISSING` says so.
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


class Missing(StrEnum):
    """`TreatMissingData`.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
    """

    NOT_BREACHING = "notBreaching"
    BREACHING = "breaching"
    #: The alarm keeps its state.
    IGNORE = "ignore"
    #: Without any data, the alarm goes to INSUFFICIENT_DATA.
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class MetricKey:
    namespace: str
    name: str
    #: Pairs of name and value, in the order of the names.
    dimensions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Query:
    """One metric that an alarm reads."""

    #: The name of the metric in the expression.
    id: str
    metric: MetricKey
    #: `Sum`, `Maximum`, `SampleCount` and so on, or an extended statistic such as `TC(60000:)`.
    statistic: str


@dataclass(frozen=True)
class MetricAlarm:
    name: str
    queries: tuple[Query, ...]
    #: The math over the ids of `queries`. The id alone for an alarm on one metric.
    expression: str
    period_minutes: int
    #: N: how many of the latest data points the alarm judges.
    evaluation_periods: int
    #: M: how many of them must breach.
    datapoints_to_alarm: int
    threshold: float
    comparison: str
    missing: Missing
    description: str = ""
    alarm_actions: tuple[str, ...] = ()
    ok_actions: tuple[str, ...] = ()

    @cached_property
    def math(self) -> Expression:
        return parse_expression(self.expression)


@dataclass(frozen=True)
class CompositeAlarm:
    name: str
    rule_text: str
    description: str = ""
    alarm_actions: tuple[str, ...] = ()
    ok_actions: tuple[str, ...] = ()

    @cached_property
    def rule(self) -> Rule:
        return parse_rule(self.rule_text)
