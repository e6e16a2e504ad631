"""The publish use case: it sends owed messages, advances groups and returns the records to retry."""

import dataclasses
from collections.abc import Callable
from datetime import datetime

import pytest

from tests.support.builders import A_WAIT, NOW, SECOND, TENANT, a_job, reference_to, with_changes
from tests.support.configurations import configured, paused
from tests.support.publish_world import World
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.dispatch.publish import FailedStep, Published, UnreadableChange
from tidemill.application.dispatch.reactions import PublishStep
from tidemill.application.ports import Refusal
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import (
    MalformedDocumentError,
    NewerSchemaError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line, Wait

JOBS = [a_job() for _ in range(3)]
RUNNING = replace(JOBS[0], state=State.RUNNING)
CHANGES = [
    Change("1", None, JOBS[0]),
    Change("2", JOBS[0], RUNNING),
    Change("3", None, JOBS[1]),
    Change("4", None, JOBS[2]),
]


@pytest.fixture
def world() -> World:
    return World()


def _bodies(published: Published) -> list[object]:
    return [sent.body for sent in published.sent]


def _end(sequence: str, group: str | None = "parcels", state: State = State.SUCCEEDED) -> Change:
    running = a_job(group=group, state=State.RUNNING)
    return Change(sequence, running, replace(running, state=state, due=None, finished_at=NOW))


def test_owed_messages_are_sent_in_one_call(world: World) -> None:
    published = world.publish(*CHANGES)

    assert _bodies(published) == [reference_to(job) for job in JOBS]
    assert published.failed == []
    assert [len(call) for call in world.lanes.calls] == [3]


def test_a_message_that_was_refused_is_owed_and_the_sent_ones_are_not_sent_again(world: World) -> None:
    world.lanes.refuses = [Refusal(1)]

    published = world.publish(*CHANGES)

    assert published.failed == []
    assert list(world.owed.stored) == [Work(kind=Kind.DISPATCH, tenant=TENANT, name=JOBS[1].id)]
    assert _bodies(published) == [reference_to(JOBS[0]), reference_to(JOBS[2])]


def test_the_stream_keeps_the_records_while_sqs_takes_no_message(world: World) -> None:
    world.lanes.refuses = [Refusal(0), Refusal(1), Refusal(2)]

    published = world.publish(*CHANGES)

    assert (published.failed, published.sent) == (["1", "3", "4"], [])
    assert world.owed.stored == {}


def test_a_message_that_sqs_blames_is_owed_even_if_it_took_no_other(world: World) -> None:
    """The stream would send it again and again, and block its shard."""
    world.lanes.refuses = [Refusal(0), Refusal(1, sender_fault=True), Refusal(2)]

    published = world.publish(*CHANGES)

    assert (published.failed, published.sent) == (["1", "4"], [])
    assert list(world.owed.stored) == [Work(kind=Kind.DISPATCH, tenant=TENANT, name=JOBS[1].id)]


def test_changes_that_owe_nothing_make_no_calls(world: World) -> None:
    assert world.publish(CHANGES[1], _end("5", group=None)) == Published(
        sent=[], advanced=[], parked=[], failed=[], failed_steps=[]
    )
    assert (world.lanes.calls, world.groups.calls, world.payloads.deleted) == ([], [], [])


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD, State.CANCELLED])
def test_a_group_advances_when_one_of_its_jobs_ends(world: World, state: State) -> None:
    following = a_job(group="parcels")
    world.groups.advance_to = lambda _group: following

    published = world.publish(_end("1", state=state))

    assert world.groups.calls == [(TENANT, "parcels")]
    assert (published.advanced, published.parked) == ([following], [])


def test_a_group_advances_when_the_dead_job_at_its_head_is_discarded(world: World) -> None:
    dead = a_job(group="parcels", state=State.DEAD, due=None)

    world.publish(Change("1", dead, replace(dead, state=State.CANCELLED)))

    assert world.groups.calls == [(TENANT, "parcels")]


def test_a_group_advances_when_a_job_begins_to_wait(world: World) -> None:
    """Its head may have ended while the job entered."""
    waiting = a_job(group="parcels", state=State.WAITING, due=None)

    world.publish(Change("1", None, waiting))

    assert world.groups.calls == [(TENANT, "parcels")]


@pytest.mark.parametrize(
    ("state", "blocks", "advanced"),
    [(State.DEAD, True, [(TENANT, "parcels")]), (State.DEAD, False, []), (State.CANCELLED, True, [])],
    ids=["blocking", "not blocking", "discarded before"],
)
def test_a_group_advances_when_the_dead_job_that_blocks_it_is_deleted(
    world: World, state: State, blocks: bool, advanced: list[tuple[str, str]]
) -> None:
    """The operator's process may have ended before it could. The group of any other job has gone on at its end."""
    ended = a_job(group="parcels", state=state, blocks=blocks, due=None)

    world.publish(Change("1", ended, None))

    assert world.groups.calls == advanced


