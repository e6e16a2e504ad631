"""Reads, deletes and returns the messages of one lane's dead-letter queue in SQS."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidemill.application.ports import ReceivedDeadLetter
from tidemill.aws.clients import translated
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError, OtherEpochError
from tidemill.domain.job import DeadLetter, Reference
from tidemill.sqs import messages
from tidemill.sqs.lanes import BATCH_LIMIT

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class SqsDeadLetterQueue:
    """`DeadLetterQueue` over one dead-letter queue."""

    def __init__(self, client: "SQSClient", url: str, *, epoch: int = 0) -> None:
        self._client = client
        self._url = url
        self._epoch = epoch

    def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
        with translated():
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=BATCH_LIMIT,
                VisibilityTimeout=_seconds(hidden_for),
                # A long poll queries all servers. A short poll may miss messages.
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["SentTimestamp"],
            )
        return [_received(message, self._epoch) for message in answer.get("Messages", [])]

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        for batch in _batches(dead_letters):
            with translated():
                self._client.delete_message_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {"Id": str(index), "ReceiptHandle": dead_letter.receipt}
                        for index, dead_letter in enumerate(batch)
                    ],
                )

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        for batch in _batches(dead_letters):
            with translated():
                self._client.change_message_visibility_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {
                            "Id": str(index),
                            "ReceiptHandle": dead_letter.receipt,
                            "VisibilityTimeout": _seconds(duration),
                        }
                        for index, dead_letter in enumerate(batch)
                    ],
                )


def _batches(dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Sequence[ReceivedDeadLetter]]:
    return [dead_letters[start : start + BATCH_LIMIT] for start in range(0, len(dead_letters), BATCH_LIMIT)]


def _seconds(duration: timedelta) -> int:
    return duration // timedelta(seconds=1)


def _received(message: Mapping[str, Any], epoch: int) -> ReceivedDeadLetter:
    body: DeadLetter | Reference | None = None
    newer = False
    try:
        body = messages.decode(message["Body"], epoch=epoch)
    except NewerSchemaError:
        newer = True
    except OtherEpochError as error:
        # After a restore each dead job has a message of the present epoch: one from before belongs to no job.
        newer = error.later
    except MalformedDocumentError:
        pass
    return ReceivedDeadLetter(
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=body,
        sent_at=datetime.fromtimestamp(int(message["Attributes"]["SentTimestamp"]) / 1000, UTC),
        newer=newer,
    )
