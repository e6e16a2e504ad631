"""Standard queues: sending messages, singly and in batches."""

from functools import partial

from tests.simulation.conformance.case import Aws, code
from tests.simulation.conformance.citations import SQS, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault


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


@cites(SQS, "Specifies whether the error happened due to the caller of the batch API action.")
def test_one_invalid_entry_does_not_fail_a_batch(aws: Aws) -> None:
    entries = [{"Id": "good", "MessageBody": "x"}, {"Id": "bad", "MessageBody": "x", "DelaySeconds": 901}]
    answer = aws.sqs.send_message_batch(QueueUrl=aws.queue_url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert [(entry["Id"], entry["SenderFault"]) for entry in answer["Failed"]] == [("bad", True)]


@cites(
    SQS,
    "Deletes up to ten messages from the specified queue. This is a batch version of DeleteMessage. The result of the "
    "action on each message is reported individually in the response.",
)
def test_a_batch_is_deleted_one_by_one(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive()
    entries = [
        {"Id": "good", "ReceiptHandle": message["ReceiptHandle"]},
        {"Id": "bad", "ReceiptHandle": "not-a-receipt"},
    ]
    answer = aws.sqs.delete_message_batch(QueueUrl=aws.queue_url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert [(entry["Id"], entry["Code"]) for entry in answer["Failed"]] == [("bad", "ReceiptHandleIsInvalid")]
    assert aws.counts() == ["0", "0", "0"]


@cites(
    SQS,
    "Changes the visibility timeout of multiple messages. This is a batch version of ChangeMessageVisibility. The "
    "result of the action on each message is reported individually in the response.",
)
def test_a_batch_is_hidden_one_by_one(aws: Aws) -> None:
    aws.send("x")
    (message,) = aws.receive()
    entries = [
        {"Id": "good", "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0},
        {"Id": "bad", "ReceiptHandle": "not-a-receipt", "VisibilityTimeout": 0},
    ]
    answer = aws.sqs.change_message_visibility_batch(QueueUrl=aws.queue_url, Entries=entries)
    assert [entry["Id"] for entry in answer["Successful"]] == ["good"]
    assert [entry["Id"] for entry in answer["Failed"]] == ["bad"]
    assert len(aws.eventually(aws.receive)) == 1


@cites(
    SQS,
    "Because the batch request can result in a combination of successful and unsuccessful actions, you should"
    " check for batch errors even when the call returns an HTTP status code of 200.",
)
def test_a_batch_may_be_sent_in_part(simulated: Simulated) -> None:
    simulated.inject(Fault.SEND_FAILED, 0.5)
    entries = [{"Id": str(number), "MessageBody": "x"} for number in range(10)]
    answer = simulated.sqs.send_message_batch(QueueUrl=simulated.queue_url, Entries=entries)
    assert len(answer["Successful"]) + len(answer["Failed"]) == 10
    assert len(simulated.queue.messages) == len(answer["Successful"]) < 10
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200


@cites(
    SQS,
    "The maximum allowed individual message size and the maximum total payload size (the sum of the "
    "individual lengths of all of the batched messages) are both 1 MiB 1,048,576 bytes.",
)
def test_a_message_is_a_mebibyte_at_most(aws: Aws) -> None:
    aws.send("x" * 1_048_576)
    assert code(lambda: aws.send("x" * 1_048_577)) == "InvalidParameterValue"


@cites(SQS, "The length of all the messages put together is more than the limit.")
def test_a_batch_is_a_mebibyte_at_most(aws: Aws) -> None:
    entries = [{"Id": str(number), "MessageBody": "é" * 200_000} for number in range(3)]
    refused = code(lambda: aws.sqs.send_message_batch(QueueUrl=aws.queue_url, Entries=entries))
    assert refused == "AWS.SimpleQueueService.BatchRequestTooLong"


@cites(SQS, "The message to send. The minimum size is one character.")
def test_a_message_is_not_empty(aws: Aws) -> None:
    assert code(lambda: aws.send(""))


@cites(
    SQS,
    "If a message contains characters outside the allowed set, Amazon SQS rejects the message and returns an "
    "InvalidMessageContents error.",
)
def test_some_characters_are_rejected(aws: Aws) -> None:
    for body in ("\x00", "\x1f", "\ufffe"):
        assert code(partial(aws.send, body)) == "InvalidMessageContents"


@cites(SQS, "In standard queues, using MessageGroupId enables fair queues.")
def test_a_group_is_not_an_order(aws: Aws) -> None:
    aws.send("x", MessageGroupId="tenant")
    aws.send("y", MessageGroupId="tenant")
    assert len(aws.receive()) == 2


@cites(SQS, "MessageGroupId - Returns the value provided by the producer that calls the SendMessage action.")
def test_a_message_comes_with_its_group(aws: Aws) -> None:
    aws.send("x", MessageGroupId="tenant")
    (message,) = aws.receive()
    assert message["Attributes"]["MessageGroupId"] == "tenant"


@cites(SQS, "Ensure that the QueueUrl is correct and that the queue has not been deleted.")
def test_a_missing_queue_raises_non_existent_queue(aws: Aws) -> None:
    refused = code(lambda: aws.sqs.send_message(QueueUrl=aws.queue_url + "-not", MessageBody="x"))
    assert refused == "AWS.SimpleQueueService.NonExistentQueue"
