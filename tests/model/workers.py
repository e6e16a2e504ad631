"""Workers of the shipped system: each has one message, runs the shipped code, and pauses in its handler."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import cache
from typing import Any, Final

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]

from tests.model import model_types
from tests.model.model_types import Ending, SubmitRequest
from tests.model.shipped_system import EFFECTS, ShippedSystem, moment, since_beginning
from tests.simulation.world.task_scheduler import Killed
from tidemill.application.attempt.attempt_context import AttemptHooks
from tidemill.application.attempt.attempt_report import Ending as AttemptEnding
from tidemill.application.attempt.attempt_report import Report
from tidemill.application.attempt.participant import SoleParticipant
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.attempt.return_values import Cancelled, Continue, Done, GiveUp, Snooze
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import InvalidPayloadError, PermanentJobError, RetryAfter
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.limits.limits import Limit
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.waiting.waiting import Line
from tidemill.names import Lane
from tidemill.sqs import messages
from tidemill.worker.message_run import MessageRun

_LARGE: Final = "x" * 500
_CONTINUE: Final = object()
_LIVES_ON: Final = {AttemptEnding.RETRYING, AttemptEnding.SNOOZED, AttemptEnding.CONTINUED, AttemptEnding.HELD}

#: The next action of a handler. It returns the value that ends the run, or `_CONTINUE`.
Step = Callable[[Run], Any]


class ShippedWorker:
    """A worker with a message."""

    def __init__(self, shipped: ShippedSystem, number: int, reference: Reference) -> None:
        self._shipped = shipped
        self._until = shipped.now + model_types.INVOCATION
        #: The result of each job that it tried.
        self.reported: list[str] = []
        record = {"attributes": {"ApproximateReceiveCount": "1"}, "body": messages.encode(reference)}
        self._run = MessageRun(
            record,
            shipped.settings,
            deadline=moment(self._until),
            hooks=AttemptHooks(observer=self, worker=f"request-{number}"),
            participant=SoleParticipant(),
        )
        self._greenlet = greenlet(lambda: self._run.run(self))
        self._greenlet.number = number
        self.aws_request_id = f"request-{number}"

    def start(self) -> None:
        self._greenlet.switch()

    def get_remaining_time_in_millis(self) -> int:
        return max(round((self._until - self._shipped.now) * 1000), 0)

    @property
    def runs(self) -> bool:
        return not self._greenlet.dead

    def claimed(self, job: Job) -> None:
        """Take the report of a `RunObserver`."""

    def lowered(self, job: Job, line: Line, change: ConcurrencyChange) -> None:
        """Take the report of a `RunObserver`."""

    def ended(self, _reference: Reference | None, report: Report) -> None:
        self.reported.append(_described(report))

    def save_checkpoint(self, value: int) -> None:
        def save(run: Run) -> Any:
            run.checkpoint(value)
            return _CONTINUE

        self._greenlet.switch(save)

    def end(self, ending: Ending) -> None:
        self._greenlet.switch(lambda run: _ended(ending, self._shipped.names[run.job_id]))

    def time_out(self) -> None:
        self._run.expire()

    def stop(self) -> None:
        """Unwind it at the end of its example, so that it cannot affect another."""
        with suppress(Killed):
            self._greenlet.throw(Killed)


def submission(request: SubmitRequest) -> Submission:
    return Submission(
        type=request.kind,
        payload={"large": _LARGE} if request.large else {},
        delay=timedelta(seconds=request.delay),
        group=request.group,
        deadline=moment(request.deadline) if request.deadline < math.inf else None,
        key=None if request.unique else request.name,
        unique=Unique(period=timedelta(seconds=model_types.PERIOD), key=request.name) if request.unique else None,
    )


@cache
def job_types() -> JobTypes:
    types = [
        JobType(
            name=kind,
            lane=Lane.DEFAULT,
            retry=RetryPolicy(
                max_attempts=model_types.MAX_ATTEMPTS,
                max_hops=model_types.MAX_HOPS,
                backoff_seconds=model_types.BACKOFF,
            ),
            parse=_parsed,
            handler=_handle,
            blocks=kind == "strict",
            limit=Limit(concurrency=1) if kind == "single" else None,
        )
        for kind in ("plain", "strict", "single")
    ]
    return JobTypes({job_type.name: job_type for job_type in types})


def _parsed(text: str) -> Any:
    payload = json.loads(text)
    if payload not in ({}, {"large": _LARGE}):
        raise InvalidPayloadError([])
    return payload


def _handle(_payload: Any, run: Run) -> Any:
    """Pause, and perform the step that resumes it."""
    while True:
        step: Step = getcurrent().parent.switch()
        if (value := step(run)) is not _CONTINUE:
            return value


def _ended(ending: Ending, name: str) -> Any:
    after = timedelta(seconds=ending.seconds)
    match ending.word:
        case "succeeded":
            return Done(writes=[_effect(name)], then=[submission(ending.then)] if ending.then else [])
        case "cancelled":
            return Cancelled()
        case "gave up":
            return GiveUp("no point")
        case "snoozed":
            return Snooze(after)
        case "continued":
            return Continue(checkpoint=0, after=after)
        case "effect refused":
            return Done(writes=[_effect(name, ConditionExpression="attribute_exists(nothing)")])
        case "permanent error":
            raise PermanentJobError
        case _ if ending.seconds:
            raise RetryAfter(ending.seconds)
        case _:
            raise RuntimeError


def _effect(name: str, **more: Any) -> dict[str, Any]:
    return {
        "Update": {
            "TableName": EFFECTS,
            "Key": {"pk": {"S": name}},
            "UpdateExpression": "ADD effects :one",
            "ExpressionAttributeValues": {":one": {"N": "1"}},
            **more,
        }
    }


def _described(report: Report) -> str:
    until = f" until {since_beginning(report.put_back_until.timestamp() * 1000):g}" if report.put_back_until else ""
    if report.ending is AttemptEnding.REFUSED:
        return f"{report.verdict}{until}"
    if report.ending is AttemptEnding.FENCED:
        return f"fenced, {report.verdict}{until}"
    if report.ending in _LIVES_ON:
        return f"lives on{until}"
    return f"{report.ending}{until}"
