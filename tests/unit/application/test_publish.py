"""The publish use case: what is owed is sent, groups go on, and what must come again is named."""

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
    """Takes all but the messages at these indices."""

    refuses: Sequence[int] = ()
    calls: list[Sequence[Dispatch]] = field(default_factory=list)

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[int]:
        self.calls.append(dispatches)
        return self.refuses


@dataclass
class Groups:
    """The one part of a store that publish asks for anything."""

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
    """What publish works on."""

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


def test_the_messages_that_are_owed_are_sent_at_once(world: World) -> None:
    published = world.publish(*CHANGES)

    assert _bodies(published) == [reference_to(job) for job in JOBS]
    assert published.failed == []
    assert [len(call) for call in world.lanes.calls] == [3]


def test_a_change_whose_message_was_not_taken_is_named_by_its_sequence(world: World) -> None:
    world.lanes.refuses = [1]

    published = world.publish(*CHANGES)

    assert published.failed == ["3"]
    assert _bodies(published) == [reference_to(JOBS[0]), reference_to(JOBS[2])]


def test_changes_that_owe_nothing_call_nobody(world: World) -> None:
    assert world.publish(CHANGES[1], _end("5", group=None)) == Published(sent=[], advanced=[], failed=[], troubles=[])
    assert (world.lanes.calls, world.groups.calls, world.payloads.deleted) == ([], [], [])


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.DEAD, State.CANCELLED])
def test_a_group_goes_on_when_one_of_its_jobs_has_ended(world: World, state: State) -> None:
    following = a_job(group="parcels")
    world.groups.advance_to = lambda _group: following

    published = world.publish(_end("1", state=state))

    assert world.groups.calls == [(TENANT, "parcels")]
    assert published.advanced == [following]


def test_a_group_goes_on_when_its_dead_head_is_discarded(world: World) -> None:
    dead = a_job(group="parcels", state=State.DEAD, due=None)

    world.publish(Change("1", dead, replace(dead, state=State.CANCELLED), NOW))

    assert world.groups.calls == [(TENANT, "parcels")]


def test_a_change_of_what_had_ended_before_is_none_of_its_groups(world: World) -> None:
    dead = a_job(group="parcels", state=State.DEAD, due=None)

    world.publish(Change("1", dead, replace(dead, nudges=1), NOW))

    assert world.groups.calls == []


def test_a_group_is_asked_once_for_all_its_ends_in_a_batch(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError())

    published = world.publish(_end("1"), _end("2", group="letters"), _end("3"))

    assert sorted(world.groups.calls) == [(TENANT, "letters"), (TENANT, "parcels")]
    assert sorted(published.failed) == ["2", "3"]


@pytest.mark.parametrize(
    "after",
    [None, a_job(payload=None, payload_at="another place"), a_job()],
    ids=["removed", "replaced", "replaced by a small one"],
)
def test_the_payload_of_a_job_that_is_gone_is_deleted(world: World, after: Job | None) -> None:
    gone = a_job(state=State.SUCCEEDED, due=None, payload=None, payload_at="a place")

    world.publish(Change("1", gone, after, NOW))

    assert world.payloads.deleted == [gone]


@pytest.mark.parametrize("state", [State.QUEUED, State.CANCELLED])
def test_the_payload_of_a_job_that_lives_on_or_is_kept_stays(world: World, state: State) -> None:
    dead = a_job(state=State.DEAD, due=None, payload=None, payload_at="a place")

    world.publish(Change("1", dead, replace(dead, state=state), NOW))

    assert world.payloads.deleted == []


def test_a_message_that_was_not_taken_and_a_group_that_did_not_go_on_are_named_once(world: World) -> None:
    world.lanes.refuses = [0]
    world.groups.advance_to = _raiser(StoreUnavailableError())

    assert world.publish(_end("1", state=State.DEAD)).failed == ["1"]


def test_while_the_store_does_not_answer_a_change_comes_again(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError())

    published = world.publish(_end("1"))

    assert published.failed == ["1"]
    assert [trouble.given_up for trouble in published.troubles] == [False]


def test_one_hot_group_holds_up_no_others_for_long(world: World) -> None:
    world.groups.advance_to = _raiser(StoreUnavailableError())
    world.clock.now += PATIENCE

    published = world.publish(_end("1"))

    assert published.failed == []
    assert [trouble.given_up for trouble in published.troubles] == [True]


def test_a_payload_that_cannot_be_tidied_away_holds_up_nobody(world: World) -> None:
    def busy(_job: Job) -> None:
        raise StoreUnavailableError

    world.payloads.delete = busy  # type: ignore[assignment, method-assign]  # for once
    gone = a_job(state=State.SUCCEEDED, due=None, payload=None, payload_at="a place", finished_at=world.clock.now)

    published = world.publish(Change("1", gone, None, NOW))

    assert (published.failed, [trouble.given_up for trouble in published.troubles]) == ([], [True])


TROUBLES = [
    TransactionConflictError("others were faster"),
    NewerSchemaError("document", 9, 1),
    MalformedDocumentError("not a job document"),
    KeyError("a bug"),
]


@pytest.mark.parametrize("error", TROUBLES, ids=lambda error: type(error).__name__)
def test_a_groups_own_trouble_is_told_and_holds_up_the_stream_for_minutes_at_most(
    world: World, error: Exception
) -> None:
    world.groups.advance_to = _raiser(error)
    end = _end("1")
    assert end.after

    world.clock.now += PATIENCE - MILLISECOND
    early = world.publish(end)
    world.clock.now += MILLISECOND
    late = world.publish(end)

    assert (early.failed, late.failed) == (["1"], [])
    assert [(trouble.job, trouble.error) for trouble in (*early.troubles, *late.troubles)] == [(end.after, error)] * 2


def test_a_bad_group_costs_the_others_of_its_batch_nothing(world: World) -> None:
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
