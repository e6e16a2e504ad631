"""Owed work is done once the trouble is over, tried less and less often, and reported when it fails for too long."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from tests.support.builders import NOW, TENANT, a_job
from tests.support.in_memory_owed_work import InMemoryOwedWork
from tests.support.single_job import Clock, Inline
from tidemill.application.dispatch.owed import PATIENCE, Kind, OwedResult, OwedRunner, Work
from tidemill.application.ports import WHOLE, Part, Unreadable, ignore_unreadable
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.waiting.waiting import Line

MINUTE = timedelta(minutes=1)
GROUP = Work(kind=Kind.ADVANCE, tenant=TENANT, name="parcels")


@dataclass
class Store:
    """The jobs, and what was asked for."""

    jobs: dict[str, Job] = field(default_factory=dict)
    advance_to: Callable[[str], Job | None] = lambda _group: None
    advanced: list[str] = field(default_factory=list)
    resent: list[str] = field(default_factory=list)
    refuses: bool = False
    error: Exception | None = None

    def get(self, _tenant: str, job_id: str) -> Job | None:
        if self.error:
            raise self.error
        return self.jobs.get(job_id)

    def advance(self, _tenant: str, group: str, *, now: datetime) -> Job | None:
        self.advanced.append(group)
        if self.error:
            raise self.error
        return self.advance_to(group)

    def resend(self, job: Job, *, now: datetime) -> None:
        if self.refuses:
            raise WriteRefusedError(Write.RESEND, job)
        self.resent.append(job.id)

    def nudge(self, job: Job, *, now: datetime, limit: timedelta, last: bool = False) -> None:
        assert not last
        if job.due is None or job.due > now - limit:
            raise WriteRefusedError(Write.NUDGE, job)
        self.resent.append(job.id)

    def cancel(self, job: Job, **_audit: object) -> Job:
        raise AssertionError(f"{job.id} is not given up here")

    def wake(self, job: Job, *, now: datetime) -> None:
        raise AssertionError(f"a scheduled job has no message: {job}")

    def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
        raise AssertionError(f"a parked job has no message: {job}, {due}")

    def parked(
        self, line: Line, *, most: int, since: datetime | None = None, unreadable: Unreadable = ignore_unreadable
    ) -> list[Job]:
        raise AssertionError(f"owed work releases no line: {line}, {most}, {since}, {unreadable}")


@dataclass
class Payloads(Inline):
    """The locations that were deleted."""

    deleted: list[str | None] = field(default_factory=list)
    error: Exception | None = None

    def delete(self, _tenant: str, _job_id: str, location: str | None) -> None:
        if self.error:
            raise self.error
        self.deleted.append(location)


@dataclass
class World:
    """The collaborators of the runner of owed work."""

    store: Store = field(default_factory=Store)
    owed: InMemoryOwedWork = field(default_factory=InMemoryOwedWork)
    payloads: Payloads = field(default_factory=Payloads)
    clock: Clock = field(default_factory=Clock)
    #: The flows that were asked to look at their nodes.
    asked: list[str] = field(default_factory=list)

    def owe(self, work: Work) -> None:
        self.owed.owe(work, now=self.clock.now, error="busy")

    def job(self, state: State, group: str | None = None, flow: FlowPlace | None = None) -> Work:
        job = replace(a_job(group=group), state=state, flow=flow)
        self.store.jobs[job.id] = job
        return Work(kind=Kind.DISPATCH, tenant=TENANT, name=job.id)

    def run_pending(self, in_time: Callable[[], bool] = lambda: True, part: Part = WHOLE) -> OwedResult:
        runner = OwedRunner(
            owed=self.owed,
            store=self.store,
            payloads=self.payloads,
            clock=self.clock,
            ask=lambda _tenant, flow_id: self.asked.append(flow_id),
        )
        return runner.run_pending(in_time, part=part)


@pytest.fixture
def world() -> World:
    return World()


def test_an_owed_group_advances(world: World) -> None:
    following = a_job(group="parcels")
    world.store.advance_to = lambda _group: following
    world.owe(GROUP)

    assert world.run_pending() == OwedResult(advanced=(following,))
    assert world.owed.stored == {}


def test_an_owed_payload_is_deleted_once_its_store_responds(world: World) -> None:
    world.owe(Work(kind=Kind.DELETE_PAYLOAD, tenant=TENANT, name="a job", payload_at="file/a"))
    world.owe(Work(kind=Kind.DELETE_PAYLOAD, tenant=TENANT, name="a job", payload_at="item/b"))
    world.payloads.error = StoreUnavailableError()

    world.run_pending()
    assert len(world.owed.stored) == 2
    world.payloads.error = None
    world.clock.now += MINUTE
    assert world.run_pending() == OwedResult()

    assert (sorted(map(str, world.payloads.deleted)), world.owed.stored) == (["file/a", "item/b"], {})


def test_a_group_that_still_fails_is_tried_less_and_less_often(world: World) -> None:
    world.store.error = StoreUnavailableError()
    world.owe(GROUP)

    tried = []
    for minute in range(60):
        before = len(world.store.advanced)
        world.run_pending()
        tried += [minute] if len(world.store.advanced) > before else []
        world.clock.now += MINUTE

    assert tried == [0, 1, 3, 7, 15, 30, 45]


def test_work_is_reported_when_it_has_failed_for_longer_than_the_patience(world: World) -> None:
    world.store.error = MalformedDocumentError("rubbish")
    # The stream may be late: only the first failure counts.
    world.clock.now += timedelta(days=1)
    world.owe(GROUP)

    assert world.run_pending().overdue == ()
    # The alarm fires from then on.
    world.clock.now += timedelta(minutes=5)
    (overdue,) = world.run_pending().overdue
    assert (overdue.work, overdue.error) == (GROUP, "MalformedDocumentError: rubbish")


def test_a_failure_of_one_work_does_not_stop_the_others(world: World) -> None:
    def advance(group: str) -> Job:
        if group == "parcels":
            raise KeyError("a bug")
        return a_job(group=group)

    world.store.advance_to = advance
    world.owe(GROUP)
    world.owe(replace(GROUP, name="letters"))

    assert [job.group.key for job in world.run_pending().advanced] == ["letters"]
    assert list(world.owed.stored) == [GROUP]


@pytest.mark.parametrize("state", [State.QUEUED, State.RETRYING, State.DEAD])
def test_the_message_of_an_owed_job_is_sent_again_once(world: World, state: State) -> None:
    work = world.job(state)
    world.owe(work)

    assert [job.id for job in world.run_pending().resent] == [work.name]
    world.clock.now += MINUTE
    assert world.run_pending() == OwedResult()
    assert world.owed.stored == {}
    assert world.store.resent == [work.name]


def test_a_message_that_publish_cannot_send_again_either_is_tried_again(world: World) -> None:
    work = world.job(State.QUEUED)
    world.owe(work)
    world.run_pending()
    world.owe(work)

    world.clock.now += PATIENCE
    assert [owed.work for owed in world.run_pending().overdue] == [work]
    assert world.store.resent == [work.name] * 2


@pytest.mark.parametrize("state", [State.SCHEDULED, State.SUCCEEDED, State.WAITING])
def test_a_job_that_needs_no_message_is_left_alone(world: World, state: State) -> None:
    world.owe(world.job(state))

    assert world.run_pending() == OwedResult()
    assert (world.owed.stored, world.store.resent) == ({}, [])


def test_the_message_of_a_running_job_stays_owed_until_its_run_has_ended_or_is_lost(world: World) -> None:
    """A worker may have claimed it as the next job of its group, without a message."""
    work = world.job(State.RUNNING)
    job = world.store.jobs[work.name] = replace(world.store.jobs[work.name], due=NOW + 10 * MINUTE)
    world.owe(work)

    for _ in range(10):
        assert world.run_pending() == OwedResult()
        world.clock.now += MINUTE
    assert (list(world.owed.stored), world.store.resent) == ([work], [])

    world.clock.now += 20 * MINUTE
    assert world.run_pending().resent == (job,)
    world.clock.now += 20 * MINUTE
    assert world.run_pending() == OwedResult()
    assert (world.owed.stored, world.store.resent) == ({}, [job.id])


def test_a_run_that_lasts_is_not_reported(world: World) -> None:
    """Its retry has a message of its own, and an alarm would find nothing wrong."""
    work = world.job(State.RUNNING)
    job = world.store.jobs[work.name] = replace(world.store.jobs[work.name], due=NOW + 10 * MINUTE)
    world.owe(work)
    world.run_pending()
    world.store.jobs[work.name] = replace(job, state=State.RETRYING, generation=2)
    world.clock.now += 2 * PATIENCE

    assert world.run_pending() == OwedResult(resent=(world.store.jobs[work.name],))


def test_a_job_that_is_gone_is_left_alone(world: World) -> None:
    world.owe(Work(kind=Kind.DISPATCH, tenant=TENANT, name="gone"))

    assert world.run_pending() == OwedResult()
    assert world.owed.stored == {}


def test_a_job_that_moves_on_at_this_moment_needs_no_message(world: World) -> None:
    world.store.refuses = True
    world.owe(world.job(State.QUEUED))

    assert world.run_pending() == OwedResult()
    assert world.owed.stored == {}


@pytest.mark.parametrize("state", [State.WAITING, State.SUCCEEDED, State.DEAD, State.CANCELLED])
def test_the_group_of_an_owed_job_advances_if_its_record_would_have_done_so(world: World, state: State) -> None:
    world.owe(world.job(state, group="parcels"))

    world.run_pending()

    assert world.store.advanced == ["parcels"]


@pytest.mark.parametrize(("state", "asked"), [(State.SUCCEEDED, ["f"]), (State.CANCELLED, ["f"]), (State.QUEUED, [])])
def test_the_flow_of_an_owed_node_looks_if_the_node_has_ended(world: World, state: State, asked: list[str]) -> None:
    world.owe(world.job(state, flow=FlowPlace(id="f", node="a")))

    world.run_pending()

    assert world.asked == asked


def test_work_is_left_to_the_next_call_when_no_time_is_left(world: World) -> None:
    for number in range(20):
        world.owe(replace(GROUP, name=str(number)))

    result = world.run_pending(in_time=lambda: False)

    assert not result.finished
    assert 0 < len(world.owed.stored) < 20


def test_parallel_calls_take_each_work_once_and_a_missing_call_delays_it_by_its_turns(world: World) -> None:
    for number in range(20):
        world.owe(replace(GROUP, name=str(number)))

    world.run_pending(part=Part(0, 2))
    assert 0 < len(world.owed.stored) < 20
    # The other call is missing. Its part is the turn of this one a minute later.
    world.clock.now += MINUTE
    world.run_pending(part=Part(0, 2))

    assert world.owed.stored == {}
    assert sorted(world.store.advanced) == sorted(str(number) for number in range(20))


def test_an_index_that_cannot_be_read_leaves_the_work(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def pending(**_request: object) -> None:
        raise StoreUnavailableError

    monkeypatch.setattr(world.owed, "pending", pending)

    assert world.run_pending() == OwedResult(finished=False)