def test_a_change_of_an_ended_job_does_not_advance_its_group(world: World) -> None:
    dead = a_job(group="parcels", state=State.DEAD, due=None)

    world.publish(Change("1", dead, with_changes(dead, nudges=1)))

    assert world.groups.calls == []


def test_a_group_is_advanced_once_for_all_ends_in_a_batch(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError())

    published = world.publish(_end("1"), _end("2", group="letters"), _end("3"))

    assert sorted(world.groups.calls) == [(TENANT, "letters"), (TENANT, "parcels")]
    assert sorted(step.sequence for step in published.failed_steps) == ["1", "2"]


@pytest.mark.parametrize(
    "after",
    [None, a_job(payload=None, payload_at="another place"), a_job()],
    ids=["removed", "replaced", "replaced by a small one"],
)
def test_the_payload_of_a_deleted_job_is_deleted(world: World, after: Job | None) -> None:
    gone = a_job(state=State.SUCCEEDED, due=None, payload=None, payload_at="a place")

    world.publish(Change("1", gone, after))

    assert world.payloads.deleted == [(gone.tenant, gone.id, gone.payload.location)]


@pytest.mark.parametrize("state", [State.QUEUED, State.CANCELLED])
def test_the_payload_of_a_live_or_kept_job_stays(world: World, state: State) -> None:
    dead = a_job(state=State.DEAD, due=None, payload=None, payload_at="a place")

    world.publish(Change("1", dead, replace(dead, state=state)))

    assert world.payloads.deleted == []


def test_a_record_with_a_rejected_message_and_a_failed_advance_is_returned_once(world: World) -> None:
    world.lanes.refuses = [Refusal(0)]
    world.groups.advance_to = _raiser(StoreUnavailableError())

    world.owed.error = StoreUnavailableError()

    assert world.publish(_end("1", state=State.DEAD)).failed == ["1"]


def test_a_record_fails_if_its_work_cannot_be_stored_either(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError("out"))
    world.owed.error = StoreUnavailableError("out too")

    published = world.publish(_end("1"))

    assert published.failed == ["1"]
    (step,) = published.failed_steps
    assert (step.handed_over, "out too" in step.error) == (False, True)


def test_a_payload_that_cannot_be_deleted_is_owed_and_blocks_no_records(world: World) -> None:
    def busy(_tenant: str, _job_id: str, _location: str | None) -> None:
        raise StoreUnavailableError

    world.payloads.delete = busy  # type: ignore[assignment, method-assign]  # for once
    gone = a_job(state=State.SUCCEEDED, due=None, payload=None, payload_at="a place", finished_at=world.clock.now)

    published = world.publish(Change("1", gone, None))

    assert (published.failed, [step.step for step in published.failed_steps]) == ([], [PublishStep.DELETE])
    work = Work(kind=Kind.DELETE_PAYLOAD, tenant=TENANT, name=gone.id, payload_at="a place")
    assert list(world.owed.stored) == [work]
    assert published.failed_steps[0].work == work


