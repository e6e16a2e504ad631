"""One lane's worker: runs a batch of messages in one invocation and answers which of them stay on the queue."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.clients import AWS_ERRORS
from tidemill.telemetry.outcome_log import Telemetry, logger
from tidemill.worker.message_batch import Batch
from tidemill.worker.message_run import Invocation, MessageRun, WorkerSettings

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The longest visibility timeout of SQS.
_LONGEST_VISIBILITY_SECONDS: Final = 12 * 60 * 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    settings: WorkerSettings
    queue_url: str
    queues: "SQSClient"
    stage: str

    def work(self, event: Mapping[str, Any], invocation: Invocation) -> Mapping[str, Any]:
        """Run the batch. The answer names exactly the messages that stay on the queue."""
        batch = Batch(self.settings, invocation)
        with batch(records=event["Records"], handler=batch.require_done):
            batch.process()
        telemetry = Telemetry(stage=self.stage)
        for message in batch.messages.values():
            for reference, report in message.reports():
                telemetry.attempt_ended(self.settings.lane, reference, report)
        telemetry.flush()
        self._delay([message for message in batch.messages.values() if message.report.put_back_until])
        return batch.response()

    def _delay(self, put_back: Sequence[MessageRun]) -> None:
        """Hide the messages until their jobs can run. Best effort: else they return with the queue's own timeout.

        No error may leave this method, since the invocation must still answer for its batch.
        """
        if not put_back:
            return
        now = self.settings.context.clock()
        entries: list[Any] = [
            {
                "Id": str(index),
                "ReceiptHandle": message.record["receiptHandle"],
                "VisibilityTimeout": _visibility_seconds(message.report.put_back_until or now, now),
            }
            for index, message in enumerate(put_back)
        ]
        try:
            answer = self.queues.change_message_visibility_batch(QueueUrl=self.queue_url, Entries=entries)
        except AWS_ERRORS as error:
            logger().warning("message visibility not changed", extra={"error": str(error)})
            return
        for failed in answer.get("Failed", []):
            logger().warning("message visibility not changed", extra={"error": failed.get("Message", "")})


def _visibility_seconds(until: datetime, now: datetime) -> int:
    """As SQS takes it: whole seconds, rounded up, from 0 to the longest."""
    return min(max(math.ceil((until - now).total_seconds()), 0), _LONGEST_VISIBILITY_SECONDS)
