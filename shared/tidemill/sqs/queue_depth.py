"""The approximate backlog of a queue and its age, from SQS and CloudWatch."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tidemill.aws.clients import translated
from tidemill.domain.errors import StoreUnavailableError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The metric has one point per minute, one or two minutes late.
_LOOK_BACK: Final = timedelta(minutes=5)


class Backlog(Struct, frozen=True, kw_only=True):
    """The number of messages in one queue."""

    waiting: int
    delayed: int
    in_flight: int

    @property
    def total(self) -> int:
        return self.waiting + self.delayed + self.in_flight


def backlog(client: "SQSClient", url: str) -> Backlog:
    with translated():
        attributes = client.get_queue_attributes(
            QueueUrl=url,
            AttributeNames=[
                "ApproximateNumberOfMessages",
                "ApproximateNumberOfMessagesDelayed",
                "ApproximateNumberOfMessagesNotVisible",
            ],
        )["Attributes"]
    return Backlog(
        waiting=int(attributes["ApproximateNumberOfMessages"]),
        delayed=int(attributes["ApproximateNumberOfMessagesDelayed"]),
        in_flight=int(attributes["ApproximateNumberOfMessagesNotVisible"]),
    )


def oldest_age(client: Any, url: str, *, now: datetime) -> timedelta | None:
    """The age of the oldest message that was received less than three times. None without a recent point.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    with translated():
        points = client.get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": url.rpartition("/")[2]}],
            StartTime=now - _LOOK_BACK,
            EndTime=now,
            Period=60,
            Statistics=["Maximum"],
        )["Datapoints"]
    # The newest point. The largest would still show a backlog that has just drained.
    newest = max(points, key=lambda point: point["Timestamp"], default=None)
    return newest and timedelta(seconds=newest["Maximum"])


def delay(queues: "SQSClient", metrics: Any, url: str, *, now: datetime) -> timedelta:
    """The longest time that a message may have waited in this queue so far; zero for an empty queue.

    Without a metric this is the retention time of the queue. A nudge of a job that only waits adds to the backlog, but
    a lost job can wait longer.
    """
    if backlog(queues, url).waiting == 0:
        return timedelta(0)
    try:
        age = oldest_age(metrics, url, now=now)
    except StoreUnavailableError:
        age = None
    if age is not None:
        return age
    with translated():
        attributes = queues.get_queue_attributes(QueueUrl=url, AttributeNames=["MessageRetentionPeriod"])["Attributes"]
    return timedelta(seconds=int(attributes["MessageRetentionPeriod"]))
