"""Sends the messages of the lanes to SQS: references to the lane's queue, dead-letter messages to its DLQ."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tidemill.application.ports import Refusal
from tidemill.aws.clients import POOL_SIZE, translated
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import DeadLetter, reference_of
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import StoreUnavailableError
from tidemill.names import Lane
from tidemill.sqs import messages

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The most entries that one batch call of SQS takes.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-batch-api-actions.html
BATCH_LIMIT: Final = 10


class LaneUrls(Struct, frozen=True):
    """The URLs of one lane's queue and of its dead-letter queue."""

    queue: str
    dead_letters: str


class SqsLanes:
    """`Lanes` over SQS. `send` returns the messages that SQS did not accept."""

    def __init__(self, client: "SQSClient", urls: Mapping[Lane, LaneUrls], *, epoch: int = 0) -> None:
        self._client = client
        self._urls = urls
        self._epoch = epoch

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[Refusal]:
        """Send all batches at once, the most urgent lane first.

        A batch that fails for any reason does not affect the batches of other lanes.
        """
        # The client has this many connections. A batch of stream records makes at most 15 calls.
        with ThreadPoolExecutor(POOL_SIZE) as pool:
            results = [
                pool.submit(self._send_batch, url, dispatches, indices) for url, indices in self._batches(dispatches)
            ]
        return [refused for result in results for refused in result.result()]

    def _batches(self, dispatches: Sequence[Dispatch]) -> Iterator[tuple[str, Sequence[int]]]:
        """URL and indices of each call: the queues from the most to the least urgent lane, then the DLQs."""
        by_url: dict[str, list[int]] = {self._urls[lane].queue: [] for lane in Lane if lane in self._urls}
        for index, dispatch in enumerate(dispatches):
            urls = self._urls[dispatch.lane]
            url = urls.dead_letters if isinstance(dispatch.body, DeadLetter) else urls.queue
            by_url.setdefault(url, []).append(index)
        for url, indices in by_url.items():
            for start in range(0, len(indices), BATCH_LIMIT):
                yield url, indices[start : start + BATCH_LIMIT]

    def _send_batch(self, url: str, dispatches: Sequence[Dispatch], indices: Sequence[int]) -> Sequence[Refusal]:
        try:
            entries: list[Any] = [_entry(index, dispatches[index], self._epoch) for index in indices]
            with translated():
                answer = self._client.send_message_batch(QueueUrl=url, Entries=entries)
        except StoreUnavailableError as error:
            return [Refusal(index, error=error_text(error)) for index in indices]
        except Exception as error:  # noqa: BLE001 - the queue of one lane is missing or denied, and the others are not
            return [Refusal(index, sender_fault=True, error=error_text(error)) for index in indices]
        return refusals_of(answer)


def refusals_of(answer: Mapping[str, Any]) -> Sequence[Refusal]:
    """Return the refusals of a batch call, whose entries have their indices as ids.

    The call succeeds even if SQS rejects entries. It lists each rejected entry, and says whose fault it was.
    https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_BatchResultErrorEntry.html
    """
    return [_refusal(entry) for entry in answer.get("Failed", [])]


def _refusal(entry: Mapping[str, Any]) -> Refusal:
    error = f"{entry.get('Code')}: {entry.get('Message')}"
    return Refusal(int(entry["Id"]), sender_fault=entry["SenderFault"], error=error)


def _entry(index: int, dispatch: Dispatch, epoch: int) -> dict[str, object]:
    reference = reference_of(dispatch.body)
    return {
        "Id": str(index),
        "MessageBody": messages.encode(dispatch.body, epoch=epoch),
        "DelaySeconds": dispatch.delay_seconds,
        # On a standard queue the group id sets fairness, not order: a tenant with many messages does not starve others.
        # https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
        "MessageGroupId": hashlib.sha256(reference.tenant.encode()).hexdigest()[:32],
    }
