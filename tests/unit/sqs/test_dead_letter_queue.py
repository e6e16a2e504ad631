"""A batch call of SQS succeeds even if it rejects entries: of these messages, none counts as deleted or hidden."""

from typing import Any

from tests.support.builders import LEASE, NOW
from tidemill.application.ports import ReceivedDeadLetter
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
