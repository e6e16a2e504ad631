"""One lane's worker: what an invocation of it does with a batch of messages."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import AWS_ERRORS
from tidemill.telemetry.outcome_log import Telemetry, logger
from tidemill.worker.message_batch import Batch
from tidemill.worker.message_run import Invocation, MessageRun, Terms

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The longest visibility timeout of SQS.
_LONGEST_HIDING_SECONDS: Final = 12 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    terms: Terms
    queue_url: str
    queues: "SQSClient"
    stage: str

    def work(self, event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
        """Run the batch; the answer names the messages that must stay on the queue, and only those."""
        batch = Batch(self.terms, context)
        with batch(records=event["Records"], handler=batch.keep):
            batch.process()
        telemetry = Telemetry(stage=self.stage)
        for message in batch.messages.values():
            for reference, report in message.history():
                telemetry.worked(self.terms.lane, reference, report)
        telemetry.flush()
        self._hide([message for message in batch.messages.values() if message.report.put_back_until])
        return batch.response()

    def _hide(self, kept: Sequence[MessageRun]) -> None:
        """Have messages come back when they can be of use. Failing that, they come back with the queue's own timeout.

        Whatever goes wrong here, what the batch has done must still be answered for.
        """
        if not kept:
            return
        now = self.terms.tools.clock()
        entries: list[Any] = [
            {
                "Id": str(index),
                "ReceiptHandle": message.record["receiptHandle"],
                "VisibilityTimeout": _hiding_seconds(message.report.put_back_until or now, now),
            }
            for index, message in enumerate(kept)
        ]
        try:
            answer = self.queues.change_message_visibility_batch(QueueUrl=self.queue_url, Entries=entries)
        except AWS_ERRORS as error:
            logger().warning("messages come back later than they could", extra={"error": str(error)})
            return
        for failed in answer.get("Failed", []):
            logger().warning("a message comes back later than it could", extra={"error": failed.get("Message", "")})


def _hiding_seconds(until: datetime, now: datetime) -> int:
    """As SQS takes it: whole seconds, rounded up, and no more than it can hide a message."""
    return min(max(math.ceil((until - now).total_seconds()), 0), _LONGEST_HIDING_SECONDS)
