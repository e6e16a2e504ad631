"""A batch call of SQS succeeds even if it rejects entries: of these messages, none counts as deleted or hidden."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import LEASE, NOW, SECOND, a_job, letter_for, reference_to
from tidemill.application.ports import ReceivedDeadLetter
from tidemill.sqs import messages
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue

LETTERS = [ReceivedDeadLetter(message_id=f"{n}", receipt=f"r{n}", body=None, sent_at=NOW) for n in range(12)]


class Rejecting:
    """A client that rejects two messages at their first call."""

    def __init__(self) -> None:
        self.rejected = {"r3", "r11"}
        self.calls: list[list[str]] = []

    def _call(self, **request: Any) -> Any:
        receipts = {entry["Id"]: entry["ReceiptHandle"] for entry in request["Entries"]}
        self.calls.append(list(receipts.values()))
        failed = [
            {"Id": id_, "SenderFault": False, "Code": "InternalError", "Message": "try again"}
            for id_, receipt in receipts.items()
            if receipt in self.rejected
        ]
        self.rejected -= set(receipts.values())
        return {"Failed": failed} if failed else {}

    delete_message_batch = change_message_visibility_batch = _call


def test_the_messages_that_were_not_deleted_are_returned() -> None:
    client: Any = Rejecting()
    refused = SqsDeadLetterQueue(client, "dead").delete(LETTERS)
    assert [(refusal.index, refusal.error) for refusal in refused] == [
        (3, "InternalError: try again"),
        (11, "InternalError: try again"),
    ]
    assert [len(call) for call in client.calls] == [10, 2]


def test_a_message_that_was_not_hidden_is_hidden_at_a_second_try() -> None:
    client: Any = Rejecting()
    SqsDeadLetterQueue(client, "dead").hide(LETTERS, duration=LEASE)
    assert [call for call in client.calls if len(call) == 1] == [["r3"], ["r11"]]


class Filled:
    """A client whose queue has these bodies, all sent at `NOW`. Keeps each request."""

    def __init__(self, *bodies: str) -> None:
        self.bodies = bodies
        self.requests: list[dict[str, Any]] = []

    def receive_message(self, **request: Any) -> Any:
        self.requests.append(request)
        sent = {"SentTimestamp": str(int(NOW.timestamp() * 1000) + 5)}
        found = [
            {"MessageId": body, "ReceiptHandle": f"r {body}", "Body": body, "Attributes": sent} for body in self.bodies
        ]
        return {"Messages": found} if found else {}

    def change_message_visibility_batch(self, **request: Any) -> Any:
        self.requests.append(request)
        return {}


@pytest.mark.parametrize(("hidden_for", "seconds"), [(90 * SECOND, 90), (timedelta(minutes=2, milliseconds=900), 120)])
def test_ten_messages_are_received_from_all_servers_of_sqs_and_hidden(hidden_for: timedelta, seconds: int) -> None:
    client: Any = Filled()

    assert SqsDeadLetterQueue(client, "dead").receive(hidden_for=hidden_for) == []
    assert client.requests == [
        {
            "QueueUrl": "dead",
            "MaxNumberOfMessages": 10,
            "VisibilityTimeout": seconds,
            # With 0, SQS asks only some of its servers, and a sweep would end before the end of the queue.
            "WaitTimeSeconds": 1,
            "MessageSystemAttributeNames": ["SentTimestamp"],
        }
    ]


def test_a_message_is_hidden_for_the_time_that_is_asked_for() -> None:
    client: Any = Filled()

    SqsDeadLetterQueue(client, "dead").hide(LETTERS[:1], duration=90 * SECOND)

    entry = {"Id": "0", "ReceiptHandle": "r0", "VisibilityTimeout": 90}
    assert client.requests == [{"QueueUrl": "dead", "Entries": [entry]}]


JOB = a_job()
DEAD = letter_for(JOB)


@pytest.mark.parametrize(
    ("text", "own", "body", "newer"),
    [
        (messages.encode(DEAD), {}, DEAD, False),
        (messages.encode(reference_to(JOB)), {}, reference_to(JOB), False),
        (messages.encode(DEAD, epoch=3), {"epoch": 3}, DEAD, False),
        (messages.encode(DEAD, epoch=2), {"epoch": 3}, None, False),
        (messages.encode(DEAD, epoch=4), {"epoch": 3}, None, True),
        (messages.encode(DEAD).replace('"schema":1', '"schema":2'), {}, None, True),
        ("rubbish", {}, None, False),
    ],
    ids=[
        "dead-letter message",
        "reference",
        "restored",
        "before the restore",
        "after a restore",
        "newer schema",
        "rubbish",
    ],
)
def test_a_received_message_is_read_with_its_time_and_whether_it_is_newer_than_this_code(
    text: str, own: dict[str, int], body: Any, newer: bool
) -> None:
    client: Any = Filled(text)

    (received,) = SqsDeadLetterQueue(client, "dead", **own).receive(hidden_for=LEASE)

    assert received == ReceivedDeadLetter(
        message_id=text, receipt=f"r {text}", body=body, sent_at=NOW + timedelta(milliseconds=5), newer=newer
    )
