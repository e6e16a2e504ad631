"""Reads, deletes and returns the messages of one lane's dead-letter queue in SQS."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tidemill.application.ports import ReceivedDeadLetter, Refusal
from tidemill.aws.clients import translated
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError, OtherEpochError
from tidemill.domain.time_constants import SECOND
from tidemill.sqs import messages
from tidemill.sqs.lanes import BATCH_LIMIT, refusals_of

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

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
        refusals: list[Refusal] = []
        for indices in _batches(range(len(dead_letters))):
            entries: list[Any] = [{"Id": str(index), "ReceiptHandle": dead_letters[index].receipt} for index in indices]
            with translated():
                answer = self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
            refusals += refusals_of(answer)
        return refusals

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        for indices in _batches(range(len(dead_letters))):
            if refused := self._hide(dead_letters, indices, duration):
                self._hide(dead_letters, refused, duration)

    def _hide(
        self, dead_letters: Sequence[ReceivedDeadLetter], indices: Sequence[int], duration: timedelta
    ) -> Sequence[int]:
        """Returns the indices of those that SQS refused."""
        entries: list[Any] = [
            {
                "Id": str(index),
                "ReceiptHandle": dead_letters[index].receipt,
                "VisibilityTimeout": _seconds(duration),
            }
            for index in indices
        ]
        with translated():
            answer = self._client.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
        return [refusal.index for refusal in refusals_of(answer)]


def _batches(indices: Sequence[int]) -> Sequence[Sequence[int]]:
    return [indices[start : start + BATCH_LIMIT] for start in range(0, len(indices), BATCH_LIMIT)]


def _seconds(duration: timedelta) -> int:
    return duration // SECOND


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
