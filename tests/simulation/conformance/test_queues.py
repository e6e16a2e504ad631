"""Standard queues."""

from functools import partial
from typing import Any

from tests.simulation.conformance.bench import Aws, Simulated, code
from tests.simulation.conformance.cited import SQS, SQS_GUIDE, cites
from tests.simulation.world.faults import Fault
from tests.simulation.world.queue import Message


def hide(aws: Aws, receipt: str, seconds: int) -> None:
    aws.sqs.change_message_visibility(QueueUrl=aws.queue_url, ReceiptHandle=receipt, VisibilityTimeout=seconds)


def struck(aws: Simulated, fault: Fault, rate: float = 1.0) -> None:
    """From now on this fault happens."""
    aws.world.weather.calm, aws.world.weather.rates = False, {fault: rate}


@cites(SQS, "A new receipt handle is returned every time you receive a message.")
def test_each_delivery_has_a_receipt_of_its_own(aws: Aws) -> None:
    aws.send("x")
    (first,) = aws.receive(VisibilityTimeout=0)
    if isinstance(aws, Simulated):
        aws.sleep(1)
    (second,) = aws.receive()
    assert first["ReceiptHandle"] != second["ReceiptHandle"]
    assert first["MessageId"] == second["MessageId"]


@cites(
    SQS,
    "When a message is received from a queue, it becomes temporarily invisible to other consumers for the duration of "
    "the visibility timeout.",
)
def test_what_was_received_is_hidden(aws: Aws) -> None:
    aws.send("x")
    assert len(aws.receive()) == 1
    assert aws.receive() == []


@cites(SQS, "If not specified, the default visibility timeout for the queue is used, which is 30 seconds.", moto=False)
def test_it_is_hidden_for_the_timeout_of_its_queue(simulated: Simulated) -> None:
    simulated.send("x")
    simulated.receive()
    simulated.sleep(29)
    assert simulated.receive() == []
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(SQS, "You can provide the VisibilityTimeout parameter in your request.", moto=False)
def test_a_consumer_may_ask_for_another_timeout(simulated: Simulated) -> None:
    simulated.send("x")
    simulated.receive(VisibilityTimeout=5)
    simulated.sleep(5.1)
    assert len(simulated.receive()) == 1


@cites(
    SQS,
    "A message that isn't deleted or a message whose visibility isn't extended before the visibility timeout "
    "expires counts as a failed receive.",
    moto=False,
)
def test_each_delivery_counts(simulated: Simulated) -> None:
    simulated.send("x")
    counts = []
    for _ in range(3):
        (message,) = simulated.receive(VisibilityTimeout=1)
        counts.append(message["Attributes"]["ApproximateReceiveCount"])
        simulated.sleep(1.1)
    assert counts == ["1", "2", "3"]


