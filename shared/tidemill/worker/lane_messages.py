"""The messages of one invocation on their queue: hides and deletes them. No error may leave this module.

The invocation must still answer for its batch, and a message that is not changed here returns with the queue's own
visibility timeout, when its document decides again.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.application.ports import Clock
from tidemill.aws.clients import AWS_ERRORS
from tidemill.telemetry.outcome_log import logger

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The most entries of one call:
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessageBatch.html
_MOST_ENTRIES: Final = 10
#: SQS counts its maximum of 12 hours from the receive, and refuses a timeout that ends later. A message is received at
#: most a batching window (5 minutes) and an invocation (15 minutes) before it is hidden again.
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
_LONGEST_VISIBILITY_SECONDS: Final = (12 * 60 - 20) * 60


class LaneMessages:
    """The messages of one lane. SQS takes ten in a call, so a larger batch needs several calls.

    `queues` gives the client. It is asked only when a message changes, because creating the client slows a cold start
    and most invocations leave their messages to the queue.
    """

    def __init__(self, queues: "Callable[[], SQSClient]", queue_url: str, *, clock: Clock) -> None:
        self._queues = queues
        self.queue_url = queue_url
        self._clock = clock

    def hide(self, until: Mapping[str, datetime]) -> None:
        """Hide each message, named by its receipt handle, until its time. A time that has passed makes it visible."""
        now = self._clock()
        entries: list[Any] = [
            entry | {"VisibilityTimeout": _visibility_seconds(time, now)}
            for entry, time in zip(_entries(list(until)), until.values(), strict=True)
        ]
        if entries:
            self._change(self._queues().change_message_visibility_batch, entries, "message visibility not changed")

    def delete(self, receipts: Sequence[str]) -> None:
        if receipts:
            self._change(self._queues().delete_message_batch, _entries(receipts), "message not deleted")

    def _change(self, call: Callable[..., Any], entries: list[Any], complaint: str) -> None:
        for first in range(0, len(entries), _MOST_ENTRIES):
            try:
                answer = call(QueueUrl=self.queue_url, Entries=entries[first : first + _MOST_ENTRIES])
            except AWS_ERRORS as error:
                logger().warning(complaint, extra={"error": str(error)})
                continue
            for entry in answer.get("Failed", []):
                logger().warning(complaint, extra={"error": entry.get("Message", "")})


def _entries(receipts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(receipts)]


def _visibility_seconds(until: datetime, now: datetime) -> int:
    """Return whole seconds as SQS takes them, rounded up, from 0 to the longest."""
    return min(max(math.ceil((until - now).total_seconds()), 0), _LONGEST_VISIBILITY_SECONDS)
