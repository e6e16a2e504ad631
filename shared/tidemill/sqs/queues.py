"""The lanes and their dead-letter queues in SQS."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.application.ports import ReceivedDeadLetter
from tidemill.aws.clients import translated
from tidemill.domain.dispatch import Dispatch
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError, StoreUnavailableError
from tidemill.domain.job import DeadLetter, Reference, reference_of
from tidemill.names import Lane
from tidemill.sqs import messages

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The most entries that one batch call of SQS takes.
BATCH_LIMIT: Final = 10
#: How long a tool may take over the letters that it holds.
_LETTER_HIDDEN_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class LaneUrls:
    """Where one lane is."""

    queue: str
    dead_letters: str


class SqsLanes:
    """`Lanes` over SQS. A message that is not taken is reported, never raised."""

    def __init__(self, client: "SQSClient", urls: Mapping[Lane, LaneUrls]) -> None:
        self._client = client
        self._urls = urls

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[int]:
        by_url: dict[str, list[int]] = {}
        for index, dispatch in enumerate(dispatches):
            urls = self._urls[dispatch.lane]
            url = urls.dead_letters if isinstance(dispatch.body, DeadLetter) else urls.queue
            by_url.setdefault(url, []).append(index)
        return [
            refused
            for url, indices in by_url.items()
            for start in range(0, len(indices), BATCH_LIMIT)
            for refused in self._send_batch(url, dispatches, indices[start : start + BATCH_LIMIT])
        ]

    def _send_batch(self, url: str, dispatches: Sequence[Dispatch], indices: Sequence[int]) -> Sequence[int]:
        entries: list[Any] = [_entry(index, dispatches[index]) for index in indices]
        try:
            with translated():
                answer = self._client.send_message_batch(QueueUrl=url, Entries=entries)
        except StoreUnavailableError:
            return indices
        # 200 does not mean sent: each entry that was not is listed.
        return [int(entry["Id"]) for entry in answer.get("Failed", [])]


def _entry(index: int, dispatch: Dispatch) -> dict[str, object]:
    reference = reference_of(dispatch.body)
    return {
        "Id": str(index),
        "MessageBody": messages.encode(dispatch.body),
        "DelaySeconds": dispatch.delay_seconds,
        # On a standard queue a group is a share, not an order: one tenant's flood does not starve another.
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
        "MessageGroupId": hashlib.sha256(reference.tenant.encode()).hexdigest()[:32],
    }


class SqsDeadLetterQueue:
    """`DeadLetterQueue` over one dead-letter queue."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def receive(self) -> Sequence[ReceivedDeadLetter]:
        with translated():
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=BATCH_LIMIT,
                VisibilityTimeout=_LETTER_HIDDEN_SECONDS,
                # A long poll asks all servers; a short one may miss letters that are there.
                WaitTimeSeconds=1,
                MessageSystemAttributeNames=["SentTimestamp"],
            )
        return [_letter(message) for message in answer.get("Messages", [])]

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

    def put_back(self, dead_letters: Sequence[ReceivedDeadLetter]) -> None:
        for batch in _batches(dead_letters):
            with translated():
                self._client.change_message_visibility_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {"Id": str(index), "ReceiptHandle": dead_letter.receipt, "VisibilityTimeout": 0}
                        for index, dead_letter in enumerate(batch)
                    ],
                )


def _batches(dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Sequence[ReceivedDeadLetter]]:
    return [dead_letters[start : start + BATCH_LIMIT] for start in range(0, len(dead_letters), BATCH_LIMIT)]


def _letter(message: Mapping[str, Any]) -> ReceivedDeadLetter:
    body: DeadLetter | Reference | None = None
    newer = False
    try:
        body = messages.decode(message["Body"])
    except NewerSchemaError:
        newer = True
    except MalformedDocumentError:
        pass
    return ReceivedDeadLetter(
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=body,
        sent_at=datetime.fromtimestamp(int(message["Attributes"]["SentTimestamp"]) / 1000, UTC),
        newer=newer,
    )