@cites(
    SQS, "If you use an old ReceiptHandle, the request will succeed, but the message might not be deleted.", moto=False
)
def test_a_stale_receipt_deletes_nothing_and_says_nothing(simulated: Simulated) -> None:
    simulated.send("x")
    (first,) = simulated.receive(VisibilityTimeout=1)
    simulated.sleep(1.1)
    simulated.receive(VisibilityTimeout=1)
    simulated.sqs.delete_message(QueueUrl=simulated.queue_url, ReceiptHandle=first["ReceiptHandle"])
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(SQS, "Deletes the specified message from the specified queue.")
def test_what_is_deleted_does_not_come_back(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive(VisibilityTimeout=0)
    aws.sqs.delete_message(QueueUrl=aws.queue_url, ReceiptHandle=message["ReceiptHandle"])
    if isinstance(aws, Simulated):
        aws.sleep(1)
    assert aws.receive() == []


@cites(
    SQS_GUIDE + "standard-queues-at-least-once-delivery.html",
    "On rare occasions, one of the servers that stores a copy of a message might be unavailable when you "
    "receive or delete a message. If this occurs, the copy of the message isn't deleted on the server that is "
    "unavailable, and you might get that message copy again when you receive messages.",
    moto=False,
)
def test_a_delete_may_miss_a_copy(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive(VisibilityTimeout=1)
    struck(simulated, Fault.DELETE_LOST)
    simulated.sqs.delete_message(QueueUrl=simulated.queue_url, ReceiptHandle=message["ReceiptHandle"])
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(
    SQS_GUIDE + "sqs-visibility-timeout.html",
    "For standard queues, the visibility timeout isn't a guarantee against receiving a message twice.",
    moto=False,
)
def test_a_message_may_come_twice_within_its_timeout(simulated: Simulated) -> None:
    simulated.send("x")
    struck(simulated, Fault.DUPLICATE)
    simulated.receive()
    simulated.sleep(3)
    assert len(simulated.receive()) == 1


@cites(
    SQS_GUIDE + "standard-queues.html",
    "more than one copy of a message might be delivered, and messages may occasionally arrive out of order",
    moto=False,
)
def test_messages_come_in_any_order(simulated: Simulated) -> None:
    for number in range(10):
        simulated.send(str(number))
    bodies = [message["Body"] for message in simulated.receive()]
    assert sorted(bodies) == [str(number) for number in range(10)] != bodies


@cites(
    SQS,
    "Messages with a positive DelaySeconds value become available for processing after the delay period is finished.",
    moto=False,
)
def test_a_delayed_message_comes_later(simulated: Simulated) -> None:
    simulated.send("x", DelaySeconds=10)
    simulated.sleep(9)
    assert simulated.receive() == []
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(SQS, "Valid values: 0 to 900.")
def test_a_delay_is_a_quarter_of_an_hour_at_most(aws: Aws) -> None:
    assert code(lambda: aws.send("x", DelaySeconds=901)) == "InvalidParameterValue"


@cites(
    SQS,
    "For example, if the default timeout for a queue is 60 seconds, 15 seconds have elapsed since you "
    "received the message, and you send a ChangeMessageVisibility call with VisibilityTimeout set to 10 "
    "seconds, the 10 seconds begin to count from the time that you make the ChangeMessageVisibility call.",
    moto=False,
)
def test_a_new_timeout_counts_from_the_call(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive(VisibilityTimeout=60)
    simulated.sleep(15)
    hide(simulated, message["ReceiptHandle"], 10)
    simulated.sleep(9)
    assert simulated.receive() == []
    simulated.sleep(1.1)
    assert len(simulated.receive()) == 1


@cites(
    SQS,
    "Unlike with a queue, when you change the visibility timeout for a specific message the timeout value is "
    "applied immediately but isn't saved in memory for that message.",
    moto=False,
)
def test_a_new_timeout_is_for_once(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive()
    hide(simulated, message["ReceiptHandle"], 1)
    simulated.sleep(1.1)
    simulated.receive()
    simulated.sleep(20)
    assert simulated.receive() == []


@cites(SQS, "Values range: 0 to 43200.")
def test_a_timeout_is_twelve_hours_at_most(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive()
    assert code(lambda: hide(aws, message["ReceiptHandle"], 43_201)) == "InvalidParameterValue"


@cites(
    SQS,
    "If you attempt to set the VisibilityTimeout to a value greater than the maximum time left, Amazon SQS "
    "returns an error.",
    moto=False,
)
def test_twelve_hours_count_from_the_delivery(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive(VisibilityTimeout=7200)
    simulated.sleep(3600)
    assert code(lambda: hide(simulated, message["ReceiptHandle"], 12 * 3600)) == "InvalidParameterValue"


@cites(SQS, "The specified message isn't in flight.", moto=False)
def test_only_what_is_in_flight_can_be_hidden(simulated: Simulated) -> None:
    simulated.send("x")
    (message,) = simulated.receive(VisibilityTimeout=1)
    simulated.sleep(2)
    assert code(lambda: hide(simulated, message["ReceiptHandle"], 10)).endswith("MessageNotInflight")


@cites(
    SQS,
    "For Amazon SQS, the maximum number of entries you can include in a single SendMessageBatch, "
    "DeleteMessageBatch, or ChangeMessageVisibilityBatch request is 10.",
)
def test_a_batch_has_ten_entries_at_most(aws: Aws) -> None:
    entries = [{"Id": str(number), "MessageBody": "x"} for number in range(11)]
    refused = code(lambda: aws.sqs.send_message_batch(QueueUrl=aws.queue_url, Entries=entries))
    assert refused == "AWS.SimpleQueueService.TooManyEntriesInBatchRequest"


@cites(SQS, "Two or more batch entries in the request have the same Id.")
def test_entries_have_ids_of_their_own(aws: Aws) -> None:
    entries = [{"Id": "same", "MessageBody": "x"} for _ in range(2)]
    refused = code(lambda: aws.sqs.send_message_batch(QueueUrl=aws.queue_url, Entries=entries))
    assert refused == "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"


@cites(SQS, "The batch request doesn't contain any entries.")
def test_a_batch_is_not_empty(aws: Aws) -> None:
    refused = code(lambda: aws.sqs.send_message_batch(QueueUrl=aws.queue_url, Entries=[]))
    assert refused == "AWS.SimpleQueueService.EmptyBatchRequest"


@cites(
    SQS,
    "Because the batch request can result in a combination of successful and unsuccessful actions, you should"
    " check for batch errors even when the call returns an HTTP status code of 200.",
    moto=False,
)
def test_a_batch_may_be_sent_in_part(simulated: Simulated) -> None:
    struck(simulated, Fault.SEND_FAILED, 0.5)
    entries = [{"Id": str(number), "MessageBody": "x"} for number in range(10)]
    answer = simulated.sqs.send_message_batch(QueueUrl=simulated.queue_url, Entries=entries)
    assert len(answer["Successful"]) + len(answer["Failed"]) == 10
    assert len(simulated.queue.messages) == len(answer["Successful"]) < 10
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


@cites(
    SQS,
    "If a message contains characters outside the allowed set, Amazon SQS rejects the message and returns an "
    "InvalidMessageContents error.",
    moto_differs="answers InvalidParameterValue, and takes U+FFFE",
)
def test_some_characters_are_not_taken(aws: Aws) -> None:
    for body in ("\x00", "\x1f", "\ufffe"):
        assert code(partial(aws.send, body)) == "InvalidMessageContents"


@cites(
    SQS,
    "The maximum allowed individual message size and the maximum total payload size (the sum of the "
    "individual lengths of all of the batched messages) are both 1 MiB 1,048,576 bytes.",
)
def test_a_message_is_a_mebibyte_at_most(aws: Aws) -> None:
    aws.send("x" * 1_048_576)
    assert code(lambda: aws.send("x" * 1_048_577)) == "InvalidParameterValue"


@cites(SQS, "In standard queues, using MessageGroupId enables fair queues.")
def test_a_group_is_not_an_order(aws: Aws) -> None:
    aws.send("x", MessageGroupId="tenant")
    aws.send("y", MessageGroupId="tenant")
    assert len(aws.receive()) == 2


@cites(
    SQS,
    "When the ReceiveCount for a message exceeds the maxReceiveCount for a queue, Amazon SQS moves the message"
    " to the dead-letter-queue.",
    moto=False,
)
def test_a_message_received_too_often_goes_to_the_letters(simulated: Simulated) -> None:
    simulated.send("x")
    for _ in range(3):
        assert len(simulated.receive(VisibilityTimeout=0)) == 1
        simulated.sleep(0.1)
    assert simulated.receive() == []
    assert [letter.body for letter in simulated.letters.messages] == ["x"]


@cites(
    SQS_GUIDE + "setting-up-dead-letter-queue-retention.html",
    "For standard queues, the expiration of a message is always based on its original enqueue timestamp. When"
    " a message is moved to a dead-letter queue, the enqueue timestamp is unchanged.",
    moto=False,
)
def test_a_letter_keeps_the_time_it_was_sent(simulated: Simulated) -> None:
    simulated.send("x")
    sent_ms = simulated.queue.messages[0].sent_ms
    for _ in range(4):
        simulated.receive(VisibilityTimeout=0)
        simulated.sleep(10)
    assert simulated.letters.messages[0].sent_ms == sent_ms


@cites(
    SQS,
    "Amazon SQS automatically deletes messages left in a queue longer than the retention period configured "
    "for the queue.",
    moto=False,
)
def test_messages_are_not_kept_for_ever(simulated: Simulated) -> None:
    simulated.send("x")
    simulated.sleep(4 * 86_400 + 1)
    assert simulated.receive() == []


@cites(
    SQS,
    "For most standard queues (depending on queue traffic and message backlog), there can be a maximum of "
    "approximately 120,000 in flight messages (received from a queue by a consumer, but not yet deleted from "
    "the queue).",
    moto=False,
)
def test_only_so_many_are_in_flight(simulated: Simulated) -> None:
    simulated.queue.most_in_flight = 2
    for _ in range(5):
        simulated.send("x")
    assert len(simulated.receive()) == 2
    assert simulated.receive() == []


@cites(
    SQS,
    "ApproximateNumberOfMessagesDelayed - Returns the approximate number of messages in the queue that are "
    "delayed and not available for reading immediately.",
)
def test_a_queue_tells_how_many_wait(aws: Aws) -> None:
    aws.send("x")
    aws.send("y", DelaySeconds=100)
    aws.receive()
    names: Any = [
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesDelayed",
        "ApproximateNumberOfMessagesNotVisible",
    ]
    attributes = aws.sqs.get_queue_attributes(QueueUrl=aws.queue_url, AttributeNames=names)["Attributes"]
    assert [attributes[name] for name in names] == ["0", "1", "1"]


@cites(SQS, "Ensure that the QueueUrl is correct and that the queue has not been deleted.")
def test_a_missing_queue_is_named_so(aws: Aws) -> None:
    refused = code(lambda: aws.sqs.send_message(QueueUrl=aws.queue_url + "-not", MessageBody="x"))
    assert refused == "AWS.SimpleQueueService.NonExistentQueue"


@cites(SQS, "The receipt handle associated with the message, whose visibility timeout is changed.", moto=False)
def test_a_stale_receipt_hides_nothing(simulated: Simulated) -> None:
    simulated.queue.add(Message("m", "x", simulated.scheduler.now_ms, simulated.scheduler.now_ms))
    assert code(lambda: hide(simulated, "not-a-receipt", 10)) == "ReceiptHandleIsInvalid"
