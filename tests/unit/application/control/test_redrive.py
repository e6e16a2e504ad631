"""The redrive use case: the plan, and one redrive by one operator or by two."""

from datetime import datetime, timedelta
from itertools import count

import pytest

from tests.support.builders import (
    NOW,
    RETENTION,
    SECOND,
    TENANT,
    a_job,
    brought_to,
    stored,
)
from tests.support.in_memory_dlq import Letters
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.control.redrive import Redriver
from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import JobStore
from tidemill.domain.job import Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State

HOUR = timedelta(hours=1)


@pytest.fixture
def redriver(store: JobStore, clock: Clock) -> Redriver:
    tokens = count(1)
    return Redriver(store=store, clock=clock, new_token=lambda: f"redrive-{next(tokens)}")


def _bodies(box: Letters) -> list[object]:
    return [dead_letter.body for dead_letter in box.waiting]


def test_the_plan_names_the_dead_jobs_of_a_type_or_an_id_and_changes_nothing(
    redriver: Redriver, store: JobStore
) -> None:
    one = brought_to(store, State.DEAD)
    other = brought_to(store, State.DEAD, type="test.other")
    brought_to(store, State.SUCCEEDED)

    def planned(selection: JobFilter) -> set[str]:
        return {job.id for job in redriver.dead_jobs(selection)}

    assert planned(JobFilter()) == {one.id, other.id}
    assert planned(JobFilter(types=["test.other"])) == {other.id}
    assert planned(JobFilter(ids=[one.id, "no such job"])) == {one.id}
    assert planned(JobFilter(types=["test.other"], ids=[one.id])) == set()
    assert planned(JobFilter(tenant=one.tenant)) == {one.id, other.id}
    assert planned(JobFilter(tenant=one.tenant, types=["test.other"], ids=[one.id, other.id])) == {other.id}
    assert stored(store, one) == one


def test_the_plan_of_some_ids_begins_with_the_earliest_death(redriver: Redriver, table: Table) -> None:
    """The one whose death has no time counts from its submission, and the id decides between two of the same time."""
    deaths = {"b": NOW, "d": NOW + SECOND, "a": NOW + 2 * SECOND, "c": NOW}
    for name, at in deaths.items():
        table.put(a_job(id=name, state=State.DEAD, due=None, created_at=NOW, finished_at=at))
    old = a_job(id="old", state=State.DEAD, due=None, created_at=NOW - SECOND)
    table.put(old)
    table.put(replace(old, id="queued", state=State.QUEUED, due=NOW))
    ids = [*deaths, "queued", "old"]

    assert [job.id for job in redriver.dead_jobs(JobFilter(tenant=old.tenant, ids=ids))] == ["old", "b", "c", "d", "a"]


def test_the_plan_omits_expired_jobs(redriver: Redriver, store: JobStore, clock: Clock) -> None:
    brought_to(store, State.DEAD)
    clock.now += RETENTION + SECOND

    assert list(redriver.dead_jobs(JobFilter())) == []


def test_the_plan_omits_what_was_redriven_since_it_began(redriver: Redriver, table: Table) -> None:
    """The last redrive counts: a job may have died and been redriven before."""

    def dead(name: str, *redriven: datetime) -> None:
        redrives = tuple(Redrive(token=f"{name}-{at}", at=at, by="ada") for at in redriven)
        table.put(a_job(id=name, state=State.DEAD, due=None, finished_at=NOW + HOUR, redrives=redrives))

    began = NOW + SECOND
    dead("never")
    dead("before", NOW)
    dead("twice before", NOW - SECOND, NOW)
    dead("then", began)
    dead("before and since", NOW, began + SECOND)
    wanted = JobFilter(tenant=TENANT, ids=["never", "before", "twice before", "then", "before and since"])

    assert {job.id for job in redriver.dead_jobs(wanted, began=began)} == {"never", "before", "twice before"}
    assert len(list(redriver.dead_jobs(wanted))) == 5


def test_redrive_queues_the_job_and_records_the_operator(redriver: Redriver, store: JobStore) -> None:
    dead = brought_to(store, State.DEAD)

    assert redriver.redrive(dead, by="ada")

    queued = stored(store, dead)
    assert queued.state is State.QUEUED
    assert [(entry.token, entry.by) for entry in queued.redrives] == [("redrive-1", "ada")]


def test_only_one_of_two_concurrent_operators_redrives_each_job(redriver: Redriver, store: JobStore) -> None:
    dead = [brought_to(store, State.DEAD) for _ in range(3)]
    plans = [list(redriver.dead_jobs(JobFilter())) for _ in range(2)]

    outcomes = [redriver.redrive(job, by="ada") for plan in plans for job in plan]

    assert sorted(outcomes) == [False] * 3 + [True] * 3
    assert {stored(store, job).generation for job in dead} == {2}


def test_an_unreadable_dead_job_does_not_hide_others_from_the_plan(
    redriver: Redriver, store: JobStore, table: Table
) -> None:
    jobs = [brought_to(store, State.DEAD) for _ in range(3)]
    item = table.item(jobs[1])
    assert item is not None
    table.client.put_item(TableName=table.name, Item=item | {"schema": {"N": "99"}})
    unreadable: list[str] = []

    plan = redriver.dead_jobs(JobFilter(), unreadable=lambda _tenant, job_id, _error: unreadable.append(job_id))

    assert {job.id for job in plan} == {jobs[0].id, jobs[2].id}
    assert unreadable == [jobs[1].id]
