"""Standard queues: visibility timeouts and delays."""

from tests.simulation.conformance.case import Aws, code
from tests.simulation.conformance.citations import SQS, SQS_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated


@cites(
    SQS_GUIDE + "sqs-visibility-timeout.html",
    "This makes the message immediately visible to other components in the system and available for processing.",
)
def test_a_timeout_of_zero_returns_a_message(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive(VisibilityTimeout=600)
    aws.hide(message["ReceiptHandle"], 0)
    assert len(aws.eventually(aws.receive)) == 1


@cites(SQS, "Changes the visibility timeout of a specified message in a queue to a new value.")
def test_a_timeout_may_be_changed(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive(VisibilityTimeout=1)
    aws.hide(message["ReceiptHandle"], 600)
    aws.send("y", DelaySeconds=1)
    (other,) = aws.eventually(aws.receive)
    assert other["Body"] == "y"
    assert aws.receive() == []


@cites(
    SQS,
    "For example, if the default timeout for a queue is 60 seconds, 15 seconds have elapsed since you "
    "received the message, and you send a ChangeMessageVisibility call with VisibilityTimeout set to 10 "
    "seconds, the 10 seconds begin to count from the time that you make the ChangeMessageVisibility call.",
)
def test_a_new_timeout_counts_from_the_call(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive(VisibilityTimeout=60)
    simulated.sleep(15)
    simulated.hide(message["ReceiptHandle"], 10)
    simulated.sleep(9)
    assert simulated.receive() == []
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(
    SQS,
    "Unlike with a queue, when you change the visibility timeout for a specific message the timeout value is "
    "applied immediately but isn't saved in memory for that message.",
)
def test_a_new_timeout_is_for_once(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive()
    simulated.hide(message["ReceiptHandle"], 1)
    simulated.sleep(1.1)
    simulated.receive()
    simulated.sleep(20)
    assert simulated.receive() == []


@cites(SQS, "Values range: 0 to 43200.")
def test_a_timeout_is_twelve_hours_at_most(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive()
    assert code(lambda: aws.hide(message["ReceiptHandle"], 43_201)) == "InvalidParameterValue"


@cites(
    SQS,
    "If you attempt to set the VisibilityTimeout to a value greater than the maximum time left, Amazon SQS "
    "returns an error.",
)
def test_twelve_hours_count_from_the_delivery(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive(VisibilityTimeout=7200)
    simulated.sleep(3600)
    assert code(lambda: simulated.hide(message["ReceiptHandle"], 12 * 3600)) == "InvalidParameterValue"


@cites(SQS, "The specified message isn't in flight.")
def test_only_messages_in_flight_can_be_hidden(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive(VisibilityTimeout=0)
    aws.eventually(lambda: aws.counts()[0] == "1")
    assert code(lambda: aws.hide(message["ReceiptHandle"], 10)).endswith("MessageNotInflight")


@cites(SQS, "The specified receipt handle isn't valid.")
def test_a_receipt_must_be_valid(aws: Aws) -> None:
    aws.send("x")
    assert code(lambda: aws.hide("not-a-receipt", 10)) == "ReceiptHandleIsInvalid"


@cites(
    SQS,
    "Messages with a positive DelaySeconds value become available for processing after the delay period is finished.",
)
def test_a_delayed_message_comes_later(aws: Aws) -> None:
    aws.send("x", DelaySeconds=1)
    assert aws.receive() == []
    assert len(aws.eventually(aws.receive)) == 1


@cites(SQS, "The length of time, in seconds, for which to delay a specific message.")
def test_a_delay_is_kept_to_the_second(simulated: Simulated) -> None:
    simulated.send("x", DelaySeconds=600)
    simulated.sleep(599)
    assert simulated.receive() == []
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(SQS, "Valid values: 0 to 900.")
def test_a_delay_is_a_quarter_of_an_hour_at_most(aws: Aws) -> None:
    assert code(lambda: aws.send("x", DelaySeconds=901)) == "InvalidParameterValue"


@cites(
    SQS,
    "ApproximateNumberOfMessagesDelayed - Returns the approximate number of messages in the queue that are "
    "delayed and not available for reading immediately.",
)
def test_a_queue_reports_its_message_counts(aws: Aws) -> None:
    aws.send("x")
    aws.send("y", DelaySeconds=100)
    aws.receive()
    assert aws.counts() == ["0", "1", "1"]
