"""What the watch of alarms reads, creates and prints."""

import json
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.alarm_watch.failed_invocations import FailedInvocations
from tidemill.local.alarm_watch.installed_alarms import put_missing, read_installed
from tidemill.local.alarm_watch.metric_values import DELAY_MINUTES, MetricValues
from tidemill.local.alarm_watch.setup import sources_of
from tidemill.local.alarm_watch.short_minutes import ScheduledCalls
from tidemill.local.alarm_watch.watch import change_line
from tidemill.local.alarms import CompositeAlarm, MetricAlarm, MetricKey, State, Transition
from tidemill.local.wait import wait_until
from tidemill.operator.status.alarm_states import AlarmState, Severity

NOON: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY: Final = MetricKey("Tidemill", "JobsDead", ())
TEMPLATE: Final = {
    "Resources": {
        # The composite comes first, as its name does.
        "Page": {
            "Type": "AWS::CloudWatch::CompositeAlarm",
            "Properties": {
                "AlarmRule": {"Fn::Join": ["", ['ALARM("', {"Ref": "Sum"}, '") OR ALARM("', {"Ref": "Plain"}, '")']]},
                "AlarmDescription": "app: Users are affected. What to do: runbook.md#page",
                "AlarmActions": [{"Fn::ImportValue": "topic-of-pages"}],
            },
        },
        "Plain": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "Namespace": "AWS/SQS",
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Statistic": "Maximum",
                "Dimensions": [{"Name": "QueueName", "Value": {"Fn::GetAtt": ["Queue", "QueueName"]}}],
                "Period": 60,
                "EvaluationPeriods": 1,
                "Threshold": 0,
                "TreatMissingData": "notBreaching",
                "ComparisonOperator": "GreaterThanThreshold",
                "AlarmActions": ["tickets"],
            },
        },
        "Sum": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "Metrics": [
                    {"Id": "sum", "Expression": "a + b"},
                    *(
                        {
                            "Id": id_,
                            "MetricStat": {
                                "Metric": {"Namespace": "Tidemill", "MetricName": id_.upper()},
                                "Period": 300,
                                "Stat": "Sum",
                            },
                            "ReturnData": False,
                        }
                        for id_ in "ab"
                    ),
                ],
                "EvaluationPeriods": 3,
                "DatapointsToAlarm": 2,
                "Threshold": 5,
                "ComparisonOperator": "GreaterThanThreshold",
            },
        },
    }
}


class Emulator:
    """CloudFormation with one stack, and CloudWatch with the alarm of that stack."""

    def __init__(self) -> None:
        self.put: list[dict[str, Any]] = []

    def get_paginator(self, operation: str) -> "Emulator":
        self._operation = operation
        return self

    def paginate(self, **_: Any) -> list[Any]:
        answers: dict[str, Any] = {
            "list_exports": {"Exports": [{"Name": "topic-of-pages", "Value": "arn:pages"}]},
            "list_stack_resources": {
                "StackResourceSummaries": [
                    {"LogicalResourceId": "Queue", "PhysicalResourceId": "http://queue"},
                    {"LogicalResourceId": "Plain", "PhysicalResourceId": "app-Plain-1"},
                ]
            },
            "describe_alarms": {"MetricAlarms": [{"AlarmName": "app-Plain-1", "StateValue": "OK"}]}
            | {"CompositeAlarms": []},
        }
        return [answers[self._operation]]

    def put_metric_alarm(self, **alarm: Any) -> None:
        self.put.append(alarm)

    def put_composite_alarm(self, **alarm: Any) -> None:
        self.put.append(alarm)


@pytest.fixture
def alarms() -> list[MetricAlarm | CompositeAlarm]:
    return read_installed({"app": TEMPLATE}, Emulator())


def test_alarms_have_the_names_and_resources_of_the_deployed_stack(alarms: list[Any]) -> None:
    page, plain, math = alarms
    assert (page.name, page.alarm_actions) == ("app-Page", ("arn:pages",))
    assert page.rule_text == 'ALARM("app-Sum") OR ALARM("app-Plain-1")'
    assert plain.queries[0].metric.dimensions == (("QueueName", "http://queue"),)
    assert math.name == "app-Sum"


def test_missing_alarms_are_created_and_a_composite_last(alarms: list[Any]) -> None:
    emulator = Emulator()
    put_missing(emulator, alarms)
    math, page = emulator.put
    assert (page["AlarmName"], page["AlarmActions"]) == ("app-Page", ["arn:pages"])
    assert (math["AlarmName"], math["DatapointsToAlarm"], math["Threshold"]) == ("app-Sum", 2, 5.0)
    assert math["Metrics"][-1] == {"Id": "judged", "Expression": "a + b", "ReturnData": True}
    assert [metric["MetricStat"]["Period"] for metric in math["Metrics"][:2]] == [300, 300]


