"""A batch of messages, run in parallel within the time of one invocation. Each is settled before the batch ends."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from tidemill.application.attempt.attempt_context import AttemptHooks
from tidemill.application.attempt.attempt_report import RunObserver
from tidemill.application.batch_handlers.joint_calls import JointCalls
from tidemill.domain.errors import TidemillError
from tidemill.telemetry.handler_output import handler_scope, joint_scope
from tidemill.telemetry.outcome_log import logger
from tidemill.telemetry.tracing import tracing
from tidemill.worker.message_run import SETTLE_RESERVE, Invocation, MessageRun, WorkerSettings, time_left

if TYPE_CHECKING:
    from tidemill.application.attempt.grouped_commit import GroupedCommit


class PutBackError(TidemillError):
    """Reports to the batch processor that this message must stay on the queue."""


class Batch(BatchProcessor):
    """Powertools takes records one after another. A job mostly waits for the network, so here each has a thread."""

    def __init__(
        self,
        settings: WorkerSettings,
        invocation: Invocation,
        observer: RunObserver,
        *,
        spoiled: Callable[[], bool] = lambda: False,
    ) -> None:
        """While `spoiled`, no further handler begins in this process."""
        super().__init__(EventType.SQS, raise_on_entire_batch_failure=False)
        self._settings = settings
        self._invocation = invocation
        self._observer = observer
        self._spoiled = spoiled
        #: By receipt handle, since a batch may hold a message twice.
        self.messages: dict[str, MessageRun] = {}
        #: The thread of each message.
        self._threads: dict[Future[None], MessageRun] = {}
        #: The threads that end attempts whose time is up.
        self._endings: list[Future[None]] = []
        #: Set when a message has ended or its deadline has moved.
        self._changed = threading.Event()
        #: Set while at most one message is at work.
        self._others_ended = threading.Event()
        #: Claims and settles some of the jobs together.
        self._grouped: GroupedCommit | None = None
        #: Held by the one job of the batch that waits until it is alone.
        self._waiting_alone = threading.Lock()

    def process(self) -> list[tuple[Any, ...]]:
        """Run all messages in parallel, then let Powertools collect those that stay on the queue."""
        deadline = self._settings.context.steady() + self._settings.job_timeout
        request_id = self._invocation.aws_request_id
        joint = JointCalls(
            self._settings.context, participants=len(self.records), scope=partial(joint_scope, request_id=request_id)
        )
        settings = self._settings.with_grouped_commit()
        self._grouped = settings.context.grouped
        hooks = AttemptHooks(
            wait_until_alone=self._wait_until_alone,
            stray_beside=lambda: self._spoiled() or bool(self.strays()),
            deadline_moved=self._changed.set,
            handler_scope=partial(handler_scope, request_id=request_id),
            settle_scope=tracing().settle,
            observer=self._observer,
            worker=f"{request_id}/{self._settings.version}",
        )
        self.messages = {
            record["receiptHandle"]: MessageRun(
                record, settings, deadline=deadline, hooks=hooks, participant=participant
            )
            for record, participant in zip(self.records, joint.participants, strict=True)
        }
        if self._settings.can_start_run(time_left(self._invocation)):
            self._run(list(self.messages.values()))
        # A thread may still run, but its attempt ends here, and the fence refuses its later writes.
        self._expire([message for message in self.messages.values() if not message.finished])
        for message in self.messages.values():
            message.abandon()
        return super().process()

    def strays(self) -> list[MessageRun]:
        """The messages whose handlers run beyond the end of their attempts."""
        return [message for message in self.messages.values() if message.stray]

    def job_types(self) -> list[str]:
        """Return the types of the jobs whose messages were claimed."""
        return sorted({message.report.job.type for message in self.messages.values() if message.report.job})

    def await_other_threads(self) -> None:
        """Wait for all threads but the stray ones, once the batch has ended.

        Each is in calls to AWS, which `aws/clients.py` bounds. Such a call may settle a run or give a claim back.
        """
        while others := [future for future in self._endings if not future.done()] + [
            future for future, message in self._threads.items() if not future.done() and not message.stray
        ]:
            wait(others)

    def require_done(self, record: SQSRecord) -> None:
        """The record handler of Powertools. Raises `PutBackError` for a message that must stay on the queue."""
        message = self.messages[record.receipt_handle]
        if message.report.put_back_until:
            raise PutBackError(message.report.ending)

    def failure_handler(self, record: Any, exception: Any) -> Any:
        """A message that is put back has its line already."""
        if not isinstance(error := exception[1], PutBackError):
            logger().error("record not processed", exc_info=error)
        return super().failure_handler(record, exception)

    def _wait_until_alone(self, deadline: datetime) -> datetime | None:
        """Wait until one job of the batch is alone. The wait leaves time for a whole run."""
        if not self._waiting_alone.acquire(blocking=False):
            return None
        # At its deadline the attempt is settled as failed, and its handler must not start any more.
        until_deadline = deadline - self._settings.context.steady() - SETTLE_RESERVE
        longest = min(time_left(self._invocation) - self._settings.job_timeout - SETTLE_RESERVE, until_deadline)
        if not self._others_ended.wait(timeout=max(longest.total_seconds(), 0.0)):
            return None
        return self._settings.context.steady() + self._settings.job_timeout

    def _run(self, messages: list[MessageRun]) -> None:
        """Run the messages in parallel. One that reaches its deadline expires while the others go on."""
        pool = ThreadPoolExecutor(max_workers=len(messages) + 1)
        # The jobs need it after their claims. A read meanwhile costs them no time.
        pool.submit(self._settings.context.configuration)
        if self._grouped:
            self._grouped.expect(message.reference for message in messages if message.reference)
        running = self._threads = {pool.submit(message.run, self._invocation): message for message in messages}
        for future, message in running.items():
            future.add_done_callback(partial(self._ended, message))
        while running:
            self._changed.clear()
            now = self._settings.context.steady()
            late = [message for message in running.values() if message.deadline and message.deadline <= now]
            self._expire(late)
            running = {
                future: message for future, message in running.items() if not future.done() and message not in late
            }
            if len(running) <= 1:
                self._others_ended.set()
            if running:
                deadlines = [message.deadline for message in running.values() if message.deadline]
                # A message without a deadline is about to end, which sets the event.
                self._changed.wait(timeout=max((min(deadlines) - now).total_seconds(), 0.0) if deadlines else None)
        pool.shutdown(wait=False)

    def _ended(self, message: MessageRun, future: "Future[None]") -> None:
        if self._grouped and message.reference:
            self._grouped.leave(message.reference)
        self._changed.set()
        # Only a fault of the engine comes here. Its job ends as if its time were over, and nothing else says why.
        if isinstance(error := future.exception(), Exception):
            logger().error("the thread of a message failed", exc_info=error)

    def _expire(self, messages: Sequence[MessageRun]) -> None:
        """Expire the messages in parallel, and wait for all of them at most half of the settle reserve."""
        if messages:
            pool = ThreadPoolExecutor(max_workers=len(messages))
            endings = [pool.submit(message.expire) for message in messages]
            self._endings += endings
            wait(endings, timeout=(SETTLE_RESERVE / 2).total_seconds())
            pool.shutdown(wait=False)
