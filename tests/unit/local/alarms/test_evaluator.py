"""The evaluator over series of values: windows, statistics, delays, composites and actions."""

from collections.abc import Mapping
from typing import Any

import pytest

from tidemill.local.alarms import CompositeAlarm, Evaluator, MetricKey, Series, State, read_alarms
from tidemill.local.alarms.composite_rule import parse_rule
from tidemill.local.alarms.metric_math import UnsupportedError

KEY = MetricKey("Tidemill", "JobsDead", (("lane", "critical"),))
SINGLE = {
    "Namespace": KEY.namespace,
    "MetricName": KEY.name,
    "Dimensions": [{"Name": "lane", "Value": "critical"}],
    "Statistic": "Sum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 0,
    "ComparisonOperator": "GreaterThanThreshold",
    "TreatMissingData": "notBreaching",
    "AlarmActions": [{"Ref": "Topic"}],
}


def _evaluator(data: Mapping[MetricKey, Series], *, additional_points: int = 0, **properties: Any) -> Evaluator:
    resource = {"Type": "AWS::CloudWatch::Alarm", "Properties": SINGLE | properties}
    return Evaluator(list(read_alarms({"Dead": resource})), data, additional_points=additional_points)


def _changes(evaluator: Evaluator, end: int) -> list[tuple[int, str]]:
    return [(change.minute, change.new.value) for change in evaluator.run(0, end)]


def test_an_alarm_fires_at_the_end_of_its_period_and_resolves_after_it() -> None:
    evaluator = _evaluator({KEY: Series({3: [1.0]})})
    assert _changes(evaluator, 10) == [(0, "OK"), (4, "ALARM"), (5, "OK")]


def test_an_alarm_re_evaluates_its_last_point_for_as_long_as_the_range_holds_it() -> None:
    evaluator = _evaluator({KEY: Series({3: [1.0]})}, additional_points=2)
    assert _changes(evaluator, 10) == [(0, "OK"), (4, "ALARM"), (7, "OK")]


def test_a_longer_period_slides_by_one_minute() -> None:
    evaluator = _evaluator({KEY: Series({3: [1.0], 6: [1.0]})}, Period=300, Threshold=1)
    assert _changes(evaluator, 20) == [(0, "OK"), (7, "ALARM"), (9, "OK")]


def test_values_are_unknown_until_their_delay_is_over() -> None:
    evaluator = _evaluator({KEY: Series({3: [1.0]}, delay=2)}, additional_points=2)
    assert _changes(evaluator, 12) == [(0, "OK"), (6, "ALARM"), (7, "OK")]


@pytest.mark.parametrize(
    ("statistic", "value"),
    [
        ("Sum", 90),
        ("SampleCount", 4),
        ("Maximum", 50),
        ("Minimum", 5),
        ("Average", 22.5),
        ("TC(10:)", 2),
        ("TC(:10)", 2),
    ],
)
def test_statistics(statistic: str, value: float) -> None:
    series = Series({1: [5.0, 10.0], 2: [25.0], 3: [50.0], 9: [99.0]})
    assert series.statistic(statistic, 0, 5, now=5) == value
    assert series.statistic(statistic, 4, 9, now=9) is None


def test_an_unknown_statistic_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'p99'"):
        Series({1: [5.0]}).statistic("p99", 0, 5, now=5)


def test_a_notification_is_sent_when_the_state_changes_and_not_again() -> None:
    evaluator = _evaluator({KEY: Series({3: [1.0], 4: [1.0], 5: [1.0]})})
    assert [change.actions for change in evaluator.run(0, 9)] == [(), ("Topic",), ()]


def test_missing_data_of_a_table_never_changes_an_alarm() -> None:
    key = MetricKey("AWS/DynamoDB", KEY.name, KEY.dimensions)
    evaluator = _evaluator({key: Series({3: [1.0]})}, Namespace="AWS/DynamoDB")
    assert _changes(evaluator, 60) == [(4, "ALARM")]


def test_a_quota_is_read_beside_its_usage_metric() -> None:
    term = {"Metric": {name: SINGLE[name] for name in ("Namespace", "MetricName", "Dimensions")}, "Stat": "Maximum"}
    resource = {
        "Type": "AWS::CloudWatch::Alarm",
        "Properties": {
            "Metrics": [
                {"Id": "share", "Expression": "100 * used / SERVICE_QUOTA(used)"},
                {"Id": "used", "MetricStat": term | {"Period": 60}, "ReturnData": False},
            ],
            "EvaluationPeriods": 1,
            "Threshold": 80,
            "ComparisonOperator": "GreaterThanThreshold",
        },
    }
    data = {KEY: Series({1: [700.0], 2: [900.0]})}
    evaluator = Evaluator(list(read_alarms({"Quota": resource})), data, quotas={KEY: 1000}, additional_points=0)
    assert _changes(evaluator, 4) == [(2, "OK"), (3, "ALARM")]


def test_composites_follow_their_children_in_the_same_minute() -> None:
    alarms = [
        *read_alarms({"Dead": {"Type": "AWS::CloudWatch::Alarm", "Properties": SINGLE}}),
        CompositeAlarm("Page", 'ALARM("Cause")', alarm_actions=("Pager",)),
        CompositeAlarm("Cause", 'ALARM("Dead") AND NOT OK("Dead")'),
    ]
    evaluator = Evaluator(alarms, {KEY: Series({3: [1.0]})}, additional_points=0)
    fired = [change for change in evaluator.run(0, 9) if change.new is State.ALARM]
    assert [(change.alarm.name, change.minute, change.actions) for change in fired] == [
        ("Dead", 4, ("Topic",)),
        ("Cause", 4, ()),
        ("Page", 4, ("Pager",)),
    ]


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ('ALARM("a")', True),
        ('OK("a") OR INSUFFICIENT_DATA("b")', True),
        ('NOT (ALARM("a") AND OK("b"))', True),
        ('TRUE AND NOT ALARM("a")', False),
        ('FALSE OR OK("this AND that")', True),
    ],
)
def test_rules(rule: str, *, holds: bool) -> None:
    states = {"a": State.ALARM, "b": State.INSUFFICIENT_DATA, "this AND that": State.OK}
    assert parse_rule(rule).holds(states) is holds


@pytest.mark.parametrize("rule", ["AT_LEAST(2, ALARM, (a, b))", "ALARM(", 'ANY("a")'])
def test_a_rule_that_is_not_implemented_is_refused(rule: str) -> None:
    with pytest.raises(UnsupportedError):
        parse_rule(rule)


def test_a_property_that_is_not_implemented_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="ActionsSuppressor"):
        list(read_alarms({"C": {"Type": "AWS::CloudWatch::CompositeAlarm", "Properties": {"ActionsSuppressor": "x"}}}))