def test_a_change_is_one_line_with_what_to_do(alarms: list[Any]) -> None:
    described = AlarmState(
        name="app-Page",
        severity=Severity.INCIDENT,
        state="OK",
        since=NOON,
        meaning="Users are affected.",
        advice="runbook.md#page",
    )
    states = {"app-Page": State.ALARM, "app-Sum": State.ALARM, "app-Plain-1": State.OK}
    fires, resolves = (
        change_line(Transition(alarms[0], old, new, 7), described, states, at=NOON)
        for old, new in ((State.OK, State.ALARM), (State.ALARM, State.OK))
    )
    assert fires == "12:00:00 ALARM incident app-Page: Users are affected. These fire: app-Sum. Do: runbook.md#page"
    assert resolves == "12:00:00 OK    incident app-Page: it was ALARM"


def test_values_are_known_a_minute_later_and_forgotten_when_they_are_old() -> None:
    values = MetricValues()
    for minute in (10, 10, 11):
        values.add(KEY, minute, 2.0)
    series = values.series()[KEY]
    assert series.known_until(12) == 12 - DELAY_MINUTES
    assert series.statistic("Sum", 10, 12, now=13) == 6
    values.forget(before=11)
    assert values.series()[KEY].statistic("Sum", 10, 12, now=13) == 2


def test_failed_invocations_are_read_from_the_log_of_the_emulator_once(tmp_path: Path) -> None:
    log = tmp_path / "emulator.log"
    log.write_text("Lambda old timed out after 3s\n")
    failed = FailedInvocations(log)
    with log.open("a") as more:
        more.write("ESM: Lambda app-Work failed processing SQS batch from x\nINFO\nLambda app-Wake timed out aft")
    assert [metric.dimensions[0][1] for metric in failed.read()] == ["app-Work"]
    with log.open("a") as more:
        more.write("er 3s\n")
    assert [metric.dimensions[0][1] for metric in failed.read()] == ["app-Wake"]
    assert list(failed.read()) == []


def test_each_function_is_a_source_and_has_the_api_that_calls_it() -> None:
    functions = {"submit": "app-Submit", "work": "app-Work", "work-bulk": "app-Bulk", "publish": "app-Publish"}
    groups = {key: f"/{key}" for key in functions}
    found = sources_of(
        {
            "app-Pipeline": {"Functions": json.dumps(functions), "LogGroups": json.dumps(groups), "ApiId": "a1"},
            "app-Links": {"Functions": '{"stats": "app-Stats"}', "LogGroups": '{"stats": "/s"}', "LinksApiId": "a2"},
            "app-Plain": {},
        }
    )
    assert [(each.function, each.log_group, each.api_id) for each in found] == [
        ("app-Submit", "/submit", "a1"),
        ("app-Work", "/work", ""),
        ("app-Bulk", "/work-bulk", ""),
        ("app-Publish", "/publish", ""),
        ("app-Stats", "/s", "a2"),
    ]


class Schedules:
    """Four schedules, and a Lambda whose calls last until they are let go."""

    KNOWN: Final = {
        "minute": ("rate(1 minute)", "ENABLED"),
        "five": ("rate(5 minutes)", "ENABLED"),
        "off": ("rate(1 minute)", "DISABLED"),
        "nightly": ("cron(0 3 * * ? *)", "ENABLED"),
    }

    def __init__(self) -> None:
        self.go = Event()
        self.calls: list[str] = []

    def get_paginator(self, _: str) -> "Schedules":
        return self

    def paginate(self) -> list[Any]:
        return [{"Schedules": [{"Name": name, "GroupName": "default"} for name in self.KNOWN]}]

    def get_schedule(self, *, Name: str, GroupName: str) -> dict[str, Any]:  # noqa: N803 - the names of the API
        assert GroupName == "default"
        expression, state = self.KNOWN[Name]
        return {"Name": Name, "ScheduleExpression": expression, "State": state, "Target": {"Arn": Name}}

    def invoke(self, *, FunctionName: str, Payload: bytes) -> None:  # noqa: N803 - the names of the API
        assert Payload == b"{}"
        self.calls.append(FunctionName)
        self.go.wait(PATIENCE_SECONDS)


def test_enabled_schedules_are_called_at_their_rate_and_one_call_at_a_time() -> None:
    schedules = Schedules()
    calls = ScheduledCalls(schedules, schedules)
    calls.call(minute=10)
    calls.call(minute=11)
    wait_until(lambda: sorted(schedules.calls) == ["five", "minute"], PATIENCE_SECONDS, "the calls")
    schedules.go.set()

    def called_again() -> bool:
        calls.call(minute=11)
        return schedules.calls.count("minute") > 1

    wait_until(called_again, PATIENCE_SECONDS, "the next call")
    assert schedules.calls.count("five") == 1
