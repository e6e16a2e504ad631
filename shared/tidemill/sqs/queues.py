"""The lanes and their dead-letter queues in SQS."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.application.ports import ReceivedLetter
from tidemill.aws.clients import translated
from tidemill.domain.dispatch import Dispatch
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError, StoreUnavailableError
from tidemill.domain.job import Letter, Reference, reference_of
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
    letters: str


class SqsLanes:
    """`Lanes` over SQS. A message that is not taken is reported, never raised."""

    def __init__(self, client: "SQSClient", urls: Mapping[Lane, LaneUrls]) -> None:
        self._client = client
        self._urls = urls

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[int]:
        by_url: dict[str, list[int]] = {}
        for index, dispatch in enumerate(dispatches):
            urls = self._urls[dispatch.lane]
            url = urls.letters if isinstance(dispatch.body, Letter) else urls.queue
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


class SqsLetterBox:
    """`LetterBox` over one dead-letter queue."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def receive(self) -> Sequence[ReceivedLetter]:
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

    def delete(self, letters: Sequence[ReceivedLetter]) -> None:
        for batch in _batches(letters):
            with translated():
                self._client.delete_message_batch(
                    QueueUrl=self._url,
                    Entries=[{"Id": str(index), "ReceiptHandle": letter.receipt} for index, letter in enumerate(batch)],
                )

    def put_back(self, letters: Sequence[ReceivedLetter]) -> None:
        for batch in _batches(letters):
            with translated():
                self._client.change_message_visibility_batch(
                    QueueUrl=self._url,
                    Entries=[
                        {"Id": str(index), "ReceiptHandle": letter.receipt, "VisibilityTimeout": 0}
                        for index, letter in enumerate(batch)
                    ],
                )


def _batches(letters: Sequence[ReceivedLetter]) -> Sequence[Sequence[ReceivedLetter]]:
    return [letters[start : start + BATCH_LIMIT] for start in range(0, len(letters), BATCH_LIMIT)]


def _letter(message: Mapping[str, Any]) -> ReceivedLetter:
    body: Letter | Reference | None = None
    newer = False
    try:
        body = messages.decode(message["Body"])
    except NewerSchemaError:
        newer = True
    except MalformedDocumentError:
        pass
    return ReceivedLetter(
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=body,
        sent_at=datetime.fromtimestamp(int(message["Attributes"]["SentTimestamp"]) / 1000, UTC),
        newer=newer,
    )
