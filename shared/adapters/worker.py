"""A batch of messages, run side by side within one invocation's time, each settled before the batch is answered."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from shared.adapters import messages
from shared.adapters.clients import AWS_ERRORS
from shared.adapters.idempotency import run_once
from shared.adapters.telemetry import Telemetry, logger
from shared.application.report import Ending, Report
from shared.application.run import Attempt
from shared.application.settle import AHEAD_DELAY, Tools
from shared.domain.errors import (
    JobTimeoutError,
    MalformedDocumentError,
    MillraceError,
    NewerSchemaError,
    StoreUnavailableError,
    TransactionConflictError,
)
from shared.domain.job import Job, Reference, reference_to
from shared.domain.states import State
from shared.names import TIMEOUT_MARGIN_SECONDS, Lane

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

#: The longest visibility timeout of SQS.
_LONGEST_HIDING_SECONDS: Final = 12 * 60 * 60
#: A type's own, shorter time is known only once its attempt has been claimed, so a look is taken this often.
_LOOK_AGAIN_SECONDS: Final = 0.1
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
    #: Go on with the next job of a group at once, while there is time, instead of when its message comes.
    follows_groups: bool = True

    def work(self, event: Mapping[str, Any], context: Invocation) -> Mapping[str, Any]:
        """Run the batch; the answer names the messages that must stay on the queue, and only those."""
        batch = _Batch(self, context)
        with batch(records=event["Records"], handler=batch.keep):
            batch.process()
        telemetry = Telemetry(stage=self.stage)
        for message in batch.messages.values():
            for reference, report in message.history():
                telemetry.worked(self.lane, reference, report)
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
    """A message of the batch, and what became of it: of its job, and of those of its group that came next."""

    def __init__(self, record: Mapping[str, Any], worker: Worker, *, deadline: datetime) -> None:
        self.record = record
        self._worker = worker
        self._earlier: list[Attempt] = []
        self._attempt: Attempt | None = None
        self._report: Report | None = None
        #: Nothing more is begun for it.
        self.finished = False
        try:
            receives = int(record["attributes"]["ApproximateReceiveCount"])
            body = messages.decode(record["body"])
            self._attempt = Attempt(body, worker.tools, deadline=deadline, receives=receives)
        except NewerSchemaError as error:
            # A worker of the version that is being deployed will take it.
            until = worker.tools.clock() + AHEAD_DELAY
            self._report = Report(ending=Ending.UNAVAILABLE, error=str(error), put_back_until=until)
        except MalformedDocumentError as error:
            # Nothing that was accepted is lost with it: what was accepted is a document.
            self._report = Report(ending=Ending.MALFORMED, cause=error)

    @property
    def report(self) -> Report:
        """What became of the message itself, whatever came after."""
        first = self._earlier[0] if self._earlier else self._attempt
        report = self._report or (first.report if first else None)
        if report is None:
            raise AssertionError("a message is reported on when its attempt has ended")
        return report

    @property
    def deadline(self) -> datetime | None:
        """When what runs now must have ended; None when nothing does."""
        attempt = self._attempt
        return None if self.finished or attempt is None else attempt.deadline

    def history(self) -> Iterator[tuple[Reference | None, Report]]:
        if self._attempt is None:
            yield None, self.report
        elif not self._earlier:
            yield self._attempt.reference, self.report
        else:
            for attempt in (*self._earlier, self._attempt):
                if attempt.report:
                    yield attempt.reference, attempt.report

    def run(self, context: Invocation) -> None:
        """The attempt, and while there is time one at each job whose turn it becomes."""
        while self._attempt is not None and not self.finished:
            self._contain(partial(run_once, remaining=_remaining(context)))
            if (following := self._next_of_group(self._attempt, _remaining(context))) is None:
                break
            deadline = self._worker.tools.clock() + self._worker.job_timeout
            self._earlier.append(self._attempt)
            self._attempt = Attempt(reference_to(following), self._worker.tools, deadline=deadline)
        self.finished = True

    def expire(self) -> None:
        """Time is up. Does nothing if the attempt has ended."""
        self.finished = True
        self._contain(Attempt.expire)

    def abandon(self) -> None:
        """There is not even time to settle. Does nothing if the attempt has ended."""
        self.finished = True
        if self._attempt:
            self._attempt.unavailable(JobTimeoutError("the attempt could not be settled in time"))

    def _next_of_group(self, attempt: Attempt, remaining: timedelta) -> Job | None:
        """The job whose turn it is now. Its message is on its way, too: should this worker die, that one finds it."""
        job = attempt.report.job if attempt.report and attempt.report.ended else None
        enough = remaining >= self._worker.job_timeout + _MARGIN
        if job is None or job.group is None or self.finished or not (enough and self._worker.follows_groups):
            return None
        now = self._worker.tools.clock()
        try:
            following = self._worker.tools.store.advance(job.tenant, job.group, now=now)
        except (StoreUnavailableError, TransactionConflictError):
            return None  # the stream will see to it
        ready = following and following.state is State.QUEUED and following.lane is self._worker.lane
        return following if following and ready and following.due and following.due <= now else None

    def _contain(self, step: Callable[[Attempt], None]) -> None:
        """A handler may raise anything, and so may a bug of ours: neither may cost the rest of the batch its answer."""
        attempt = self._attempt
        if attempt is None:
            return
        try:
            step(attempt)
        except Exception as error:  # noqa: BLE001
            attempt.unavailable(error)
            if attempt.report:
                attempt.report = replace(attempt.report, cause=error)


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
        if _remaining(self._context) >= self._worker.job_timeout + _MARGIN:
            self._run(list(self.messages.values()))
        # A run that goes on now writes nothing any more: its attempt is ended here, and the fence holds it off.
        _overlap([message for message in self.messages.values() if not message.finished], _Message.expire)
        for message in self.messages.values():
            message.abandon()
        return super().process()

    def keep(self, record: SQSRecord) -> None:
        """The record handler: raises for a message that must stay on the queue."""
        message = self.messages[record.receipt_handle]
        if message.report.put_back_until:
            raise PutBackError(message.report.ending)

    def _run(self, messages: list[_Message]) -> None:
        """Side by side, each until it has ended or its time is up, which is told to it while the others go on."""
        pool = ThreadPoolExecutor(max_workers=len(messages))
        running = {pool.submit(message.run, self._context): message for message in messages}
        while running:
            now = self._worker.tools.clock()
            late = [future for future, message in running.items() if message.deadline and message.deadline <= now]
            _overlap([running.pop(future) for future in late], _Message.expire)
            deadlines = [message.deadline for message in running.values() if message.deadline]
            patience = min([*((deadline - now).total_seconds() for deadline in deadlines), _LOOK_AGAIN_SECONDS])
            done, _ = wait(running, timeout=max(patience, 0.0), return_when=FIRST_COMPLETED)
            for future in done:
                del running[future]
        pool.shutdown(wait=False)


def _remaining(context: Invocation) -> timedelta:
    return timedelta(milliseconds=context.get_remaining_time_in_millis())


def _overlap(messages: Sequence[_Message], step: Callable[[_Message], None]) -> None:
    """Take the step with each, side by side, and wait no longer than the margin allows for all."""
    if messages:
        pool = ThreadPoolExecutor(max_workers=len(messages))
        wait([pool.submit(step, message) for message in messages], timeout=(_MARGIN / 2).total_seconds())
        pool.shutdown(wait=False)
