"""The order of groups in a stream of dead jobs."""

from collections.abc import Iterator
from datetime import timedelta

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.group_order import CLOCKS_DIFFER, in_group_order
from tidemill.domain.job import Job
from tidemill.domain.states import State


def _dead(group: str | None, sequence: int | None, *, seconds: float = 0, tenant: str = "a:one") -> Job:
    died = NOW + timedelta(seconds=seconds)
    return a_job(state=State.DEAD, group=group, sequence=sequence, finished_at=died, tenant=tenant, due=None)


def test_the_jobs_of_a_group_come_by_position_though_clocks_differ() -> None:
    died = [_dead("g", 3, seconds=0), _dead("g", 1, seconds=1), _dead("h", 7, seconds=1), _dead("g", 2, seconds=50)]

    found = [(job.group, job.sequence) for job in in_group_order(died)]

    assert [entry for entry in found if entry[0] == "g"] == [("g", 1), ("g", 2), ("g", 3)]
    assert sorted(found) == [("g", 1), ("g", 2), ("g", 3), ("h", 7)]


def test_groups_of_one_name_of_two_tenants_are_apart() -> None:
    died = [_dead("g", 2, tenant="a:one"), _dead("g", 1, tenant="a:two")]

    assert [job.tenant for job in in_group_order(died)] == ["a:one", "a:two"]


def test_a_job_without_a_group_passes_at_once_and_a_group_is_held_for_a_minute() -> None:
    read: list[Job] = []
    jobs = [_dead("g", 1), _dead(None, None), _dead("g", 2, seconds=CLOCKS_DIFFER / SECOND + 1)]

    def stream() -> Iterator[Job]:
        for job in jobs:
            read.append(job)
            yield job

    ordered = in_group_order(stream())

    assert (next(ordered), len(read)) == (jobs[1], 2)
    assert (next(ordered), len(read)) == (jobs[0], 3)
    assert list(ordered) == [jobs[2]]
