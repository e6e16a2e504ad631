"""What the synthesised templates of a stage have that costs by the month, whether or not jobs come."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from tidemill.cost.resources import function_of, properties_of
from tidemill.domain.waiting.schedule_times import Rate, parse
from tidemill.names import WAKE_PARTS

#: The memory of a function that names none: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_DEFAULT_MEMORY_MB: Final = 128
_MINUTES_PER_DAY: Final = 24 * 60
_MINUTES_PER_MONTH: Final = 365 * _MINUTES_PER_DAY / 12
#: The entry points whose calls are counted apart.
_VERBS: Final = ("wake", "canary", "reconcile")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageParts:
    """Numbers of resources; calls are a month's."""

    alarm_metrics: int
    composite_alarms: int
    dashboards: int
    secrets: int
    #: Event source mappings of queues.
    polled_queues: int
    wake_calls: float
    #: Minutes at which wake is called in a month, by all its parallel calls.
    wakes: float
    canary_calls: float
    reconcile_calls: float
    #: Calls of periodic jobs, and of any other schedule.
    other_calls: float
    #: Memory of the functions with SnapStart. Each has one version at least.
    snapshot_gigabytes: float = 0

    @property
    def calls(self) -> float:
        return self.wake_calls + self.canary_calls + self.reconcile_calls + self.other_calls


def parts_of(templates: Iterable[Mapping[str, Any]]) -> StageParts:
    """Count the parts of all stacks of one stage."""
    stacks = [template.get("Resources", {}) for template in templates]
    resources = [resource for stack in stacks for resource in stack.values()]
    kinds = Counter(resource["Type"] for resource in resources)
    calls: defaultdict[str, float] = defaultdict(float)
    wakes = 0.0
    for stack in stacks:
        for schedule in properties_of(stack.values(), "AWS::Scheduler::Schedule"):
            a_month, called = calls_per_month(schedule["ScheduleExpression"]), _called(stack, schedule)
            calls[called] += a_month
            if called == "wake":
                wakes += a_month / int(_event(schedule)[WAKE_PARTS])
    return StageParts(
        alarm_metrics=sum(map(_metrics, properties_of(resources, "AWS::CloudWatch::Alarm"))),
        composite_alarms=kinds["AWS::CloudWatch::CompositeAlarm"],
        dashboards=kinds["AWS::CloudWatch::Dashboard"],
        secrets=kinds["AWS::SecretsManager::Secret"],
        polled_queues=sum(
            "ScalingConfig" in mapping for mapping in properties_of(resources, "AWS::Lambda::EventSourceMapping")
        ),
        wake_calls=calls["wake"],
        wakes=wakes,
        canary_calls=calls["canary"],
        reconcile_calls=calls["reconcile"],
        other_calls=calls["other"],
        snapshot_gigabytes=sum(
            function.get("MemorySize", _DEFAULT_MEMORY_MB) / 1024
            for function in properties_of(resources, "AWS::Lambda::Function")
            if function.get("SnapStart", {}).get("ApplyOn") == "PublishedVersions"
        ),
    )


def calls_per_month(expression: str) -> float:
    """Calls of a schedule. A single time is one call. A cron expression counts its minutes and hours, and each day.

    An app may have a schedule of its own that `parse` refuses. It counts as one that calls each minute, an upper bound.
    """
    if expression.startswith("at("):
        return 1
    try:
        schedule = parse(expression)
    except ValueError:
        return _MINUTES_PER_MONTH
    if isinstance(schedule, Rate):
        return _MINUTES_PER_MONTH / (schedule.period / timedelta(minutes=1))
    return len(schedule.minutes) * len(schedule.hours) * _MINUTES_PER_MONTH / _MINUTES_PER_DAY


def _metrics(alarm: Mapping[str, Any]) -> int:
    """CloudWatch charges for each metric that the alarm reads, also within an expression."""
    return sum("MetricStat" in query for query in alarm["Metrics"]) if "Metrics" in alarm else 1


def _event(schedule: Mapping[str, Any]) -> Mapping[str, Any]:
    event = schedule["Target"].get("Input") or "{}"
    found: Mapping[str, Any] = json.loads(event) if isinstance(event, str) else {}
    return found


def _called(stack: Mapping[str, Any], schedule: Mapping[str, Any]) -> str:
    """The entry point of the engine that the schedule calls, of those that are counted apart."""
    handler = function_of(stack, schedule["Target"]["Arn"]).get("Handler", "")
    return next((verb for verb in _VERBS if handler == f"tidemill.entrypoints.{verb}.handle"), "other")
