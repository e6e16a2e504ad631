"""The operations of the simulated SQS.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/Welcome.html
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from tests.simulation.world.errors import ServiceError
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.sqs_queue import LONGEST_VISIBILITY_MS, Message, Queue

Request = Mapping[str, Any]
Answer = dict[str, Any]

_MOST_ENTRIES: Final = 10
_LONGEST_DELAY_SECONDS: Final = 900
_LARGEST_BYTES: Final = 1024 * 1024


class SQS:
    """The SQS operations on all queues of one world."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.queues: dict[str, Queue] = {}

    def add(self, queue: Queue) -> None:
        self.queues[queue.url] = queue

    def queue(self, request: Request) -> Queue:
        try:
            return self.queues[request["QueueUrl"]]
        except KeyError:
            raise ServiceError("AWS.SimpleQueueService.NonExistentQueue", "The queue does not exist") from None

    def send_message(self, request: Request) -> Answer:
        message = _sent(self.queue(request), request)
        return {"MessageId": message.id}

    def send_message_batch(self, request: Request) -> Answer:
        queue, entries = self.queue(request), request["Entries"]
        _require_batch(entries)
        if self.faults.occurs(Fault.QUEUE_DENIED):
            raise ServiceError("AccessDenied", f"access to {queue.name} is denied", status=403)
        if sum(len(entry["MessageBody"].encode()) for entry in entries) > _LARGEST_BYTES:
            raise ServiceError("AWS.SimpleQueueService.BatchRequestTooLong", "the batch is longer than 1 MiB")

        def send(entry: Request) -> Answer:
            if self.faults.occurs(Fault.SEND_FAILED):
                raise ServiceError("InternalError", "try again", status=500)
            return {"MessageId": _sent(queue, entry).id}

        return _each(entries, send)

    def receive_message(self, request: Request) -> Answer:
        queue = self.queue(request)
        seconds, most = request.get("VisibilityTimeout"), request.get("MaxNumberOfMessages", 1)
        if not 1 <= most <= _MOST_ENTRIES:
            raise ServiceError("InvalidParameterValue", f"MaxNumberOfMessages {most!r} is not from 1 to 10")
        _, _, in_flight = queue.counts()
        if in_flight >= queue.most_in_flight and not request.get("WaitTimeSeconds"):
            # A long poll returns no messages instead.
            raise ServiceError("OverLimit", f"{in_flight} messages are in flight")
        received = queue.receive(most, visibility_ms=None if seconds is None else seconds * 1000)
        asked = frozenset(request.get("MessageSystemAttributeNames", ()))
        return {"Messages": [_with_attributes(as_received(message), asked) for message in received]} if received else {}

    def delete_message(self, request: Request) -> Answer:
        self.queue(request).delete(_receipt(request))
        return {}

    def delete_message_batch(self, request: Request) -> Answer:
        queue = self.queue(request)
        _require_batch(request["Entries"])

        def delete(entry: Request) -> Answer:
            queue.delete(_receipt(entry))
            return {}

        return _each(request["Entries"], delete)

    def change_message_visibility(self, request: Request) -> Answer:
        self.queue(request).hide(request["ReceiptHandle"], _visibility(request))
        return {}

    def change_message_visibility_batch(self, request: Request) -> Answer:
        queue = self.queue(request)
        _require_batch(request["Entries"])

        def hide(entry: Request) -> Answer:
            if self.faults.occurs(Fault.HIDE_FAILED):
                queue.spoil(entry["ReceiptHandle"])
                raise ServiceError("InternalError", "try again", status=500)
            queue.hide(entry["ReceiptHandle"], _visibility(entry))
            return {}

        return _each(request["Entries"], hide)

    def get_queue_attributes(self, request: Request) -> Answer:
        queue = self.queue(request)
        visible, delayed, in_flight = queue.counts()
        attributes = {
            "ApproximateNumberOfMessages": str(visible),
            "ApproximateNumberOfMessagesDelayed": str(delayed),
            "ApproximateNumberOfMessagesNotVisible": str(in_flight),
            "MessageRetentionPeriod": str(queue.retention_ms // 1000),
        }
        return {"Attributes": {name: attributes[name] for name in request["AttributeNames"] if name in attributes}}


def as_received(message: Message) -> Answer:
    """A message in the form of a ReceiveMessage response."""
    return {
        "MessageId": message.id,
        "ReceiptHandle": message.receipt,
        "Body": message.body,
        "Attributes": {
            "ApproximateReceiveCount": str(message.receives + message.earlier_receives),
            "SentTimestamp": str(message.sent_ms),
            "ApproximateFirstReceiveTimestamp": str(message.first_received_ms),
            **message.attributes,
        },
    }


def _with_attributes(message: Answer, asked: Collection[str]) -> Answer:
    """The message with the attributes that the request asks for."""
    if "All" in asked:
        return message
    return message | {"Attributes": {name: held for name, held in message["Attributes"].items() if name in asked}}


def _sent(queue: Queue, entry: Request) -> Message:
    body = entry["MessageBody"]
    if not body or len(body.encode()) > _LARGEST_BYTES:
        raise ServiceError("InvalidParameterValue", "The message must be 1 byte to 1 MiB")
    if any(character < " " and character not in "\t\n\r" for character in body) or {"\ufffe", "\uffff"} & set(body):
        raise ServiceError("InvalidMessageContents", "Invalid characters found in the message")
    delay = entry.get("DelaySeconds", 0)
    if not isinstance(delay, int) or not 0 <= delay <= _LONGEST_DELAY_SECONDS:
        raise ServiceError("InvalidParameterValue", f"DelaySeconds {delay!r} is not an integer from 0 to 900")
    group = {"MessageGroupId": entry["MessageGroupId"]} if "MessageGroupId" in entry else {}
    return queue.send(body, delay_seconds=delay, attributes=group)


def _receipt(entry: Request) -> str:
    receipt: str = entry["ReceiptHandle"]
    if "/" not in receipt:
        # A stale handle is valid: a delete with it succeeds and deletes nothing.
        raise ServiceError("ReceiptHandleIsInvalid", f"The receipt handle {receipt!r} is not valid")
    return receipt


def _visibility(entry: Request) -> int:
    seconds = entry["VisibilityTimeout"]
    if not isinstance(seconds, int) or not 0 <= seconds * 1000 <= LONGEST_VISIBILITY_MS:
        raise ServiceError("InvalidParameterValue", f"VisibilityTimeout {seconds!r} is not an integer to 43200")
    return seconds


def _require_batch(entries: Sequence[Request]) -> None:
    if not entries:
        raise ServiceError("AWS.SimpleQueueService.EmptyBatchRequest", "The batch request doesn't contain any entries")
    if len(entries) > _MOST_ENTRIES:
        raise ServiceError("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "Maximum number of entries is 10")
    if len({entry["Id"] for entry in entries}) < len(entries):
        raise ServiceError("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "Two or more entries have the same Id")


def _each(entries: Sequence[Request], act: Callable[[Request], Answer]) -> Answer:
    """Act on each entry. The response is 200 even if entries fail."""
    answer: Answer = {"Successful": [], "Failed": []}
    for entry in entries:
        try:
            answer["Successful"].append({"Id": entry["Id"], **act(entry)})
        except ServiceError as error:
            failed = {"Id": entry["Id"], "Code": error.code, "Message": error.message}
            answer["Failed"].append(failed | {"SenderFault": error.status < 500})
    return {name: found for name, found in answer.items() if found}
