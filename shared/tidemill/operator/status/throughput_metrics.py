"""The last minutes in metrics: what entered each lane and left it, how each type fared, and how late publish is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tidemill.aws.clients import translated
from tidemill.metrics import METRIC_NAMESPACE, Metric

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

#: Metrics come one or two minutes late, and a longer time would hide what happens now.
WINDOW: Final = timedelta(minutes=5)
#: The messages that publish sent to a lane, which SQS counts.
SENT: Final = "MessagesSent"
#: What enters a lane, and what becomes of it, in the order shown.
COUNTED: Final = (
    Metric.SUBMITTED,
    Metric.ADDED,
    SENT,
    Metric.SUCCEEDED,
    Metric.RETRIED,
    Metric.DEAD,
    Metric.CANCELLED,
)
#: How the runs of a type ended, where the stage measures types.
COUNTED_BY_TYPE: Final = (Metric.SUCCEEDED, Metric.RETRIED, Metric.DEAD)
_PERIOD_SECONDS: Final = 60
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
_MOST_QUERIES: Final = 500
Name = TypeVar("Name", bound=str)
#: What a query is for.
_Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeThroughput:
    """One type, or `other`: all types that the stage does not measure by themselves."""

    counts: Mapping[Metric, int]
    #: The longest time that a job waited for its run, of the runs that began. None without a run.
    longest_wait: timedelta | None

    @property
    def failures(self) -> int:
        return self.counts[Metric.RETRIED] + self.counts[Metric.DEAD]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The last `WINDOW`. A metric without a point is 0."""

    #: By lane, then by name, as in `COUNTED`.
    lanes: Mapping[str, Mapping[str, int]]
    #: By type. Empty if the stage does not measure types.
    types: Mapping[str, TypeThroughput]
    #: The age of the oldest stream record that publish got last. None without a recent point: publish was not called.
    publish_lag: timedelta | None


def read(
    client: "CloudWatchClient", *, stage: str, lanes: Mapping[str, str], publisher: str, now: datetime
) -> Throughput | None:
    """None if this installation wrote no metric in the last two weeks, as on the embedded AWS.

    `lanes` has the name of each lane's queue.
    """
    written = _written(client, stage)
    if not written:
        return None
    types = sorted({dimensions["type"] for dimensions in written if "type" in dimensions})
    queries: dict[_Key, dict[str, Any]] = {
        ("lag",): _query("AWS/Lambda", "IteratorAge", "Maximum", {"FunctionName": publisher}),
        **{
            ("lane", lane, each): _sent(queue) if each == SENT else _ours(each, "Sum", stage=stage, lane=lane)
            for lane, queue in lanes.items()
            for each in COUNTED
        },
        **{
            ("type", name, each): _ours(each, "Sum", stage=stage, type=name)
            for name in types
            for each in COUNTED_BY_TYPE
        },
        **{("wait", name): _ours(Metric.START_LATENCY, "Maximum", stage=stage, type=name) for name in types},
    }
    values = _newest_first(client, queries, now=now)

    def counts(kind: str, name: str, metrics: Sequence[Name]) -> dict[Name, int]:
        return {each: round(sum(values[kind, name, each])) for each in metrics}

    lag = values["lag",]
    return Throughput(
        lanes={lane: counts("lane", lane, COUNTED) for lane in lanes},
        types={
            name: TypeThroughput(
                counts=counts("type", name, COUNTED_BY_TYPE), longest_wait=_longest(values["wait", name])
            )
            for name in types
        },
        publish_lag=timedelta(milliseconds=lag[0]) if lag else None,
    )


def _written(client: "CloudWatchClient", stage: str) -> list[dict[str, str]]:
    """The dimensions of each metric of this stage that had a value in the last two weeks."""
    pages = client.get_paginator("list_metrics").paginate(
        Namespace=METRIC_NAMESPACE, Dimensions=[{"Name": "stage", "Value": stage}]
    )
    with translated():
        return [
            {each["Name"]: each["Value"] for each in metric["Dimensions"]}
            for page in pages
            for metric in page["Metrics"]
        ]


def _newest_first(
    client: "CloudWatchClient", queries: Mapping[_Key, dict[str, Any]], *, now: datetime
) -> dict[_Key, list[float]]:
    """The values of the last `WINDOW` by the key of their query."""
    keys = list(queries)
    values: dict[_Key, list[float]] = {key: [] for key in keys}
    for start in range(0, len(keys), _MOST_QUERIES):
        numbered: Any = [
            queries[key] | {"Id": f"m{number}"} for number, key in enumerate(keys[start : start + _MOST_QUERIES], start)
        ]
        pages = client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=numbered, StartTime=now - WINDOW, EndTime=now, ScanBy="TimestampDescending"
        )
        with translated():
            for page in pages:
                for result in page["MetricDataResults"]:
                    values[keys[int(result["Id"][1:])]] += result["Values"]
    return values


def _longest(milliseconds: Sequence[float]) -> timedelta | None:
    return timedelta(milliseconds=max(milliseconds)) if milliseconds else None


def _sent(queue: str) -> dict[str, Any]:
    return _query("AWS/SQS", "NumberOfMessagesSent", "Sum", {"QueueName": queue})


def _ours(metric: str, statistic: str, **dimensions: str) -> dict[str, Any]:
    return _query(METRIC_NAMESPACE, metric, statistic, dimensions)


def _query(namespace: str, name: str, statistic: str, dimensions: Mapping[str, str]) -> dict[str, Any]:
    return {
        "MetricStat": {
            "Metric": {
                "Namespace": namespace,
                "MetricName": name,
                "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions.items()],
            },
            "Period": _PERIOD_SECONDS,
            "Stat": statistic,
        }
    }
