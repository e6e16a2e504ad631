"""How much waits in a queue, and for how long, as SQS and CloudWatch tell it: approximately."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import translated
from tidemill.domain.errors import StoreUnavailableError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The metric has a point each minute, a minute or two late.
_LOOK_BACK: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """The messages of one queue."""

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
    """How long the oldest message has waited, of those received less than three times. None without a recent point.

    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
    """
    with translated():
        points = client.get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": url.rsplit("/", 1)[-1]}],
            StartTime=now - _LOOK_BACK,
            EndTime=now,
            Period=60,
            Statistics=["Maximum"],
        )["Datapoints"]
    # The newest point: the largest would go on showing a backlog that has just been worked off.
    newest = max(points, key=lambda point: point["Timestamp"], default=None)
    return newest and timedelta(seconds=newest["Maximum"])


def delay(queues: "SQSClient", metrics: Any, url: str, *, now: datetime) -> timedelta:
    """How long a message may have waited in this queue by now: no time when none waits.

    Where CloudWatch does not say, as long as the queue keeps one. To take what only waits for lost adds to the backlog,
    and what is lost can wait.
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
