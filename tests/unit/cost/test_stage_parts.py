"""What costs by the month, as a template has it."""

import json
from typing import Any

import pytest

from tidemill.cost import idle_month
from tidemill.cost.bill import total
from tidemill.cost.stage_parts import StageParts, calls_per_month, parts_of


@pytest.mark.parametrize(
    ("expression", "a_day"),
    [
        ("rate(1 minute)", 1440),
        ("rate(5 minutes)", 288),
        ("rate(1 hour)", 24),
        ("rate(2 days)", 0.5),
        ("cron(0 3 * * ? *)", 1),
        ("cron(0/15 8-17 ? * MON-FRI *)", 40),
        ("cron(0,30 * * * ? *)", 48),
        ("cron(0 8-18/2 * * ? *)", 6),
        ("cron(0 22-4 * * ? *)", 7),
        ("cron(0 20-23,0-4 * * ? *)", 9),
        # A form that Tidemill does not read.
        ("cron(0 3 LW * ? *)", 1440),
    ],
)
def test_the_calls_of_a_schedule_are_those_of_a_month(expression: str, a_day: float) -> None:
    assert calls_per_month(expression) == pytest.approx(a_day * 365 / 12)


def schedule(verb: str, expression: str, **event: str) -> dict[str, Any]:
    target = {"Arn": {"Ref": f"alias of {verb}"}, "Input": json.dumps(event)}
    return resource("AWS::Scheduler::Schedule", ScheduleExpression=expression, Target=target)


def resource(type_: str, **properties: Any) -> dict[str, Any]:
    return {"Type": type_, "Properties": properties}


METRIC: dict[str, Any] = {"MetricStat": {"Metric": {}}}
FUNCTIONS = {
    name: resource_
    for verb in ("wake", "canary", "reconcile", "tick")
    for name, resource_ in (
        (f"alias of {verb}", resource("AWS::Lambda::Alias", FunctionName={"Ref": f"function of {verb}"})),
        (f"function of {verb}", resource("AWS::Lambda::Function", Handler=f"tidemill.entrypoints.{verb}.handle")),
    )
}
TEMPLATE = {
    "Resources": FUNCTIONS
    | {
        str(number): each
        for number, each in enumerate(
            [
                resource("AWS::CloudWatch::Alarm", MetricName="Errors"),
                resource("AWS::CloudWatch::Alarm", Metrics=[METRIC, METRIC, {"Expression": "a / b"}]),
                resource("AWS::CloudWatch::CompositeAlarm"),
                resource("AWS::CloudWatch::Dashboard"),
                resource("AWS::SecretsManager::Secret"),
                resource("AWS::Lambda::EventSourceMapping", ScalingConfig={"MaximumConcurrency": 2}),
                resource("AWS::Lambda::EventSourceMapping", ParallelizationFactor=10),
                schedule("wake", "rate(1 minute)", part="0", parts="2"),
                schedule("wake", "rate(1 minute)", part="1", parts="2"),
                schedule("canary", "rate(1 minute)"),
                schedule("reconcile", "rate(5 minutes)"),
                schedule("tick", "rate(1 hour)", type="a.type"),
                resource("AWS::Lambda::Function", MemorySize=512, SnapStart={"ApplyOn": "PublishedVersions"}),
                resource("AWS::Lambda::Function", MemorySize=1024),
            ]
        )
    }
}
MINUTES = 1440 * 365 / 12


def test_the_parts_are_counted() -> None:
    assert parts_of([TEMPLATE, {"Resources": {}}]) == StageParts(
        alarm_metrics=3,
        composite_alarms=1,
        dashboards=1,
        secrets=1,
        polled_queues=1,
        wake_calls=2 * MINUTES,
        wakes=MINUTES,
        canary_calls=MINUTES,
        reconcile_calls=MINUTES / 5,
        other_calls=MINUTES / 60,
        snapshot_gigabytes=0.5,
    )


def test_an_idle_month_names_each_part_with_its_price() -> None:
    bill = {line.name: line for line in idle_month.bill(parts_of([TEMPLATE]))}

    assert bill["alarms"].dollars == pytest.approx(0.30)
    assert bill["custom metrics"].units == 4 + 3
    assert bill["scheduler"].units == pytest.approx(3 * MINUTES + MINUTES / 5 + MINUTES / 60)
    assert bill["snapshots"].dollars == pytest.approx(1.98, abs=0.01)
    # Five long polls of 20 seconds, and three canaries a minute with a send, a receive and a delete each.
    assert bill["queue requests"].units == pytest.approx(5 * MINUTES * 3 + 9 * MINUTES)


def test_a_stage_without_canary_costs_less() -> None:
    without = {"Resources": {key: value for key, value in TEMPLATE["Resources"].items() if "canary" not in str(value)}}

    assert total(idle_month.bill(parts_of([without]))) < total(idle_month.bill(parts_of([TEMPLATE]))) - 2
