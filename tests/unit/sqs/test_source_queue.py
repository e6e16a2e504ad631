"""`SourceQueue.forward`: a record that a message can hold goes to the queue, and a longer one is set aside."""

import json
from dataclasses import dataclass, field

import pytest

from tidemill.sqs.source_queue import LARGEST_MESSAGE_BYTES, SourceQueue


@dataclass
class Client:
    """The client of SQS."""

    #: Queue and body of each message.
    sent: list[tuple[str, str]] = field(default_factory=list)

    def send_message(self, *, QueueUrl: str, MessageBody: str) -> None:  # noqa: N803 - as boto3 has it
        self.sent.append((QueueUrl, MessageBody))


def a_record(size_bytes: int) -> str:
    def text(padding: str) -> str:
        return json.dumps({"eventID": "e", "dynamodb": {"Keys": {"pk": {"S": "1"}}, "NewImage": {"x": {"S": padding}}}})

    return text("x" * (size_bytes - len(text(""))))


@pytest.mark.parametrize("whole", [True, False])
def test_the_longest_message_is_passed_on_whole_and_a_longer_record_is_set_aside(whole: bool) -> None:
    client = Client()
    queue = SourceQueue(client, queue="work", dead_letters="dead")  # type: ignore[arg-type]  # the one call that it makes
    record = a_record(LARGEST_MESSAGE_BYTES + (0 if whole else 1))

    queue.forward(record)

    without_images = json.dumps({"eventID": "e", "dynamodb": {"Keys": {"pk": {"S": "1"}}}, "imagesLeftOut": True})
    assert client.sent == ([("work", record)] if whole else [("dead", without_images)])


def test_a_message_may_be_a_mebibyte_long() -> None:
    assert LARGEST_MESSAGE_BYTES == 1_048_576
