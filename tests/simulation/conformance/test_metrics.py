"""The metric that our code reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.simulation.conformance.case import QUEUE
from tests.simulation.conformance.citations import SQS_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated

METRICS = SQS_GUIDE + "sqs-available-cloudwatch-metrics.html"


def oldest_seconds(simulated: Simulated) -> float:
    now = datetime.fromtimestamp(simulated.scheduler.now_ms / 1000, UTC)
    request: Any = {
        "Namespace": "AWS/SQS",
        "MetricName": "ApproximateAgeOfOldestMessage",
        "Dimensions": [{"Name": "QueueName", "Value": QUEUE}],
        "StartTime": now - timedelta(minutes=5),
        "EndTime": now,
        "Period": 60,
        "Statistics": ["Maximum"],
    }
    (point,) = simulated.cloudwatch.get_metric_statistics(**request)["Datapoints"]
    seconds: float = point["Maximum"]
    return seconds


@cites(METRICS, "The approximate age of the oldest non-deleted message in the queue.")
def test_a_queue_reports_the_age_of_its_oldest_message(simulated: Simulated) -> None:
    simulated.send("x")
    simulated.sleep(600)
    simulated.send("y")
    assert round(oldest_seconds(simulated)) == 600


@cites(
    METRICS,
    "After a message is received three times (or more) and not processed, the message is moved to the back of the "
    "queue and the ApproximateAgeOfOldestMessage metric points at the second-oldest message that hasn't been received "
    "more than three times.",
)
def test_messages_received_three_times_do_not_count(simulated: Simulated) -> None:
    simulated.send("x")
    for _ in range(3):
        simulated.sleep(100)
        simulated.receive(VisibilityTimeout=0)
    simulated.send("y")
    simulated.sleep(50)
    assert round(oldest_seconds(simulated)) == 50
