"""`MessageRun`: a message that its worker cannot read, and the next job of a group."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, a_job_type, types_of
from tests.support.single_job import Clock, tools
from tidemill import Snooze
from tidemill.application.attempt.attempt_context import AttemptHooks
from tidemill.application.attempt.attempt_report import Ending, Report, Unobserved
from tidemill.application.attempt.participant import SoleParticipant
from tidemill.domain.dispatch.claim_verdict import AHEAD_DELAY, ClaimVerdict
from tidemill.domain.dispatch.job_message import Reference, reference_to
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import OneJob
from tidemill.names import SETTLE_RESERVE_SECONDS, Lane
from tidemill.sqs import messages
from tidemill.worker import message_run
from tidemill.worker.message_run import MessageRun, WorkerSettings

#: The least time that a run needs.
ENOUGH = SECOND + timedelta(seconds=SETTLE_RESERVE_SECONDS)


class Invocation:
    aws_request_id = "request"

    def __init__(self, left: timedelta = ENOUGH) -> None:
        self._left = left

    def get_remaining_time_in_millis(self) -> int:
        return self._left // MILLISECOND


class Observer(Unobserved):
    def __init__(self) -> None:
        self.reports: list[tuple[Reference | None, Report]] = []

    def ended(self, reference: Reference | None, report: Report) -> None:
        self.reports.append((reference, report))


class Participant(SoleParticipant):
    left = False

    def leave_call(self) -> None:
        self.left = True


class OneOfGroup(OneJob):
    """`following` is what a first `advance` answers or raises."""

    def __init__(self, following: Job | Exception | None = None) -> None:
        super().__init__(a_job(group="orders"))
        self._following = following

    def advance(self, _tenant: str, _group: str, *, now: datetime) -> Job | None:
        following, self._following = self._following, None
        if isinstance(following, Exception):
            raise following
        return following


def a_message(
    body: str,
    *,
    store: OneJob | None = None,
    observer: Observer,
    participant: Participant | None = None,
    stray_beside: Callable[[Observer], bool] = lambda _seen: False,
    handler: Callable[[Any, Any], Any] = lambda _payload, _run: None,
    **settings: Any,
) -> MessageRun:
    """To a worker of epoch 2."""
    context = tools(store or OneJob(a_job()), types_of(a_job_type(handler)), Clock())  # type: ignore[arg-type]  # it needs less
    return MessageRun(
        {"attributes": {"ApproximateReceiveCount": "1"}, "body": body},
        WorkerSettings(context=context, lane=Lane.DEFAULT, job_timeout=SECOND, epoch=2, **settings),
        deadline=NOW + SECOND,
        hooks=AttemptHooks(stray_beside=lambda: stray_beside(observer), observer=observer, worker="request/version"),
        participant=participant or Participant(),
    )


def of_epoch(epoch: int) -> str:
    return messages.encode(reference_to(a_job()), epoch=epoch)


@pytest.mark.parametrize(
    ("body", "ending", "verdict", "later"),
    [
        ("{", Ending.MALFORMED, None, None),
        (json.dumps({"schema": 99}), Ending.UNAVAILABLE, None, AHEAD_DELAY),
        (of_epoch(3), Ending.REFUSED, ClaimVerdict.AHEAD, AHEAD_DELAY),
        (of_epoch(1), Ending.REFUSED, ClaimVerdict.STALE, None),
    ],
    ids=["malformed", "newer schema", "after a restore", "from before a restore"],
)
def test_a_message_that_its_worker_cannot_read_ends_at_once_with_one_report(
    body: str, ending: Ending, verdict: ClaimVerdict | None, later: timedelta | None
) -> None:
    observer, participant = Observer(), Participant()
    message = a_message(body, observer=observer, participant=participant)
    assert message.deadline is None

    message.run(Invocation())

    assert (message.finished, participant.left, message.deadline, message.stray) == (True, True, None, None)
    assert message.reference is None
    report = message.report
    assert (report.ending, report.verdict) == (ending, verdict)
    assert report.put_back_until == (NOW + later if later else None)
    assert observer.reports == [(None, report)]


def stray_after_first_run(seen: Observer) -> bool:
    return bool(seen.reports)


NEXT = a_job(id="next", group="orders", state=State.QUEUED, due=NOW)


@pytest.mark.parametrize(
    ("following", "more", "left", "runs"),
    [
        (NEXT, {}, ENOUGH, 2),
        (NEXT, {}, ENOUGH - MILLISECOND, 1),
        (NEXT, {"follows_groups": False}, ENOUGH, 1),
        (NEXT, {"stray_beside": stray_after_first_run}, ENOUGH, 1),
        (replace(NEXT, state=State.PARKED), {}, ENOUGH, 1),
        (replace(NEXT, lane=Lane.BULK), {}, ENOUGH, 1),
        (replace(NEXT, due=NOW + MILLISECOND), {}, ENOUGH, 1),
        (None, {}, ENOUGH, 1),
        (OSError("no answer"), {}, ENOUGH, 1),
    ],
    ids=["ready", "no time", "left to messages", "beside a stray", "parked", "other lane", "later", "none", "outage"],
)
def test_a_worker_goes_on_to_the_next_job_of_a_group_if_it_is_ready_and_time_is_left(
    following: Job | Exception | None, more: dict[str, Any], left: timedelta, runs: int
) -> None:
    observer, store = Observer(), OneOfGroup(following)
    message = a_message(of_epoch(2), store=store, observer=observer, **more)

    message.run(Invocation(left))

    assert message.finished
    assert [report.ending for _, report in observer.reports] == [Ending.SUCCEEDED] * runs
    assert [reference.job_id for reference, _ in observer.reports if reference][1:] == ["next"] * (runs - 1)
    assert message.report is observer.reports[0][1]


class Sent:
    """`FirstMessages` that notes the jobs of each call."""

    def __init__(self, error: str | None = None) -> None:
        self.jobs: list[list[str]] = []
        self.error = error

    def send(self, jobs: list[Job]) -> str | None:
        self.jobs.append([job.id for job in jobs])
        return self.error


@pytest.mark.parametrize(
    ("handler", "again"),
    [(lambda _payload, _run: None, []), (lambda _payload, _run: Snooze(SECOND), ["first"])],
    ids=["ended", "lives on"],
)
def test_the_message_of_a_job_that_lives_on_is_sent_at_once(handler: Any, again: list[str]) -> None:
    sent = Sent()
    message = a_message(
        of_epoch(2), store=OneJob(a_job(id="first")), observer=Observer(), handler=handler, first_messages=sent
    )
    message.run(Invocation())
    assert sent.jobs == [again]


def test_a_first_message_that_was_not_sent_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    monkeypatch.setattr(message_run, "first_message_not_sent", logged.append)
    for error in (None, "no answer"):
        a_message(of_epoch(2), observer=Observer(), first_messages=Sent(error)).run(Invocation())
    assert logged == ["no answer"]


def test_a_message_whose_time_is_up_has_no_deadline_and_starts_no_run() -> None:
    observer, sent = Observer(), Sent()
    message = a_message(of_epoch(2), observer=observer, first_messages=sent)
    deadlines = [message.deadline]
    assert message.stray is None

    message.abandon()

    assert message.finished
    assert [*deadlines, message.deadline] == [NOW + SECOND, None]
    assert message.report.ending is Ending.UNAVAILABLE
    message.run(Invocation())
    assert [report.ending for _, report in observer.reports] == [Ending.UNAVAILABLE]
    assert sent.jobs == []


def test_an_expired_message_is_finished() -> None:
    message = a_message(of_epoch(2), observer=Observer())
    message.expire()
    assert (message.finished, message.deadline) == (True, None)


def test_a_message_without_an_attempt_has_no_slot_and_no_end_of_one() -> None:
    message = a_message("{", observer=Observer())
    message.release_slot()
    message.expire()
    message.abandon()
    assert message.report.ending is Ending.MALFORMED


def test_a_message_names_its_job_and_has_a_report_only_after_its_attempt() -> None:
    message = a_message(of_epoch(2), observer=Observer())
    assert message.reference
    with pytest.raises(AssertionError, match="once its attempt has ended"):
        _ = message.report
