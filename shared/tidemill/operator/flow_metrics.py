"""How many jobs came into each lane and left it in the last minutes, and how far publish lags behind, from metrics."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import translated
from tidemill.names import METRIC_NAMESPACE, Metric

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

#: Metrics come one or two minutes late, and a longer time would hide what happens now.
WINDOW: Final = timedelta(minutes=5)
#: What enters a lane, and what becomes of it, in the order shown.
COUNTED: Final = (
    Metric.SUBMITTED,
    Metric.DISPATCHED,
    Metric.SUCCEEDED,
    Metric.RETRIED,
    Metric.DEAD,
    Metric.CANCELLED,
)
_PERIOD_SECONDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The last `WINDOW`."""

    #: By lane, then by metric. A metric without a point is 0.
    lanes: Mapping[str, Mapping[Metric, int]]
    #: The age of the oldest stream record that publish got last. None without a recent point: publish was not called.
    publish_lag: timedelta | None


def read(client: "CloudWatchClient", *, stage: str, lanes: Sequence[str], publisher: str, now: datetime) -> Flow | None:
    """None if this installation never wrote a metric, as on the embedded AWS."""
    queries = [
        _query(f"m{number}l{place}", METRIC_NAMESPACE, metric, "Sum", {"stage": stage, "lane": lane})
        for place, lane in enumerate(lanes)
        for number, metric in enumerate(COUNTED)
    ]
    queries.append(_query("lag", "AWS/Lambda", "IteratorAge", "Maximum", {"FunctionName": publisher}))
    values: dict[str, list[float]] = {}
    with translated():
        request: Any = {"MetricDataQueries": queries, "StartTime": now - WINDOW, "EndTime": now}
        # The newest value comes first: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
        for page in client.get_paginator("get_metric_data").paginate(**request, ScanBy="TimestampDescending"):
            for result in page["MetricDataResults"]:
                values.setdefault(result["Id"], []).extend(result["Values"])
        if not any(values.values()) and not any(_written(client, stage)):
            return None
    lag = values.get("lag")
    return Flow(
        lanes={
            lane: {metric: round(sum(values.get(f"m{number}l{place}", ()))) for number, metric in enumerate(COUNTED)}
            for place, lane in enumerate(lanes)
        },
        publish_lag=timedelta(milliseconds=lag[0]) if lag else None,
    )


def _written(client: "CloudWatchClient", stage: str) -> Iterator[Any]:
    """The metrics of this stage that had a value in the last two weeks."""
    answer = client.list_metrics(Namespace=METRIC_NAMESPACE, Dimensions=[{"Name": "stage", "Value": stage}])
    yield from answer["Metrics"]


def _query(id_: str, namespace: str, name: str, statistic: str, dimensions: Mapping[str, str]) -> dict[str, Any]:
    return {
        "Id": id_,
        "MetricStat": {
            "Metric": {
                "Namespace": namespace,
                "MetricName": name,
                "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions.items()],
            },
            "Period": _PERIOD_SECONDS,
            "Stat": statistic,
        },
    }
