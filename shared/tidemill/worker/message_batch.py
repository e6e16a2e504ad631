"""A batch of messages, run side by side within one invocation's time, each settled before the batch is answered."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import datetime
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from tidemill.domain.errors import TidemillError
from tidemill.telemetry.outcome_log import logger
from tidemill.worker.message_run import MARGIN, Invocation, MessageRun, Terms, remaining


class PutBackError(TidemillError):
    """Tells the batch processor that this message must stay on the queue."""


class Batch(BatchProcessor):
    """Powertools takes records one after another; a job mostly waits for the network, so here each has a thread."""

    def __init__(self, terms: Terms, context: Invocation) -> None:
        super().__init__(EventType.SQS, raise_on_entire_batch_failure=False, logger=logger())  # type: ignore[arg-type]  # a proxy
        self._terms = terms
        self._context = context
        #: By receipt, since a batch may hold a message twice.
        self.messages: dict[str, MessageRun] = {}
        #: Set when a message has ended, or its time turns out to be shorter.
        self._news = threading.Event()
        #: Set while no more than one message is at work.
        self._quiet = threading.Event()
        self._suspect = threading.Lock()

    def process(self) -> list[tuple[Any, ...]]:
        """Run all at once, then let Powertools collect what must stay."""
        deadline = self._terms.tools.clock() + self._terms.job_timeout
        self.messages = {
            record["receiptHandle"]: MessageRun(
                record, self._terms, deadline=deadline, alone=self._alone, hastened=self._news.set
            )
            for record in self.records
        }
        if self._terms.enough(remaining(self._context)):
            self._run(list(self.messages.values()))
        # A run that goes on now writes nothing any more: its attempt is ended here, and the fence holds it off.
        _overlap([message for message in self.messages.values() if not message.finished], MessageRun.expire)
        for message in self.messages.values():
            message.abandon()
        return super().process()

    def keep(self, record: SQSRecord) -> None:
        """The record handler: raises for a message that must stay on the queue."""
        message = self.messages[record.receipt_handle]
        if message.report.put_back_until:
            raise PutBackError(message.report.ending)

    def _alone(self, deadline: datetime) -> datetime | None:
        """For one job of the batch: wait until the others have ended, while a whole run can still follow."""
        if not self._suspect.acquire(blocking=False):
            return None
        # Past its own deadline its attempt is settled as failed, and it must not begin any more.
        own = deadline - self._terms.tools.clock() - MARGIN
        slack = min(remaining(self._context) - self._terms.job_timeout - MARGIN, own)
        if not self._quiet.wait(timeout=max(slack.total_seconds(), 0.0)):
            return None
        return self._terms.tools.clock() + self._terms.job_timeout

    def _run(self, messages: list[MessageRun]) -> None:
        """Side by side, each until it has ended or its time is up, which is told to it while the others go on."""
        pool = ThreadPoolExecutor(max_workers=len(messages))
        running = {pool.submit(message.run, self._context): message for message in messages}
        for future in running:
            future.add_done_callback(lambda _: self._news.set())
        while running:
            self._news.clear()
            now = self._terms.tools.clock()
            late = [message for message in running.values() if message.deadline and message.deadline <= now]
            _overlap(late, MessageRun.expire)
            running = {
                future: message for future, message in running.items() if not future.done() and message not in late
            }
            if len(running) <= 1:
                self._quiet.set()
            if running:
                deadlines = [message.deadline for message in running.values() if message.deadline]
                # One without a deadline is about to end, which is news.
                self._news.wait(timeout=max((min(deadlines) - now).total_seconds(), 0.0) if deadlines else None)
        pool.shutdown(wait=False)


def _overlap(messages: Sequence[MessageRun], step: Callable[[MessageRun], None]) -> None:
    """Take the step with each, side by side, and wait no longer than the margin allows for all."""
    if messages:
        pool = ThreadPoolExecutor(max_workers=len(messages))
        wait([pool.submit(step, message) for message in messages], timeout=(MARGIN / 2).total_seconds())
        pool.shutdown(wait=False)
