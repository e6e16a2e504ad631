"""The simulated CloudWatch: the SQS metric that our code reads, and the metrics that our functions write."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tests.simulation.world.sqs import SQS
from tests.simulation.world.task_scheduler import Scheduler
from tidemill.names import Metric

#: "the metric points at the second-oldest message that hasn't been received more than three times"
_UNCOUNTED_RECEIVES: Final = 3


class CloudWatch:
    """`ApproximateAgeOfOldestMessage` of the queues of one world; `watchers` get each metric of ours."""

    def __init__(self, scheduler: Scheduler, sqs: SQS) -> None:
        self._scheduler = scheduler
        self._sqs = sqs
        self.watchers: list[Callable[[Metric], None]] = []

    def count(self, metric: Metric) -> None:
        for watch in self.watchers:
            watch(metric)

    def get_metric_statistics(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = request["Dimensions"][0]["Value"]
        queue = next(queue for queue in self._sqs.queues.values() if queue.name == name)
        now_ms = self._scheduler.now_ms
        ages_ms = [now_ms - message.sent_ms for message in queue.messages if message.receives < _UNCOUNTED_RECEIVES]
        point = {"Timestamp": datetime.fromtimestamp(now_ms / 1000, UTC), "Maximum": max(ages_ms, default=0) / 1000}
        return {"Label": request["MetricName"], "Datapoints": [point]}
