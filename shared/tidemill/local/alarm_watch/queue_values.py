"""The metrics of queues at one moment, from the queues' attributes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.local.alarms import MetricKey
from tidemill.sqs.queue_depth import Backlog, backlog, oldest_age

_COUNTED: Final[Mapping[str, Callable[[Backlog], int]]] = {
    "ApproximateNumberOfMessagesVisible": lambda found: found.waiting,
    "ApproximateNumberOfMessagesNotVisible": lambda found: found.in_flight,
    "ApproximateNumberOfMessagesDelayed": lambda found: found.delayed,
}


def queue_values(
    wanted: Iterable[MetricKey], sqs: Any, cloudwatch: Any, *, now: datetime
) -> Iterator[tuple[MetricKey, float]]:
    """Those metrics among `wanted` that are of queues. The value of the dimension is the URL of the queue."""
    found: dict[str, Backlog] = {}
    for metric in wanted:
        if metric.namespace != "AWS/SQS":
            continue
        ((_, url),) = metric.dimensions
        if url not in found:
            found[url] = backlog(sqs, url)
        if metric.name in _COUNTED:
            yield metric, float(_COUNTED[metric.name](found[url]))
        elif metric.name == "ApproximateAgeOfOldestMessage":
            # The embedded AWS still reports the age of a message that has left.
            age = oldest_age(cloudwatch, url, now=now) if found[url].total else None
            yield metric, (age or timedelta(0)).total_seconds()
