"""Reads the alarms of a CloudFormation template."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tidemill.local.alarms.definition import CompositeAlarm, MetricAlarm, MetricKey, Missing, Query
from tidemill.local.alarms.metric_math import UnsupportedError

_ALARM: Final = "AWS::CloudWatch::Alarm"
_COMPOSITE: Final = "AWS::CloudWatch::CompositeAlarm"
#: What the evaluator knows about. Another property may change what the alarm does, so it is refused.
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    _ALARM: frozenset(
        {
            *("AlarmDescription", "AlarmActions", "OKActions", "Tags", "TreatMissingData", "Threshold"),
            *("ComparisonOperator", "EvaluationPeriods", "DatapointsToAlarm", "Metrics", "Namespace", "MetricName"),
            *("Dimensions", "Period", "Statistic", "ExtendedStatistic", "Unit"),
        }
    ),
    _COMPOSITE: frozenset({"AlarmDescription", "AlarmActions", "OKActions", "Tags", "AlarmRule"}),
}
#: What `Ref` and `Fn::GetAtt` yield for a logical id.
Resolve = Callable[[str], str]


def read_alarms(
    resources: Mapping[str, Mapping[str, Any]], *, resolve: Resolve = str
) -> Iterator[MetricAlarm | CompositeAlarm]:
    """The alarms among the `Resources` of a template. By default references stand for the logical ids themselves.

    Raises `UnsupportedError` for a property that the evaluator does not implement.
    """
    for id_, resource in resources.items():
        kind = resource["Type"]
        if kind not in _KNOWN:
            continue
        properties = {name: text(value, resolve) for name, value in resource["Properties"].items()}
        if unknown := properties.keys() - _KNOWN[kind]:
            raise UnsupportedError(f"{id_}: not implemented: {', '.join(sorted(unknown))}")
        yield _metric_alarm(resolve(id_), properties) if kind == _ALARM else _composite(resolve(id_), properties)


def text(value: Any, resolve: Resolve) -> Any:
    """`value` with each reference and each join replaced by its text."""
    match value:
        case {"Ref": str(id_)} | {"Fn::GetAtt": [str(id_), *_]}:
            return resolve(id_)
        case {"Fn::Join": [separator, parts]}:
            return separator.join(map(str, text(parts, resolve)))
        case {"Fn::ImportValue": str(export)}:
            return export
        case dict():
            return {key: text(part, resolve) for key, part in value.items()}
        case list():
            return [text(part, resolve) for part in value]
    return value


def _metric_alarm(name: str, properties: Mapping[str, Any]) -> MetricAlarm:
    terms = properties.get("Metrics") or [_single(properties)]
    stats = [(term["Id"], term["MetricStat"]) for term in terms if "MetricStat" in term]
    (shown,) = (term for term in terms if term.get("ReturnData", True))
    (period,) = {stat["Period"] for _, stat in stats}
    return MetricAlarm(
        name=name,
        queries=tuple(Query(id_, _key(stat["Metric"]), stat["Stat"]) for id_, stat in stats),
        expression=shown.get("Expression", shown["Id"]),
        period_minutes=period // 60,
        evaluation_periods=properties["EvaluationPeriods"],
        datapoints_to_alarm=properties.get("DatapointsToAlarm", properties["EvaluationPeriods"]),
        threshold=float(properties["Threshold"]),
        comparison=properties["ComparisonOperator"],
        missing=Missing(properties.get("TreatMissingData", Missing.MISSING)),
        **_common(properties),
    )


def _single(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    stat = properties.get("Statistic") or properties["ExtendedStatistic"]
    return {"Id": "m1", "MetricStat": {"Metric": properties, "Stat": stat, "Period": properties["Period"]}}


def _key(metric: Mapping[str, Any]) -> MetricKey:
    dimensions = sorted((each["Name"], str(each["Value"])) for each in metric.get("Dimensions", ()))
    return MetricKey(metric["Namespace"], metric["MetricName"], tuple(dimensions))


def _composite(name: str, properties: Mapping[str, Any]) -> CompositeAlarm:
    return CompositeAlarm(name=name, rule_text=properties["AlarmRule"], **_common(properties))


def _common(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "description": properties.get("AlarmDescription", ""),
        "alarm_actions": tuple(properties.get("AlarmActions", ())),
        "ok_actions": tuple(properties.get("OKActions", ())),
    }
