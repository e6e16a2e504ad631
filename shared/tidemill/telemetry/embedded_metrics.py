"""CloudWatch's embedded metric format: members of a log line that CloudWatch also takes as metrics.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

A metric is a member of the line that a directive names. A directive holds at most 100 metrics; we write a few. A unit
is optional, and without one it is `None`: units would lengthen each line by a tenth, so docs/reference/metrics.md
states them instead.

The metrics of Powertools print a line of their own, with two writes, which lines of other threads can separate.
"""

from collections.abc import Mapping
from typing import Any, Final

from tidemill.metrics import METRIC_NAMESPACE, METRICS_BY_TYPE, Metric
from tidemill.names import Lane
from tidemill.system import clock

#: The metrics of one line.
Values = Mapping[Metric, float]

_LANE: Final = ["stage", "lane"]
_TYPE: Final = ["stage", "type"]


def embedded(values: Values, *, stage: str, lane: Lane, job_type: str | None = None) -> dict[str, Any]:
    """The members that a line needs to carry these metrics; none without metrics.

    With `job_type`, the metrics of `METRICS_BY_TYPE` also count for that type.
    """
    if not values:
        return {}
    typed = [metric for metric in values if job_type and metric in METRICS_BY_TYPE]
    others = [metric for metric in values if metric not in typed]
    directives = [
        {"Namespace": METRIC_NAMESPACE, "Dimensions": dimensions, "Metrics": [{"Name": name} for name in metrics]}
        for dimensions, metrics in (([_LANE, _TYPE], typed), ([_LANE], others))
        if metrics
    ]
    members: dict[str, Any] = {
        "stage": stage,
        "lane": lane,
        **({"type": job_type} if typed else {}),
        "_aws": {"Timestamp": round(clock.now().timestamp() * 1000), "CloudWatchMetrics": directives},
    }
    return members | {str(metric): value for metric, value in values.items()}