FAILURES = [
    TransactionConflictError("others were faster"),
    NewerSchemaError("document", 9, 1),
    MalformedDocumentError("not a job document"),
    KeyError("a bug"),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_failed_advance_is_owed_and_does_not_block_the_stream(world: World, error: Exception) -> None:
    world.groups.advance_to = _raiser(error)

    published = world.publish(_end("1"))

    assert published.failed == []
    (owed,) = world.owed.stored.values()
    assert (owed.work, owed.since) == (Work(kind=Kind.ADVANCE, tenant=TENANT, name="parcels"), world.clock.now)
    assert owed.error == error_text(error)
    assert published.failed_steps == [
        FailedStep("1", PublishStep.ADVANCE, owed.work, error_text(error), handed_over=True)
    ]


def test_the_payload_of_a_job_that_was_deleted_and_cannot_be_read_is_owed_its_deletion(world: World) -> None:
    removed = UnreadableChange("2", TENANT, "a job", NewerSchemaError("document", 9, 1), "file/1")

    world.publish(unreadable=[removed])

    assert list(world.owed.stored) == [
        Work(kind=Kind.DELETE_PAYLOAD, tenant=TENANT, name="a job", payload_at="file/1"),
    ]


def test_an_unreadable_record_is_owed_and_does_not_block_the_stream(world: World) -> None:
    unreadable = UnreadableChange("2", TENANT, "a job", NewerSchemaError("document", 9, 1))

    published = world.publish(*CHANGES, unreadable=[unreadable])

    assert (published.failed, len(published.sent)) == ([], 3)
    assert list(world.owed.stored) == [Work(kind=Kind.DISPATCH, tenant=TENANT, name="a job")]
    assert [step.step for step in published.failed_steps] == [PublishStep.READ]


def test_a_failing_group_does_not_fail_others_of_its_batch(world: World) -> None:
    def advance(group: str) -> Job:
        if group == "bad":
            raise MalformedDocumentError("not a job document")
        return a_job(group=group)

    world.groups.advance_to = advance

    published = world.publish(_end("1", group="bad"), Change("2", None, JOBS[0]), _end("3", group="good"))

    assert [job.group.key for job in published.advanced] == ["good"]
    assert _bodies(published) == [reference_to(JOBS[0])]
    assert [work.name for work in world.owed.stored] == ["bad"]


def _raiser(error: Exception) -> Callable[[str], Job | None]:
    def advance(_group: str) -> Job | None:
        raise error

    return advance


PAUSE = configured(paused("type=test.job"))
LINE = Line.for_pause("type=test.job")


def test_a_paused_job_is_parked_and_no_message_is_sent(world: World) -> None:
    world.configuration = PAUSE
    other, later = a_job(type="test.other"), a_job(due=NOW + 9 * SECOND, state=State.RETRYING, attempt=1)

    published = world.publish(Change("1", None, JOBS[0]), Change("2", None, other), Change("3", None, later))

    assert _bodies(published) == [reference_to(other)]
    assert world.groups.parks == [
        (JOBS[0], Wait(cause=Cause.PAUSE, key=LINE.key, since=NOW)),
        (later, Wait(cause=Cause.PAUSE, key=LINE.key, since=NOW, not_before=NOW + 9 * SECOND)),
    ]
    assert [job.id for job in published.parked] == [JOBS[0].id, later.id]
    assert (published.advanced, published.failed, published.failed_steps) == ([], [], [])


def test_with_a_stale_configuration_the_worker_decides_about_a_pause(world: World) -> None:
    world.configuration = dataclasses.replace(PAUSE, stale=True)

    assert _bodies(world.publish(Change("1", None, JOBS[0]))) == [reference_to(JOBS[0])]
    assert world.groups.parks == []


def test_the_dead_letter_message_of_a_paused_job_is_sent(world: World) -> None:
    world.configuration = PAUSE
    dead = replace(JOBS[0], state=State.DEAD, due=None, finished_at=NOW)

    assert len(world.publish(Change("1", RUNNING, dead)).sent) == 1
    assert world.groups.parks == []


def test_a_job_with_a_turn_at_its_limit_is_sent_since_only_a_worker_passes_the_turn_on(world: World) -> None:
    world.configuration = PAUSE

    assert len(world.publish(Change("1", None, replace(JOBS[0], wait=A_WAIT))).sent) == 1
    assert world.groups.parks == []


def test_a_paused_job_that_has_moved_on_is_left_alone(world: World) -> None:
    world.configuration = PAUSE
    world.groups.park_error = WriteRefusedError("park", RUNNING)

    published = world.publish(Change("1", None, JOBS[0]))

    assert (published.sent, published.parked, published.failed, published.failed_steps) == ([], [], [], [])


def test_a_paused_job_whose_refusal_shows_no_change_is_left_to_its_next_record(world: World) -> None:
    world.configuration = PAUSE
    world.groups.park_error = WriteRefusedError("park", JOBS[0])

    published = world.publish(Change("1", None, JOBS[0]))

    assert (published.parked, published.failed_steps) == ([], [])


def test_a_paused_job_that_a_submission_has_moved_is_parked_with_its_new_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.configuration = PAUSE
    moved = replace(JOBS[0], due=NOW + 40 * SECOND)
    park = world.groups.park

    def refuse_once(job: Job, wait: Wait, *, now: datetime) -> Job:
        if job.due != moved.due:
            raise WriteRefusedError("park", moved)
        return park(job, wait, now=now)

    monkeypatch.setattr(world.groups, "park", refuse_once)

    published = world.publish(Change("1", None, JOBS[0]))

    assert [wait.not_before for _, wait in world.groups.parks] == [moved.due]
    assert [job.id for job in published.parked] == [JOBS[0].id]


def test_a_paused_job_that_cannot_be_parked_is_owed(world: World) -> None:
    world.configuration = PAUSE
    world.groups.park_error = StoreUnavailableError("busy")

    published = world.publish(Change("1", None, JOBS[0]))

    assert (published.sent, published.failed) == ([], [])
    assert list(world.owed.stored) == [Work(kind=Kind.DISPATCH, tenant=TENANT, name=JOBS[0].id)]
    assert [step.step for step in published.failed_steps] == [PublishStep.PARK]
