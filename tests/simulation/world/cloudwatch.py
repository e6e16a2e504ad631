"""The simulated CloudWatch: the SQS metric that our code reads, and our log lines with their metrics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from tests.simulation.world.sqs import SQS
from tests.simulation.world.task_scheduler import Scheduler
from tidemill.metrics import Metric

#: "the metric points at the second-oldest message that hasn't been received more than three times"
_UNCOUNTED_RECEIVES: Final = 3


@dataclass(frozen=True, slots=True)
class Line:
    """A log line: the name of the process that wrote it, its message and its fields."""

    by: str
    message: str
    fields: Mapping[str, Any]

    @property
    def metrics(self) -> dict[Metric, float]:
        """Extract the metrics as CloudWatch does: the members that the directives name."""
        directives = self.fields.get("_aws", {}).get("CloudWatchMetrics", ())
        named = [metric["Name"] for directive in directives for metric in directive["Metrics"]]
        return {Metric(name): self.fields[name] for name in named}


class CloudWatch:
    """`ApproximateAgeOfOldestMessage` of the queues of one world; `watchers` get each metric of ours, and the lines."""

    def __init__(self, scheduler: Scheduler, sqs: SQS) -> None:
        self._scheduler = scheduler
        self._sqs = sqs
        self.watchers: list[Callable[[Metric], None]] = []
        self.line_watchers: list[Callable[[Line], None]] = []

    def put_line(self, by: str, message: str, fields: Mapping[str, Any]) -> None:
        line = Line(by, message, fields)
        for watch_line in self.line_watchers:
            watch_line(line)
        for metric in line.metrics:
            for watch in self.watchers:
                watch(metric)

    def get_metric_statistics(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = request["Dimensions"][0]["Value"]
        queue = next(queue for queue in self._sqs.queues.values() if queue.name == name)
        now_ms = self._scheduler.now_ms
        ages_ms = [now_ms - message.sent_ms for message in queue.messages if message.receives < _UNCOUNTED_RECEIVES]
        point = {"Timestamp": datetime.fromtimestamp(now_ms / 1000, UTC), "Maximum": max(ages_ms, default=0) / 1000}
        return {"Label": request["MetricName"], "Datapoints": [point]}
