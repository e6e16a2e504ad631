"""What `OwedRunner` does with each kind of owed work, and what it leaves alone."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, TENANT, a_job, with_changes
from tests.unit.application.dispatch.test_owed import MINUTE, World
from tidemill.application.dispatch.owed import Kind, Owed, OwedResult, Work
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

FLOW = Work(kind=Kind.FLOW, tenant=TENANT, name="x")


class Untouched:
    """In place of a collaborator that this work does not concern."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


@pytest.mark.parametrize(
    "work",
    [
        FLOW,
        Work(kind=Kind.DELETE_PAYLOAD, tenant=TENANT, name="x", payload_at="a place"),
        Work(kind=Kind.ADVANCE, tenant=TENANT, name="x"),
    ],
    ids=lambda work: work.kind,
)
def test_a_work_is_done_once_and_concerns_nothing_else(work: Work) -> None:
    world = World()
    world.owe(work)
    # The job has the same name, so work that is not asked for would be found.
    world.store.jobs["x"] = a_job(id="x", state=State.QUEUED)

    assert [world.run_pending(), world.run_pending()] == [OwedResult(), OwedResult()]

    assert world.owed.stored == {}
    assert world.asked == ["x"] * (work.kind is Kind.FLOW)
    assert world.payloads.deleted == ["a place"] * (work.kind is Kind.DELETE_PAYLOAD)
    assert world.store.advanced == ["x"] * (work.kind is Kind.ADVANCE)
    assert world.store.resent == []


def test_a_failure_that_cannot_be_stored_is_reported_all_the_same() -> None:
    world = World()
    world.store.error = MalformedDocumentError("rubbish")
    world.owe(Work(kind=Kind.ADVANCE, tenant=TENANT, name="parcels"))
    world.clock.now += timedelta(minutes=5)

    def fail(_owed: Owed, **_: Any) -> None:
        raise StoreUnavailableError

    world.owed.put_off = fail  # type: ignore[assignment, method-assign]  # for once

    (overdue,) = world.run_pending().overdue
    assert overdue.error == "MalformedDocumentError: rubbish"
    assert world.run_pending().finished


@pytest.mark.parametrize(("lost_for", "resent"), [(MINUTE - MILLISECOND, False), (MINUTE, True)])
def test_a_run_is_lost_a_minute_after_the_end_of_its_lease(lost_for: timedelta, resent: bool) -> None:
    world = World()
    work = world.job(State.RUNNING)
    job = world.store.jobs[work.name] = replace(world.store.jobs[work.name], due=NOW)
    world.clock.now += lost_for
    world.owe(work)

    assert world.run_pending().resent == ((job,) if resent else ())

    # It is looked at again, and not at each call.
    (owed,) = world.owed.stored.values()
    assert (owed.next_try, owed.tries, owed.resent) == (world.clock.now + MINUTE, 1, resent)


@pytest.mark.parametrize(
    ("state", "group", "advanced"),
    [
        (State.SUCCEEDED, None, []),
        (State.DEAD, None, []),
        (State.QUEUED, "parcels", []),
        (State.RETRYING, "parcels", []),
        (State.WAITING, "parcels", ["parcels"]),
        (State.DEAD, "parcels", ["parcels"]),
    ],
)
def test_a_group_advances_for_a_job_of_it_that_has_ended_or_waits(
    state: State, group: str | None, advanced: list[str]
) -> None:
    world = World()
    world.owe(world.job(state, group=group))
    world.run_pending()
    assert world.store.advanced == advanced


@pytest.mark.parametrize(("left", "resent"), [(timedelta(0), False), (MILLISECOND, True)])
def test_the_message_of_a_job_that_is_about_to_be_deleted_is_not_sent_again(left: timedelta, resent: bool) -> None:
    world = World()
    work = world.job(State.DEAD)
    job: Job = with_changes(world.store.jobs[work.name], expires_at=NOW + left)
    world.store.jobs[work.name] = job
    world.owe(work)

    assert world.run_pending().resent == ((job,) if resent else ())
    assert list(world.owed.stored) == ([work] if resent else [])
