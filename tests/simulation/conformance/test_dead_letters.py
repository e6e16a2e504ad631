"""Standard queues: dead-letter queues and retention."""

from typing import Any

from tests.simulation.conformance.case import MOST_RECEIVES, Aws
from tests.simulation.conformance.citations import SQS, SQS_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated

DAY_SECONDS = 86_400


def given_up(aws: Aws) -> Any:
    """A message received too often, and the same message in the dead-letter queue."""
    aws.send("x")
    for _ in range(MOST_RECEIVES):
        (received,) = aws.eventually(lambda: aws.receive(VisibilityTimeout=0))

    def dead_letter() -> list[Any]:
        assert aws.receive(VisibilityTimeout=0) == []
        return aws.receive(queue_url=aws.dlq_url)

    (found,) = aws.eventually(dead_letter)
    return received, found


@cites(
    SQS,
    "When the ReceiveCount for a message exceeds the maxReceiveCount for a queue, Amazon SQS moves the message"
    " to the dead-letter-queue.",
)
def test_a_message_received_too_often_goes_to_the_dlq(aws: Aws) -> None:
    _, dead_letter = given_up(aws)
    assert dead_letter["Body"] == "x"
    assert aws.counts() == ["0", "0", "0"]


@cites(
    SQS,
    "maxReceiveCount - The number of times a message is delivered to the source queue before being moved to the "
    "dead-letter queue.",
)
def test_a_message_is_delivered_as_often_as_the_policy_says(aws: Aws) -> None:
    received, _ = given_up(aws)
    assert received["Attributes"]["ApproximateReceiveCount"] == str(MOST_RECEIVES)


@cites(
    SQS,
    "ApproximateReceiveCount - Returns the number of times a message has been received across all queues but not "
    "deleted.",
)
def test_a_dlq_message_keeps_its_receive_count(aws: Aws) -> None:
    _, dead_letter = given_up(aws)
    assert int(dead_letter["Attributes"]["ApproximateReceiveCount"]) > MOST_RECEIVES


@cites(
    SQS_GUIDE + "setting-up-dead-letter-queue-retention.html",
    "For standard queues, the expiration of a message is always based on its original enqueue timestamp. When"
    " a message is moved to a dead-letter queue, the enqueue timestamp is unchanged.",
)
def test_a_dlq_message_keeps_its_sent_time(aws: Aws) -> None:
    received, dead_letter = given_up(aws)
    assert dead_letter["Attributes"]["SentTimestamp"] == received["Attributes"]["SentTimestamp"]


@cites(
    SQS_GUIDE + "setting-up-dead-letter-queue-retention.html",
    "For standard queues, the expiration of a message is always based on its original enqueue timestamp.",
)
def test_a_dlq_message_expires_by_its_sent_time(simulated: Simulated) -> None:
    simulated.send("x")
    for _ in range(MOST_RECEIVES):
        simulated.sleep(DAY_SECONDS)
        simulated.receive(VisibilityTimeout=0)
    assert simulated.receive() == []
    assert simulated.counts(simulated.dlq_url) == ["1", "0", "0"]
    simulated.sleep(DAY_SECONDS)
    assert simulated.receive(queue_url=simulated.dlq_url) == []


@cites(
    SQS,
    "Amazon SQS automatically deletes messages left in a queue longer than the retention period configured "
    "for the queue.",
)
def test_messages_expire_after_the_retention_period(simulated: Simulated) -> None:
    simulated.send("x")
    simulated.sleep(4 * 86_400 + 1)
    assert simulated.receive() == []
