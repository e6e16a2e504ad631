"""The publish use case: it sends owed messages, advances groups and returns the records to retry."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest

from tests.support.builders import MILLISECOND, NOW, TENANT, a_job, reference_to
from tests.support.single_job import Clock, Inline
from tidemill.application.publish import PATIENCE, Change, Published, Publisher
from tidemill.domain.dispatch import Dispatch
from tidemill.domain.errors import (
    MalformedDocumentError,
    NewerSchemaError,
    StoreUnavailableError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.domain.states import State


@dataclass
class Lanes:
    """Accepts all messages except those at these indices."""

    refuses: Sequence[int] = ()
    calls: list[Sequence[Dispatch]] = field(default_factory=list)

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[int]:
        self.calls.append(dispatches)
        return self.refuses


@dataclass
class Groups:
    """The one part of a store that publish uses."""

    calls: list[tuple[str, str]] = field(default_factory=list)
    advance_to: Callable[[str], Job | None] = lambda _group: None

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        self.calls.append((tenant, group))
        return self.advance_to(group)


class Payloads(Inline):
    def __init__(self) -> None:
        self.deleted: list[Job] = []

    def delete(self, job: Job) -> None:
        self.deleted.append(job)


JOBS = [a_job() for _ in range(3)]
RUNNING = replace(JOBS[0], state=State.RUNNING)
CHANGES = [
    Change("1", None, JOBS[0], NOW),
    Change("2", JOBS[0], RUNNING, NOW),
    Change("3", None, JOBS[1], NOW),
    Change("4", None, JOBS[2], NOW),
]


@dataclass
class World:
    """The collaborators of publish."""

    lanes: Lanes = field(default_factory=Lanes)
    groups: Groups = field(default_factory=Groups)
    payloads: Payloads = field(default_factory=Payloads)
    clock: Clock = field(default_factory=Clock)

    def publish(self, *changes: Change) -> Published:
        publisher = Publisher(store=self.groups, payloads=self.payloads, lanes=self.lanes, clock=self.clock)
        return publisher.publish(changes)


@pytest.fixture
def world() -> World:
    return World()


def _bodies(published: Published) -> list[object]:
    return [sent.body for sent in published.sent]


def _end(sequence: str, group: str | None = "parcels", state: State = State.SUCCEEDED) -> Change:
    running = a_job(group=group, state=State.RUNNING)
    return Change(sequence, running, replace(running, state=state, due=None, finished_at=NOW), NOW)


def test_owed_messages_are_sent_in_one_call(world: World) -> None:
    published = world.publish(*CHANGES)

    assert _bodies(published) == [reference_to(job) for job in JOBS]
    assert published.failed == []
    assert [len(call) for call in world.lanes.calls] == [3]


def test_a_change_whose_message_was_rejected_is_returned_by_its_sequence(world: World) -> None:
    world.lanes.refuses = [1]

    published = world.publish(*CHANGES)

    assert published.failed == ["3"]
    assert _bodies(published) == [reference_to(JOBS[0]), reference_to(JOBS[2])]


def test_changes_that_owe_nothing_make_no_calls(world: World) -> None:
    assert world.publish(CHANGES[1], _end("5", group=None)) == Published(
        sent=[], advanced=[], failed=[], failed_steps=[]
    )
    assert (world.lanes.calls, world.groups.calls, world.payloads.deleted) == ([], [], [])


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD, State.CANCELLED])
def test_a_group_advances_when_one_of_its_jobs_ends(world: World, state: State) -> None:
    following = a_job(group="parcels")
    world.groups.advance_to = lambda _group: following

    published = world.publish(_end("1", state=state))

    assert world.groups.calls == [(TENANT, "parcels")]
    assert published.advanced == [following]


def test_a_group_advances_when_the_dead_job_at_its_head_is_discarded(world: World) -> None:
    dead = a_job(group="parcels", state=State.DEAD, due=None)

    world.publish(Change("1", dead, replace(dead, state=State.CANCELLED), NOW))

    assert world.groups.calls == [(TENANT, "parcels")]


def test_a_change_of_an_ended_job_does_not_advance_its_group(world: World) -> None:
    dead = a_job(group="parcels", state=State.DEAD, due=None)

    world.publish(Change("1", dead, replace(dead, nudges=1), NOW))

    assert world.groups.calls == []


def test_a_group_is_advanced_once_for_all_ends_in_a_batch(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError())

    published = world.publish(_end("1"), _end("2", group="letters"), _end("3"))

    assert sorted(world.groups.calls) == [(TENANT, "letters"), (TENANT, "parcels")]
    assert sorted(published.failed) == ["2", "3"]


@pytest.mark.parametrize(
    "after",
    [None, a_job(payload=None, payload_at="another place"), a_job()],
    ids=["removed", "replaced", "replaced by a small one"],
)
def test_the_payload_of_a_deleted_job_is_deleted(world: World, after: Job | None) -> None:
    gone = a_job(state=State.SUCCEEDED, due=None, payload=None, payload_at="a place")

    world.publish(Change("1", gone, after, NOW))

    assert world.payloads.deleted == [gone]


@pytest.mark.parametrize("state", [State.QUEUED, State.CANCELLED])
def test_the_payload_of_a_live_or_kept_job_stays(world: World, state: State) -> None:
    dead = a_job(state=State.DEAD, due=None, payload=None, payload_at="a place")

    world.publish(Change("1", dead, replace(dead, state=state), NOW))

    assert world.payloads.deleted == []


def test_a_record_with_a_rejected_message_and_a_failed_advance_is_returned_once(world: World) -> None:
    world.lanes.refuses = [0]
    world.groups.advance_to = _raiser(StoreUnavailableError())

    assert world.publish(_end("1", state=State.DEAD)).failed == ["1"]


def test_a_change_is_retried_while_the_store_does_not_respond(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError())

    published = world.publish(_end("1"))

    assert published.failed == ["1"]
    assert [step.given_up for step in published.failed_steps] == [False]


def test_one_hot_group_blocks_others_only_for_minutes(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError())
    world.clock.now += PATIENCE

    published = world.publish(_end("1"))

    assert published.failed == []
    assert [step.given_up for step in published.failed_steps] == [True]


def test_a_payload_that_cannot_be_deleted_blocks_no_records(world: World) -> None:
    def busy(_job: Job) -> None:
        raise StoreUnavailableError

    world.payloads.delete = busy  # type: ignore[assignment, method-assign]  # for once
    gone = a_job(state=State.SUCCEEDED, due=None, payload=None, payload_at="a place", finished_at=world.clock.now)

    published = world.publish(Change("1", gone, None, NOW))

    assert (published.failed, [step.given_up for step in published.failed_steps]) == ([], [True])


FAILURES = [
    TransactionConflictError("others were faster"),
    NewerSchemaError("document", 9, 1),
    MalformedDocumentError("not a job document"),
    KeyError("a bug"),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
def test_a_failed_advance_is_reported_and_blocks_the_stream_for_minutes_at_most(world: World, error: Exception) -> None:
    world.groups.advance_to = _raiser(error)
    end = _end("1")
    assert end.after

    world.clock.now += PATIENCE - MILLISECOND
    early = world.publish(end)
    world.clock.now += MILLISECOND
    late = world.publish(end)

    assert (early.failed, late.failed) == (["1"], [])
    assert [(step.job, step.error) for step in (*early.failed_steps, *late.failed_steps)] == [(end.after, error)] * 2


def test_a_failing_group_does_not_fail_others_of_its_batch(world: World) -> None:
    def advance(group: str) -> Job:
        if group == "bad":
            raise MalformedDocumentError("not a job document")
        return a_job(group=group)

    world.groups.advance_to = advance

    published = world.publish(_end("1", group="bad"), Change("2", None, JOBS[0], NOW), _end("3", group="good"))

    assert [job.group for job in published.advanced] == ["good"]
    assert _bodies(published) == [reference_to(JOBS[0])]
    assert published.failed == ["1"]


def _raiser(error: Exception) -> Callable[[str], Job | None]:
    def advance(_group: str) -> Job | None:
        raise error

    return advance
