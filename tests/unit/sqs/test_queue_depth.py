"""The backlog of a queue, and the delay of its lane: what `status` shows, and what reconcile allows for."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW
from tidemill.domain.errors import StoreUnavailableError
from tidemill.sqs.queue_depth import Backlog, backlog, delay

URL = "https://sqs.eu-central-1.amazonaws.com/111122223333/lane"
DAY_SECONDS = 86_400


class Queue:
    """Answers `GetQueueAttributes`."""

    def __init__(self, waiting: int) -> None:
        self.waiting = waiting

    def get_queue_attributes(self, **request: Any) -> dict[str, dict[str, str]]:
        assert request["QueueUrl"] == URL
        known = {
            "ApproximateNumberOfMessages": self.waiting,
            "ApproximateNumberOfMessagesDelayed": 20,
            "ApproximateNumberOfMessagesNotVisible": 300,
            "MessageRetentionPeriod": 4 * DAY_SECONDS,
        }
        return {"Attributes": {name: str(known[name]) for name in request["AttributeNames"]}}


class Metrics:
    """Answers `GetMetricStatistics` with these ages by minutes ago, or not at all."""

    def __init__(self, ages: dict[int, float] | None) -> None:
        self.ages = ages

    def get_metric_statistics(self, **request: Any) -> dict[str, Any]:
        assert request == {
            "Namespace": "AWS/SQS",
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Dimensions": [{"Name": "QueueName", "Value": "lane"}],
            "StartTime": NOW - timedelta(minutes=5),
            "EndTime": NOW,
            "Period": 60,
            "Statistics": ["Maximum"],
        }
        if self.ages is None:
            raise StoreUnavailableError
        points = [{"Timestamp": NOW - timedelta(minutes=ago), "Maximum": age} for ago, age in self.ages.items()]
        return {"Datapoints": points}


def test_the_backlog_counts_every_message() -> None:
    queue: Any = Queue(1)

    found = backlog(queue, URL)

    assert found == Backlog(waiting=1, delayed=20, in_flight=300)
    assert found.total == 321


@pytest.mark.parametrize(
    ("waiting", "ages", "expected"),
    [
        (0, {1: 600.0}, 0),
        (1, {4: 9000.0, 2: 600.0, 3: 900.0}, 600),
        (1, {}, 4 * DAY_SECONDS),
        (1, None, 4 * DAY_SECONDS),
    ],
    ids=["nothing waits", "the newest age counts", "no recent age", "CloudWatch is out"],
)
def test_the_delay_of_a_lane_is_the_age_of_its_oldest_message(
    waiting: int, ages: dict[int, float] | None, expected: int
) -> None:
    queue: Any = Queue(waiting)
    assert delay(queue, Metrics(ages), URL, now=NOW) == timedelta(seconds=expected)
