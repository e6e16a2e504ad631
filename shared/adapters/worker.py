"""A batch of messages, run side by side within one invocation's time, each settled before the batch is answered."""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from shared.adapters import messages
from shared.adapters.clients import AWS_ERRORS
from shared.adapters.idempotency import run_once
from shared.adapters.telemetry import Telemetry, logger
from shared.application.run import AHEAD_DELAY, Attempt, Ending, Report, Tools
from shared.domain.errors import JobTimeoutError, MalformedDocumentError, MillraceError, NewerSchemaError
from shared.names import TIMEOUT_MARGIN_SECONDS, Lane

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The longest visibility timeout of SQS.
_LONGEST_HIDING_SECONDS: Final = 12 * 60 * 60
_MARGIN: Final = timedelta(seconds=TIMEOUT_MARGIN_SECONDS)


class Invocation(Protocol):
    """What the Lambda context tells of the time."""

    def get_remaining_time_in_millis(self) -> int: ...


class PutBackError(MillraceError):
    """Tells the batch processor that this message must stay on the queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """One lane's worker. A run may take `job_timeout`."""

    tools: Tools
    lane: Lane
    queue_url: str
    queues: "SQSClient"
    stage: str
    job_timeout: timedelta

    def work(self, event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
        """Run the batch; the answer names the messages that must stay on the queue, and only those."""
        batch = _Batch(self, context)
        with batch(records=event["Records"], handler=batch.keep):
            batch.process()
        telemetry = Telemetry(stage=self.stage)
        for message in batch.messages.values():
            telemetry.worked(self.lane, message.attempt.reference if message.attempt else None, message.report)
        telemetry.flush()
        self._hide([message for message in batch.messages.values() if message.report.put_back_until])
        return batch.response()

    def _hide(self, kept: Sequence["_Message"]) -> None:
        """Have messages come back when they can be of use. Failing that, they come back with the queue's own timeout.

        Whatever goes wrong here, what the batch has done must still be answered for.
        """
        if not kept:
            return
        now = self.tools.clock()
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


class _Message:
    """A message of the batch, and what became of it."""

    def __init__(self, record: Mapping[str, Any], worker: Worker, *, deadline: datetime) -> None:
        self.record = record
        self.attempt: Attempt | None = None
        self._report: Report | None = None
        try:
            receives = int(record["attributes"]["ApproximateReceiveCount"])
            body = messages.decode(record["body"])
            self.attempt = Attempt(body, worker.tools, deadline=deadline, receives=receives)
        except NewerSchemaError as error:
            # A worker of the version that is being deployed will take it.
            until = worker.tools.clock() + AHEAD_DELAY
            self._report = Report(ending=Ending.UNAVAILABLE, error=str(error), put_back_until=until)
        except MalformedDocumentError as error:
            # Nothing that was accepted is lost with it: what was accepted is a document.
            self._report = Report(ending=Ending.MALFORMED, cause=error)

    @property
    def report(self) -> Report:
        report = self._report or (self.attempt.report if self.attempt else None)
        if report is None:
            raise AssertionError("a message is reported on when its attempt has ended")
        return report

    def run(self, remaining: timedelta) -> None:
        self._contain(lambda attempt: run_once(attempt, remaining=remaining))

    @property
    def ended(self) -> bool:
        return self.attempt is None or self.attempt.has_ended()

    def expire(self) -> None:
        """Time is up. Does nothing if the attempt has ended."""
        self._contain(Attempt.expire)

    def abandon(self) -> None:
        """There is not even time to settle. Does nothing if the attempt has ended."""
        if self.attempt:
            self.attempt.unavailable(JobTimeoutError("the attempt could not be settled in time"))

    def _contain(self, step: Callable[[Attempt], None]) -> None:
        """A handler may raise anything, and so may a bug of ours: neither may cost the rest of the batch its answer."""
        if self.attempt is None:
            return
        try:
            step(self.attempt)
        except Exception as error:  # noqa: BLE001
            self.attempt.unavailable(error)
            self._report = replace(self.report, cause=error)


class _Batch(BatchProcessor):
    """Powertools takes records one after another; a job mostly waits for the network, so here each has a thread."""

    def __init__(self, worker: Worker, context: Invocation) -> None:
        super().__init__(EventType.SQS, raise_on_entire_batch_failure=False, logger=logger())  # type: ignore[arg-type]  # a proxy
        self._worker = worker
        self._context = context
        #: By receipt, since a batch may hold a message twice.
        self.messages: dict[str, _Message] = {}

    def process(self) -> list[tuple[Any, ...]]:
        """Run all at once, then let Powertools collect what must stay."""
        deadline = self._worker.tools.clock() + self._worker.job_timeout
        self.messages = {
            record["receiptHandle"]: _Message(record, self._worker, deadline=deadline) for record in self.records
        }
        remaining = timedelta(milliseconds=self._context.get_remaining_time_in_millis())
        if remaining >= self._worker.job_timeout + _MARGIN:
            _overlap(list(self.messages.values()), lambda message: message.run(remaining), self._worker.job_timeout)
        # A run that goes on now writes nothing any more: its attempt is ended here, and the fence holds it off.
        _overlap([message for message in self.messages.values() if not message.ended], _Message.expire, _MARGIN / 2)
        for message in self.messages.values():
            message.abandon()
        return super().process()

    def keep(self, record: SQSRecord) -> None:
        """The record handler: raises for a message that must stay on the queue."""
        message = self.messages[record.receipt_handle]
        if message.report.put_back_until:
            raise PutBackError(message.report.ending)


def _overlap(messages: Sequence[_Message], step: Callable[[_Message], None], timeout: timedelta) -> None:
    """Take the step with each, side by side, and wait no longer than `timeout` for all."""
    if messages:
        pool = ThreadPoolExecutor(max_workers=len(messages))
        wait([pool.submit(step, message) for message in messages], timeout=timeout.total_seconds())
        pool.shutdown(wait=False)
