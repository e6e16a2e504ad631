"""`MessageRun` around its attempts: what it does with each, in which order, and what stops it."""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, with_changes
from tests.support.single_job import Clock, tools
from tidemill.application.attempt.attempt_context import AttemptHooks
from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.grouped_commit import GroupedCommit
from tidemill.domain.dispatch.job_message import Reference, reference_to
from tidemill.domain.errors import JobTimeoutError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import SETTLE_RESERVE_SECONDS, Lane
from tidemill.sqs import messages
from tidemill.worker import message_run
from tidemill.worker.message_run import MessageRun, WorkerSettings

JOB = a_job(id="first", group="orders")
NEXT = a_job(id="next", group="orders", state=State.QUEUED, due=NOW)
ENDED = Report(ending=Ending.SUCCEEDED, job=JOB, job_is_terminal=True)
ENOUGH = SECOND + timedelta(seconds=SETTLE_RESERVE_SECONDS)


class World:
    """The attempts of one message, and what each did. `reports` are those of their runs, or what these raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *reports: Report | Exception | None) -> None:
        world = self
        self.did: list[Any] = []
        self.reports = list(reports)
        self.told: list[dict[str, Any]] = []
        self.following: list[Job | Exception] = []
        self.warnings: list[Any] = []
        self.left = ENOUGH

        class FakeAttempt:
            """In place of `Attempt`."""

            report: Report | None = None
            deadline = NOW + SECOND

            def __init__(self, reference: Reference, **told: Any) -> None:
                self.reference = reference
                world.told.append(told)

            def is_stray(self) -> bool:
                return True

            def release_slot(self) -> None:
                world.did.append("release slot")

            def expire(self) -> None:
                world.did.append("expire")

            def unavailable(self, error: Exception) -> None:
                world.did.append(("unavailable", type(error), str(error)))

        def run_once(attempt: Any, *, remaining: timedelta) -> None:
            self.did.append((attempt.reference.job_id, remaining))
            found = self.reports.pop(0)
            if isinstance(found, Exception):
                raise found
            attempt.report = found

        monkeypatch.setattr(message_run, "Attempt", FakeAttempt)
        monkeypatch.setattr(message_run, "run_once", run_once)
        log = SimpleNamespace(warning=lambda text, *, extra: self.warnings.append((text, extra)))
        monkeypatch.setattr(message_run, "logger", lambda: log)

    def wait_until_alone(self, deadline: datetime) -> datetime:
        self.did.append("wait until alone")
        return deadline + SECOND

    def advance(self, tenant: str, group: str | None, *, now: datetime) -> Job | None:
        """The store."""
        self.did.append(("advance", tenant, group, now))
        following = self.following.pop(0) if self.following else None
        if isinstance(following, Exception):
            raise following
        return following

    def send(self, jobs: list[Job]) -> None:
        """The first messages."""
        self.did.append(("send", [job.id for job in jobs]))

    def get_remaining_time_in_millis(self) -> int:
        return self.left // MILLISECOND

    def message(self, **settings: Any) -> MessageRun:
        world: Any = self
        unused: Any = None
        return MessageRun(
            {"attributes": {"ApproximateReceiveCount": "3"}, "body": messages.encode(reference_to(JOB))},
            WorkerSettings(context=tools(world, unused, Clock()), lane=Lane.DEFAULT, job_timeout=SECOND, **settings),
            deadline=NOW + SECOND,
            hooks=AttemptHooks(wait_until_alone=self.wait_until_alone, worker="request/version"),
            participant=SimpleNamespace(leave_call=lambda: self.did.append("leave call")),
        )

    def run(self, **settings: Any) -> MessageRun:
        message = self.message(**settings)
        message.run(self)  # type: ignore[arg-type]  # the time alone is read
        return message


ADVANCE = ("advance", JOB.tenant, "orders", NOW)


def test_an_attempt_gets_what_the_message_says(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.message()
    (told,) = world.told
    assert (told["deadline"], told["receives"], told["hooks"].worker) == (NOW + SECOND, 3, "request/version")
    assert told["lane_timeout"] == SECOND


def test_a_job_that_waits_until_it_is_alone_is_not_awaited_by_the_calls_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    world.message()
    assert world.told[0]["hooks"].wait_until_alone(NOW) == NOW + SECOND
    assert world.did == ["leave call", "wait until alone"]


def test_after_its_run_the_message_goes_on_to_the_next_job_of_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ENDED, replace(ENDED, job=NEXT))
    world.following = [NEXT]

    message = world.run()

    first, following = ("first", ENOUGH), ("next", ENOUGH)
    assert world.did == [first, "leave call", ADVANCE, following, "leave call", ADVANCE, "leave call"]
    assert (message.finished, message.report, message.deadline) == (True, ENDED, None)
    assert message.stray == reference_to(NEXT)
    assert world.told[1]["deadline"] == NOW + SECOND
    assert "receives" not in world.told[1]


@pytest.mark.parametrize(
    "report",
    [
        None,
        replace(ENDED, job_is_terminal=False),
        Report(ending=Ending.REFUSED, job=JOB),
        replace(ENDED, job=None),
        replace(ENDED, job=with_changes(JOB, group=None)),
    ],
    ids=["no report", "lives on", "nothing written", "no job", "no group"],
)
def test_only_the_end_of_a_job_of_a_group_advances_the_group(
    report: Report | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, report)
    world.run()
    assert world.did == [("first", ENOUGH), "leave call", "leave call"]


@pytest.mark.parametrize("following", [replace(NEXT, due=None), replace(NEXT, due=NOW + MILLISECOND)])
def test_a_next_job_that_is_not_due_is_left_to_its_message(following: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ENDED)
    world.following = [following]
    world.run()
    assert world.did == [("first", ENOUGH), "leave call", ADVANCE, "leave call"]


def test_a_group_that_the_worker_cannot_advance_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ENDED)
    world.following = [OSError("no answer")]
    world.run()
    extra = {"job_id": "first", "group": "orders", "error": "no answer"}
    assert world.warnings == [("group not advanced by the worker", extra)]


AGAIN, FOLLOW_UP = a_job(id="again"), a_job(id="follow-up")


@pytest.mark.parametrize(
    ("report", "sent"),
    [
        (None, []),
        (replace(ENDED, job_is_terminal=False), [("send", [])]),
        (
            replace(ENDED, job_is_terminal=False, follow_ups=(FOLLOW_UP,), again=AGAIN),
            [("send", ["follow-up", "again"])],
        ),
    ],
    ids=["no report", "nothing to send", "both"],
)
def test_what_a_settle_lets_run_at_once_gets_its_message_at_once(
    report: Report | None, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, report)
    world.run(first_messages=world)
    assert world.did == [("first", ENOUGH), "leave call", *sent, "leave call"]


def test_without_first_messages_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, replace(ENDED, job_is_terminal=False, follow_ups=(FOLLOW_UP,)))
    world.run()
    assert world.did == [("first", ENOUGH), "leave call", "leave call"]


@pytest.mark.parametrize("ends", ["expire", "abandon"])
def test_a_message_whose_time_is_up_during_its_run_sends_and_advances_nothing(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(monkeypatch, replace(ENDED, follow_ups=(FOLLOW_UP,)))
    message = world.message(first_messages=world)
    run_once: Any = vars(message_run)["run_once"]

    def run_late(attempt: Any, *, remaining: timedelta) -> None:
        run_once(attempt, remaining=remaining)
        getattr(message, ends)()

    monkeypatch.setattr(message_run, "run_once", run_late)
    message.run(world)  # type: ignore[arg-type]  # the time alone is read

    late = ("unavailable", JobTimeoutError, "the attempt could not be settled in time")
    assert world.did == [("first", ENOUGH), "expire" if ends == "expire" else late, "leave call", "leave call"]


def test_a_message_whose_time_is_up_before_its_run_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ENDED)
    message = world.message()
    message.expire()
    message.run(world)  # type: ignore[arg-type]  # the time alone is read
    assert world.did == ["expire", "leave call"]


def test_an_error_of_a_handler_is_reported_and_does_not_leave_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, KeyError("no"))
    world.run()
    assert world.did == [("first", ENOUGH), ("unavailable", KeyError, "'no'"), "leave call", "leave call"]


def test_the_slot_of_the_present_attempt_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.message().release_slot()
    assert world.did == ["release slot"]


def test_a_worker_follows_groups_and_was_never_restored_unless_its_settings_say_so() -> None:
    unused: Any = None
    settings = WorkerSettings(context=unused, lane=Lane.BULK, job_timeout=SECOND)
    assert (settings.follows_groups, settings.epoch, settings.version) == (True, 0, "")


def test_each_batch_has_a_grouped_commit_of_its_own_if_a_type_has_one() -> None:
    unused: Any = None
    writes: Any = object()
    plain = WorkerSettings(context=tools(unused, unused, Clock()), lane=Lane.BULK, job_timeout=SECOND)
    grouped = replace(plain, grouped_writes=writes)

    assert plain.with_grouped_commit() is plain
    first, second = grouped.with_grouped_commit(), grouped.with_grouped_commit()
    assert isinstance(first.context.grouped, GroupedCommit)
    assert first.context.grouped is not second.context.grouped
    assert (grouped.context.grouped, replace(first, context=grouped.context)) == (None, grouped)
