"""Standard queues: receives, deletes and their order."""

from tests.simulation.conformance.case import Aws, code
from tests.simulation.conformance.citations import SQS, SQS_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault


@cites(SQS, "A new receipt handle is returned every time you receive a message.")
def test_each_delivery_has_a_receipt_of_its_own(aws: Aws) -> None:
    aws.send("x")
    (first,) = aws.receive(VisibilityTimeout=0)
    (second,) = aws.eventually(aws.receive)
    assert first["ReceiptHandle"] != second["ReceiptHandle"]
    assert first["MessageId"] == second["MessageId"]


@cites(
    SQS,
    "When a message is received from a queue, it becomes temporarily invisible to other consumers for the duration of "
    "the visibility timeout.",
)
def test_a_received_message_is_hidden(aws: Aws) -> None:
    aws.send("x")
    assert len(aws.receive()) == 1
    assert aws.receive() == []


@cites(SQS, "If not specified, the default visibility timeout for the queue is used, which is 30 seconds.")
def test_a_message_is_hidden_for_the_timeout_of_its_queue(simulated: Simulated) -> None:
    simulated.send("x")
    simulated.receive()
    simulated.sleep(29)
    assert simulated.receive() == []
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(SQS, "You can provide the VisibilityTimeout parameter in your request.")
def test_a_consumer_may_ask_for_another_timeout(aws: Aws) -> None:
    aws.send("x")
    aws.receive(VisibilityTimeout=1)
    assert aws.receive() == []
    assert len(aws.eventually(aws.receive)) == 1


@cites(
    SQS,
    "A message that isn't deleted or a message whose visibility isn't extended before the visibility timeout "
    "expires counts as a failed receive.",
)
def test_each_delivery_counts(aws: Aws) -> None:
    aws.send("x")
    deliveries = [aws.eventually(lambda: aws.receive(VisibilityTimeout=0)) for _ in range(3)]
    assert [message["Attributes"]["ApproximateReceiveCount"] for (message,) in deliveries] == ["1", "2", "3"]


@cites(SQS, "If you use an old ReceiptHandle, the request will succeed")
def test_a_delete_with_a_stale_receipt_succeeds(aws: Aws) -> None:
    aws.send("x")
    (first,) = aws.receive(VisibilityTimeout=0)
    aws.eventually(lambda: aws.receive(VisibilityTimeout=0))
    aws.delete(first)


@cites(SQS, "If you use an old ReceiptHandle, the request will succeed, but the message might not be deleted.")
def test_a_stale_receipt_deletes_nothing_silently(simulated: Simulated) -> None:
    simulated.send("x")
    (first,) = simulated.receive(VisibilityTimeout=0)
    simulated.eventually(lambda: simulated.receive(VisibilityTimeout=0))
    simulated.delete(first)
    assert len(simulated.eventually(simulated.receive)) == 1


@cites(SQS, "Deletes the specified message from the specified queue.")
def test_a_deleted_message_does_not_return(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive(VisibilityTimeout=0)
    aws.delete(message)
    assert aws.receive() == []


@cites(
    SQS,
    "Amazon SQS can delete a message from a queue even if a visibility timeout setting causes the message to be locked "
    "by another consumer.",
)
def test_a_hidden_message_can_be_deleted(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive()
    aws.delete(message)
    assert aws.counts() == ["0", "0", "0"]


@cites(
    SQS_GUIDE + "standard-queues-at-least-once-delivery.html",
    "On rare occasions, one of the servers that stores a copy of a message might be unavailable when you "
    "receive or delete a message. If this occurs, the copy of the message isn't deleted on the server that is "
    "unavailable, and you might get that message copy again when you receive messages.",
)
def test_a_delete_may_miss_a_copy(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive(VisibilityTimeout=1)
    simulated.inject(Fault.DELETE_LOST)
    simulated.sqs.delete_message(QueueUrl=simulated.queue_url, ReceiptHandle=message["ReceiptHandle"])
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(
    SQS_GUIDE + "sqs-visibility-timeout.html",
    "For standard queues, the visibility timeout isn't a guarantee against receiving a message twice.",
)
def test_a_message_may_come_twice_within_its_timeout(simulated: Simulated) -> None:
    simulated.send("x")
    simulated.inject(Fault.DUPLICATE)
    simulated.receive()
    simulated.sleep(3)
    assert len(simulated.receive()) == 1


@cites(
    SQS_GUIDE + "standard-queues.html",
    "more than one copy of a message might be delivered, and messages may occasionally arrive out of order",
)
def test_messages_come_in_any_order(simulated: Simulated) -> None:
    for number in range(10):
        simulated.send(str(number))
    bodies = [message["Body"] for message in simulated.receive()]
    assert sorted(bodies) == [str(number) for number in range(10)] != bodies


@cites(
    SQS,
    "Amazon SQS never returns more messages than this value (however, fewer messages might be returned). Valid values: "
    "1 to 10. Default: 1.",
)
def test_no_more_messages_come_than_asked_for(aws: Aws) -> None:
    for _ in range(5):
        aws.send("x")
    assert len(aws.sqs.receive_message(QueueUrl=aws.queue_url)["Messages"]) == 1
    assert 1 <= len(aws.sqs.receive_message(QueueUrl=aws.queue_url, MaxNumberOfMessages=3)["Messages"]) <= 3


@cites(SQS, "Valid values: 1 to 10. Default: 1.")
def test_ten_messages_at_most_are_asked_for(aws: Aws) -> None:
    refused = code(lambda: aws.sqs.receive_message(QueueUrl=aws.queue_url, MaxNumberOfMessages=11))
    assert refused == "InvalidParameterValue"


@cites(SQS, "If no messages are available and the wait time expires, the call does not return a message list.")
def test_an_empty_queue_answers_without_a_list(aws: Aws) -> None:
    assert "Messages" not in aws.sqs.receive_message(QueueUrl=aws.queue_url)


@cites(
    SQS,
    "ApproximateFirstReceiveTimestamp and SentTimestamp are each returned as an integer representing the epoch time "
    "in milliseconds.",
)
def test_times_are_milliseconds(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive()
    sent, received = (
        int(message["Attributes"][name]) for name in ("SentTimestamp", "ApproximateFirstReceiveTimestamp")
    )
    assert 10**12 < sent <= received < sent + 60_000


@cites(
    SQS,
    "For most standard queues (depending on queue traffic and message backlog), there can be a maximum of "
    "approximately 120,000 in flight messages (received from a queue by a consumer, but not yet deleted from "
    "the queue). If you reach this limit, Amazon SQS returns the OverLimit error message.",
)
def test_the_number_of_messages_in_flight_is_limited(simulated: Simulated) -> None:
    simulated.queue.most_in_flight = 2
    for _ in range(5):
        simulated.send("x")
    assert len(simulated.receive()) == 2
    assert code(simulated.receive) == "OverLimit"
