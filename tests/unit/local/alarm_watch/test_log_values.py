"""The metrics in log lines: our own from the embedded metric format, and those that AWS would publish."""

import json
from typing import Any, Final

import pytest

from tidemill.local.alarm_watch.log_lines import Source, values_of
from tidemill.local.alarm_watch.watch import OVERLAP_MS, LogReader
from tidemill.local.alarms import MetricKey
from tidemill.metrics import Metric
from tidemill.names import Lane
from tidemill.telemetry.embedded_metrics import embedded

WORK: Final = Source(log_group="/work", function="app-Work")
SUBMIT: Final = Source(log_group="/submit", function="app-Submit", api_id="api1")
AT_MS: Final = 1_800_000_000_000
CALLS: Final = MetricKey("AWS/Lambda", "Invocations", (("FunctionName", "app-Work"),))


def read(line: str, source: Source = WORK) -> list[tuple[MetricKey, float]]:
    return [(found.metric, found.value) for found in values_of(line, AT_MS, source)]


def test_the_metrics_of_a_line_are_those_that_our_telemetry_wrote() -> None:
    line = embedded({Metric.SUCCEEDED: 1, Metric.START_LATENCY: 70}, stage="local", lane=Lane.BULK, job_type="a.b")
    of_lane, of_type = (("lane", "bulk"), ("stage", "local")), (("stage", "local"), ("type", "a.b"))
    assert sorted(read(json.dumps(line)), key=str) == sorted(
        [
            (MetricKey("Tidemill", metric, dimensions), value)
            for metric, value in (("JobsSucceeded", 1.0), ("StartLatency", 70.0))
            for dimensions in (of_lane, of_type)
        ],
        key=str,
    )


def test_a_metric_may_have_several_values() -> None:
    line: dict[str, Any] = embedded({Metric.START_LATENCY: 0}, stage="local", lane=Lane.BULK)
    line[Metric.START_LATENCY] = [5, 7]
    assert [value for _, value in read(json.dumps(line))] == [5.0, 7.0]


def test_a_metric_has_the_time_of_its_directive() -> None:
    line = embedded({Metric.SUBMITTED: 1}, stage="local", lane=Lane.BULK)
    (found,) = values_of(json.dumps(line), AT_MS, WORK)
    assert found.at_ms == line["_aws"]["Timestamp"]


def test_each_invocation_counts_for_its_function() -> None:
    assert read("START RequestId: f1a3c129 Version: $LATEST") == [(CALLS, 1.0)]


def test_a_request_without_a_problem_counts_as_no_server_error() -> None:
    calls = MetricKey("AWS/Lambda", "Invocations", (("FunctionName", "app-Submit"),))
    errors = MetricKey("AWS/ApiGateway", "5xx", (("ApiId", "api1"),))
    assert read("START RequestId: f1a3c129 Version: $LATEST", SUBMIT) == [(calls, 1.0), (errors, 0.0)]


def test_a_line_of_a_problem_is_a_server_error_of_the_api_before_the_function() -> None:
    line = json.dumps({"level": "WARNING", "message": "unavailable"})
    assert read(line, SUBMIT) == [(MetricKey("AWS/ApiGateway", "5xx", (("ApiId", "api1"),)), 1.0)]
    assert read(line, WORK) == []


@pytest.mark.parametrize(
    "line",
    [
        *("", "END RequestId: f1a3c129", "{not json", '{"message": "claimed"}', '{"message": ["unavailable"]}'),
        *('{"_aws": 5}', '{"_aws": {"CloudWatchMetrics": [{"Namespace": "x"}]}}'),
    ],
)
def test_other_lines_have_no_metric(line: str) -> None:
    assert read(line, SUBMIT) == []


class Logs:
    """The lines of one log group, as pairs of stream and message, all of one time."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.since: list[int] = []

    def get_paginator(self, operation: str) -> "Logs":
        assert operation == "filter_log_events"
        return self

    def paginate(self, *, logGroupName: str, startTime: int) -> list[Any]:  # noqa: N803 - the names of the API
        assert logGroupName == WORK.log_group
        self.since.append(startTime)
        return [
            {"events": [{"logStreamName": stream, "message": message, "timestamp": AT_MS}]}
            for stream, message in self.lines
        ]


def test_each_line_is_read_once_though_the_times_overlap() -> None:
    logs = Logs()
    reader = LogReader(logs, [WORK], since_ms=AT_MS)
    logs.lines = [("a", "START RequestId: 1"), ("a", "START RequestId: 2")]
    assert len(list(reader.read(now_ms=AT_MS + 1))) == 2
    logs.lines.append(("b", "START RequestId: 3"))
    assert len(list(reader.read(now_ms=AT_MS + 2))) == 1
    assert logs.since == [AT_MS, AT_MS + 1 - OVERLAP_MS]
