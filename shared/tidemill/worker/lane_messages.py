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

#: The longest visibility timeout of SQS.
_LONGEST_VISIBILITY_SECONDS: Final = 12 * 60 * 60


class LaneMessages:
    """At most ten messages in a call, which is the largest batch of a lane."""

    def __init__(self, queues: "SQSClient", queue_url: str, *, clock: Clock) -> None:
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
        self._change(self._queues.change_message_visibility_batch, entries, "message visibility not changed")

    def delete(self, receipts: Sequence[str]) -> None:
        self._change(self._queues.delete_message_batch, _entries(receipts), "message not deleted")

    def _change(self, call: Callable[..., Any], entries: list[Any], complaint: str) -> None:
        if not entries:
            return
        try:
            failed = call(QueueUrl=self.queue_url, Entries=entries).get("Failed", [])
        except AWS_ERRORS as error:
            logger().warning(complaint, extra={"error": str(error)})
            return
        for entry in failed:
            logger().warning(complaint, extra={"error": entry.get("Message", "")})


def _entries(receipts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"Id": str(index), "ReceiptHandle": receipt} for index, receipt in enumerate(receipts)]


def _visibility_seconds(until: datetime, now: datetime) -> int:
    """As SQS takes it: whole seconds, rounded up, from 0 to the longest."""
    return min(max(math.ceil((until - now).total_seconds()), 0), _LONGEST_VISIBILITY_SECONDS)
