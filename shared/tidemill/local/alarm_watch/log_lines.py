"""The metrics in the log lines of one invocation. Pure.

Our own come from the embedded metric format:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tidemill.local.alarms import MetricKey

#: The first words of the line with which Lambda begins each invocation.
STARTED: Final = "START RequestId:"
#: The lines with which the API reports that it answers a request with 5xx: `tidemill.http.problems`.
SERVER_ERRORS: Final = ("unavailable", "unexpected error", "unreadable job")


@dataclass(frozen=True, slots=True)
class Source:
    """The function that writes to one log group, and the id of the API before it, which may be empty."""

    log_group: str
    function: str
    api_id: str = ""


@dataclass(frozen=True, slots=True)
class Value:
    metric: MetricKey
    #: Epoch milliseconds.
    at_ms: int
    value: float


def values_of(line: str, at_ms: int, source: Source) -> Iterator[Value]:
    """The values of the metrics in one line, which Lambda wrote at this time."""
    if line.startswith(STARTED):
        yield Value(MetricKey("AWS/Lambda", "Invocations", (("FunctionName", source.function),)), at_ms, 1.0)
        # A request without an error counts as 0: the sum of a quiet API is 0, and not missing.
        if source.api_id:
            yield _server_errors(source, at_ms, 0.0)
    elif line.startswith("{"):
        try:
            fields = json.loads(line)
        except ValueError:
            return
        if source.api_id and fields.get("message") in SERVER_ERRORS:
            yield _server_errors(source, at_ms, 1.0)
        try:
            yield from list(embedded_values(fields))
        except (AttributeError, KeyError, TypeError, ValueError):
            # CloudWatch, too, ignores a line that a handler printed and that only looks like this format.
            return


def _server_errors(source: Source, at_ms: int, number: float) -> Value:
    return Value(MetricKey("AWS/ApiGateway", "5xx", (("ApiId", source.api_id),)), at_ms, number)


def embedded_values(fields: dict[str, Any]) -> Iterator[Value]:
    """The metrics that the directives of a line name. A metric is one value or a list of values."""
    about = fields.get("_aws", {})
    for directive in about.get("CloudWatchMetrics", ()):
        for names in directive["Dimensions"]:
            dimensions = tuple(sorted((name, str(fields[name])) for name in names))
            for metric in directive["Metrics"]:
                value = fields[metric["Name"]]
                for each in value if isinstance(value, list) else [value]:
                    key = MetricKey(directive["Namespace"], metric["Name"], dimensions)
                    yield Value(key, about["Timestamp"], float(each))
