"""One message of a batch: the attempt at its job, then attempts at the next jobs of the same group."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_context import AttemptContext, AttemptHooks
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.participant import Participant
from tidemill.domain.dispatch.claim_verdict import AHEAD_DELAY, ClaimVerdict
from tidemill.domain.dispatch.job_message import Reference, reference_to
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import JobTimeoutError, MalformedDocumentError, NewerSchemaError, OtherEpochError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import SETTLE_RESERVE_SECONDS, Lane
from tidemill.powertools.idempotency import run_once
from tidemill.sqs import messages
from tidemill.telemetry.outcome_log import first_message_not_sent, logger

if TYPE_CHECKING:
    from tidemill.application.attempt.grouped_commit import GroupedWrites
    from tidemill.application.dispatch.first_messages import FirstMessages

SETTLE_RESERVE: Final = timedelta(seconds=SETTLE_RESERVE_SECONDS)


class Invocation(Protocol):
    """The Lambda context, as far as a worker reads it."""

    @property
    def aws_request_id(self) -> str: ...

    def get_remaining_time_in_millis(self) -> int: ...


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """The settings of one lane's worker. A run may take `job_timeout`."""

    context: AttemptContext
    lane: Lane
    job_timeout: timedelta
    #: Whether the worker starts the next job of a group at once, while time is left, without waiting for its message.
    follows_groups: bool = True
    #: None: the lane has no first messages at once.
    first_messages: "FirstMessages | None" = None
    #: The version of the code, for log lines and for the history of the jobs.
    version: str = ""
    #: How often the jobs were restored from a backup. Tables differ by epoch, so each epoch has workers of its own.
    epoch: int = 0
    #: None: no type of this worker has grouped commit.
    grouped_writes: "GroupedWrites | None" = None

    def with_grouped_commit(self) -> "WorkerSettings":
        """For the messages of one batch."""
        if self.grouped_writes is None:
            return self
        from tidemill.application.attempt.grouped_commit import GroupedCommit  # noqa: PLC0415 - few workers need it

        context = self.context
        grouped = GroupedCommit(context.store, self.grouped_writes, context.job_types, context.configuration)
        return replace(self, context=replace(context, grouped=grouped))

    def can_start_run(self, left: timedelta) -> bool:
        """Whether the time left is enough for a run that uses its whole time."""
        return left >= self.job_timeout + SETTLE_RESERVE


def time_left(invocation: Invocation) -> timedelta:
    return timedelta(milliseconds=invocation.get_remaining_time_in_millis())


