"""The alarms of the deployed app: those of the template with all of them, with the names of the deployed resources.

The stage `local` leaves out what CloudFormation on the embedded AWS refuses: alarms on several metrics, and composites.
`put_missing` makes them through the API, which accepts both.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidemill.local.alarms import CompositeAlarm, MetricAlarm, State, read_alarms

AnyAlarm = MetricAlarm | CompositeAlarm


def read_installed(templates: Mapping[str, Mapping[str, Any]], cloudformation: Any) -> list[AnyAlarm]:
    """`templates` are those with all alarms, by the name of their stack.

    The value of a dimension that refers to a resource is its physical id: the URL of a queue, the ARN of a topic.
    """
    exports = {
        export["Name"]: export["Value"]
        for page in cloudformation.get_paginator("list_exports").paginate()
        for export in page["Exports"]
    }
    found: list[AnyAlarm] = []
    for stack, template in templates.items():
        for alarm in read_alarms(template["Resources"], resolve=resolver(stack, cloudformation)):
            fires, resolves = (_imported(actions, exports) for actions in (alarm.alarm_actions, alarm.ok_actions))
            found.append(replace(alarm, alarm_actions=fires, ok_actions=resolves))
    return found


def resolver(stack: str, cloudformation: Any) -> Callable[[str], str]:
    """What a logical id of the stack refers to: a physical id, or the name of an alarm that the watch creates."""
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
    deployed = {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in pages
        for resource in page["StackResourceSummaries"]
    }
    # CloudFormation names an alarm after its stack and its logical id, and so does this.
    return lambda id_: deployed.get(id_, f"{stack}-{id_}")


def states(cloudwatch: Any, **names: Any) -> dict[str, State]:
    """The state of each alarm by its name. `names` may select some, as `AlarmNames=[…]`."""
    types = ["MetricAlarm", "CompositeAlarm"]
    pages = cloudwatch.get_paginator("describe_alarms").paginate(AlarmTypes=types, **names)
    return {
        alarm["AlarmName"]: State(alarm["StateValue"])
        for page in pages
        for alarm in (*page["MetricAlarms"], *page["CompositeAlarms"])
    }


def put_missing(cloudwatch: Any, alarms: Sequence[AnyAlarm]) -> None:
    """Create the alarms that do not exist."""
    known = states(cloudwatch).keys()
    for alarm in children_first(alarms):
        if alarm.name in known:
            continue
        if isinstance(alarm, CompositeAlarm):
            cloudwatch.put_composite_alarm(AlarmRule=alarm.rule_text, **_common(alarm))
        else:
            cloudwatch.put_metric_alarm(
                Metrics=list(_metrics(alarm)),
                EvaluationPeriods=alarm.evaluation_periods,
                DatapointsToAlarm=alarm.datapoints_to_alarm,
                Threshold=alarm.threshold,
                ComparisonOperator=alarm.comparison,
                TreatMissingData=alarm.missing.value,
                **_common(alarm),
            )


def children_first(alarms: Sequence[AnyAlarm]) -> Iterator[AnyAlarm]:
    """A composite comes after the alarms in its rule."""
    waiting = {alarm.name: alarm for alarm in alarms}

    def take(name: str) -> Iterator[AnyAlarm]:
        alarm = waiting.pop(name, None)
        for child in sorted(alarm.rule.children) if isinstance(alarm, CompositeAlarm) else ():
            yield from take(child)
        if alarm:
            yield alarm

    for alarm in alarms:
        yield from take(alarm.name)


def _imported(actions: Iterable[str], exports: Mapping[str, str]) -> tuple[str, ...]:
    """The topics of another stack, which the template names by their export."""
    return tuple(exports.get(action, action) for action in actions)


def _common(alarm: AnyAlarm) -> dict[str, Any]:
    return {
        "AlarmName": alarm.name,
        "AlarmDescription": alarm.description,
        "AlarmActions": list(alarm.alarm_actions),
        "OKActions": list(alarm.ok_actions),
    }


def _metrics(alarm: MetricAlarm) -> Iterator[dict[str, Any]]:
    for query in alarm.queries:
        metric = {
            "Namespace": query.metric.namespace,
            "MetricName": query.metric.name,
            "Dimensions": [{"Name": name, "Value": value} for name, value in query.metric.dimensions],
        }
        stat = {"Metric": metric, "Period": 60 * alarm.period_minutes, "Stat": query.statistic}
        yield {"Id": query.id, "MetricStat": stat, "ReturnData": False}
    yield {"Id": "judged", "Expression": alarm.expression, "ReturnData": True}
