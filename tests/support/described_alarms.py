"""Stands in for the alarms of CloudWatch, beside a client of moto, which has neither composites nor metric math."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tidemill.local.alarms.metric_math import parse_expression


@dataclass
class DescribedAlarms:
    """A client of CloudWatch. `others` answers all calls that concern no alarm."""

    others: Any = None
    #: The alarms that `DescribeAlarms` returns.
    metric_alarms: list[dict[str, Any]] = field(default_factory=list)
    composites: list[dict[str, Any]] = field(default_factory=list)
    #: The value of a metric over any time, by name. No data of metrics that are missing here.
    values: dict[str, float] = field(default_factory=dict)
    #: The windows for which metric math was asked.
    windows: list[timedelta] = field(default_factory=list)

    def get_paginator(self, operation: str) -> Any:
        return self if operation == "describe_alarms" else self.others.get_paginator(operation)

    def paginate(self, *, AlarmNamePrefix: str, AlarmTypes: list[str], **_: object) -> Iterator[Mapping[str, Any]]:  # noqa: N803 - the names in the API
        found = {"MetricAlarm": self.metric_alarms, "CompositeAlarm": self.composites}
        for kind in AlarmTypes:
            yield {f"{kind}s": [alarm for alarm in found[kind] if alarm["AlarmName"].startswith(AlarmNamePrefix)]}

    def get_metric_data(self, **request: Any) -> Any:
        """Answer the queries of one alarm, with the values of the same time for all of its metrics."""
        self.windows.append(request["EndTime"] - request["StartTime"])
        queries = request["MetricDataQueries"]
        values = {
            query["Id"]: self.values.get(query["MetricStat"]["Metric"]["MetricName"])
            for query in queries
            if "MetricStat" in query
        }
        (shown,) = (query for query in queries if query.get("ReturnData", True))
        value = parse_expression(shown["Expression"]).evaluate(values)
        return {"MetricDataResults": [{"Id": shown["Id"], "Values": [] if value is None else [value]}]}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.others, name)
