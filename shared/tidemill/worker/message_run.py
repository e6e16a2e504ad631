"""One message of a batch: the attempt that it asks for, and those at the jobs of its group whose turn comes next."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

from tidemill.application.attempt import Attempt
from tidemill.application.attempt_report import Ending, Report
from tidemill.application.settle import AHEAD_DELAY, Tools
from tidemill.domain.errors import JobTimeoutError, MalformedDocumentError, NewerSchemaError
from tidemill.domain.job import Job, Reference, reference_to
from tidemill.domain.states import State
from tidemill.names import TIMEOUT_MARGIN_SECONDS, Lane
from tidemill.powertools.idempotency import run_once
from tidemill.sqs import messages
from tidemill.telemetry.outcome_log import logger

#: What is kept back of an invocation to settle what ran its whole time.
MARGIN: Final = timedelta(seconds=TIMEOUT_MARGIN_SECONDS)


class Invocation(Protocol):
    """What the Lambda context tells of the time."""

    def get_remaining_time_in_millis(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What holds for every run of a lane's worker. One may take `job_timeout`."""

    tools: Tools
    lane: Lane
    job_timeout: timedelta
    #: Go on with the next job of a group at once, while there is time, instead of when its message comes.
    follows_groups: bool = True

    def enough(self, left: timedelta) -> bool:
        """Whether a run may begin that takes its whole time."""
        return left >= self.job_timeout + MARGIN


def remaining(invocation: Invocation) -> timedelta:
    return timedelta(milliseconds=invocation.get_remaining_time_in_millis())


class MessageRun:
    """A message of the batch, and what became of it: of its job, and of those of its group that came next."""

    def __init__(
        self,
        record: Mapping[str, Any],
        terms: Terms,
        *,
        deadline: datetime,
        alone: Callable[[datetime], datetime | None],
        hastened: Callable[[], None],
    ) -> None:
        self.record = record
        self._terms = terms
        self._new_attempt = partial(
            Attempt, tools=terms.tools, lane_timeout=terms.job_timeout, alone=alone, hastened=hastened
        )
        self._earlier: list[Attempt] = []
        self._attempt: Attempt | None = None
        self._report: Report | None = None
        #: Nothing more is begun for it.
        self.finished = False
        try:
            receives = int(record["attributes"]["ApproximateReceiveCount"])
            body = messages.decode(record["body"])
            self._attempt = self._new_attempt(body, deadline=deadline, receives=receives)
        except NewerSchemaError as error:
            # A worker of the version that is being deployed will take it.
            until = terms.tools.clock() + AHEAD_DELAY
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
            self._contain(partial(run_once, remaining=remaining(context)))
            if (following := self._next_of_group(self._attempt, remaining(context))) is None:
                break
            deadline = self._terms.tools.clock() + self._terms.job_timeout
            self._earlier.append(self._attempt)
            self._attempt = self._new_attempt(reference_to(following), deadline=deadline)
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

    def _next_of_group(self, attempt: Attempt, left: timedelta) -> Job | None:
        """The job whose turn it is now. Its message is on its way, too: should this worker die, that one finds it."""
        job = attempt.report.job if attempt.report and attempt.report.ended else None
        if job is None or job.group is None or self.finished:
            return None
        if not self._terms.follows_groups or not self._terms.enough(left):
            return None
        now = self._terms.tools.clock()
        try:
            following = self._terms.tools.store.advance(job.tenant, job.group, now=now)
        except Exception as error:  # noqa: BLE001 - whatever it is, the job that ended has ended, and the stream tries it too
            logger().warning("its group goes on with the stream", extra={"job_id": job.id, "error": str(error)})
            return None
        ready = following and following.state is State.QUEUED and following.lane is self._terms.lane
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