class MessageRun:
    """A message of the batch and its attempts. The observer gets the report on each."""

    def __init__(
        self,
        record: Mapping[str, Any],
        settings: WorkerSettings,
        *,
        deadline: datetime,
        hooks: AttemptHooks,
        participant: Participant,
    ) -> None:
        self._settings = settings
        self._participant = participant

        def wait_until_alone_in_no_call(deadline: datetime) -> datetime | None:
            # The others may wait for this one.
            participant.leave_call()
            return hooks.wait_until_alone(deadline)

        self._hooks = replace(hooks, wait_until_alone=wait_until_alone_in_no_call)
        self._new_attempt = partial(
            Attempt,
            context=settings.context,
            lane_timeout=settings.job_timeout,
            hooks=self._hooks,
            participant=participant,
        )
        #: The attempt at the job of the message, and the present one, which may be at a later job of its group.
        self._first: Attempt | None = None
        self._attempt: Attempt | None = None
        #: Set for a message that this worker cannot read, which has no attempt.
        self._unread: Report | None = None
        #: Once set, no further attempt begins.
        self.finished = False
        try:
            receives = int(record["attributes"]["ApproximateReceiveCount"])
            body = messages.decode(record["body"], epoch=settings.epoch)
            self._first = self._attempt = self._new_attempt(body, deadline=deadline, receives=receives)
        except MalformedDocumentError as error:
            self._unread = _report_on_unread(error, now=settings.context.clock())
            hooks.observer.ended(None, self._unread)

    @property
    def reference(self) -> Reference | None:
        """To the job of the message itself; None for a message that this worker cannot read."""
        return self._first.reference if self._first else None

    @property
    def report(self) -> Report:
        """The report on the job of the message itself."""
        report = self._unread or (self._first.report if self._first else None)
        if report is None:
            raise AssertionError("a message has a report once its attempt has ended")
        return report

    @property
    def deadline(self) -> datetime | None:
        """The deadline of the present attempt; None if no attempt is at work."""
        attempt = self._attempt
        return None if self.finished or attempt is None else attempt.deadline

    @property
    def stray(self) -> Reference | None:
        """The job whose handler still runs although its attempt has ended."""
        return self._attempt.reference if self._attempt and self._attempt.is_stray() else None

    def release_slot(self) -> None:
        """Release the limit slot of the stray handler."""
        if self._attempt:
            self._attempt.release_slot()

    def run(self, invocation: Invocation) -> None:
        """The attempt at the job, then, while time is left, one at each next job of its group."""
        while self._attempt is not None and not self.finished:
            self._contain_errors(partial(run_once, remaining=time_left(invocation)))
            self._participant.leave_call()
            self._contain_errors(self._send_first_messages)
            if (following := self._next_of_group(self._attempt, time_left(invocation))) is None:
                break
            deadline = self._settings.context.steady() + self._settings.job_timeout
            self._attempt = self._new_attempt(reference_to(following), deadline=deadline)
        self._participant.leave_call()
        self.finished = True

    def expire(self) -> None:
        """Time is up: end the attempt. No-op if it has ended."""
        self.finished = True
        self._contain_errors(Attempt.expire)

    def abandon(self) -> None:
        """No time is left to settle: put the message back. No-op if the attempt has ended."""
        self.finished = True
        if self._attempt:
            self._attempt.unavailable(JobTimeoutError("the attempt could not be settled in time"))

    def _send_first_messages(self, attempt: Attempt) -> None:
        """For what the settle has let run at once. Publish sends each of these messages too."""
        report, first_messages = attempt.report, self._settings.first_messages
        if report is None or first_messages is None or self.finished:
            return
        written = [*report.follow_ups, *([report.again] if report.again else [])]
        if error := first_messages.send(written):
            first_message_not_sent(error)

    def _next_of_group(self, attempt: Attempt, left: timedelta) -> Job | None:
        """The next job of the group. Its message is on its way too, so the job survives the death of this worker."""
        job = attempt.report.job if attempt.report and attempt.report.job_is_terminal else None
        if job is None or job.group.key is None or self.finished:
            return None
        if not self._settings.follows_groups or not self._settings.can_start_run(left) or self._hooks.stray_beside():
            return None
        now = self._settings.context.clock()
        try:
            following = self._settings.context.store.advance(job.tenant, job.group.key, now=now)
        except Exception as error:  # noqa: BLE001 - the job has ended in any case, and publish advances the group too
            extra = {"job_id": job.id, "group": job.group.key, "error": text_of(error)}
            logger().warning("group not advanced by the worker", extra=extra)
            return None
        if following is None or following.due is None or following.due > now:
            return None
        return following if following.state is State.QUEUED and following.lane is self._settings.lane else None

    def _contain_errors(self, step: Callable[[Attempt], None]) -> None:
        """Report an error of a handler, or a bug of the engine. The rest of the batch still needs its answer."""
        attempt = self._attempt
        if attempt is None:
            return
        try:
            step(attempt)
        except Exception as error:  # noqa: BLE001
            attempt.unavailable(error)


def _report_on_unread(error: MalformedDocumentError, *, now: datetime) -> Report:
    """On a message that this worker cannot read."""
    until = now + AHEAD_DELAY
    if isinstance(error, NewerSchemaError):
        # A worker of the version that is being deployed will take it.
        return Report(ending=Ending.UNAVAILABLE, error=str(error), put_back_until=until)
    if isinstance(error, OtherEpochError) and error.later:
        # This worker has the table from before the restore. One with the restored table will take the message.
        return Report(ending=Ending.REFUSED, verdict=ClaimVerdict.AHEAD, error=str(error), put_back_until=until)
    if isinstance(error, OtherEpochError):
        # The recovery dispatched every restored job anew, so the job has a message of this epoch.
        return Report(ending=Ending.REFUSED, verdict=ClaimVerdict.STALE, error=str(error))
    # No accepted job is lost with the message: each accepted job is a document.
    return Report(ending=Ending.MALFORMED, error=str(error))
