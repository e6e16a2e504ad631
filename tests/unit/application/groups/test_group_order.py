"""The order of groups in a stream of dead jobs."""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.groups.group_order import CLOCKS_DIFFER, in_group_order
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State


def _dead(group: str | None, sequence: int | None, *, seconds: float = 0, tenant: str = "a:one") -> Job:
    died = NOW + timedelta(seconds=seconds)
    return a_job(state=State.DEAD, group=group, sequence=sequence, finished_at=died, tenant=tenant, due=None)


def test_the_jobs_of_a_group_come_by_position_though_clocks_differ() -> None:
    died = [_dead("g", 3, seconds=0), _dead("g", 1, seconds=1), _dead("h", 7, seconds=1), _dead("g", 2, seconds=50)]

    found = [(job.group.key, job.group.sequence) for job in in_group_order(died)]

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


def _order(died: Sequence[Job]) -> list[int]:
    """The places in `died` of what comes out."""
    return [died.index(job) for job in in_group_order(died)]


def test_a_group_is_held_until_a_job_has_died_more_than_a_minute_later() -> None:
    """Also by the clocks of two workers, which differ by less."""
    minute = 60
    just = [_dead("g", 2), _dead("g", 1, seconds=minute)]
    later = [_dead("g", 2), _dead("g", 1, seconds=minute + 0.001)]

    assert (_order(just), _order(later)) == ([1, 0], [0, 1])


def test_only_the_first_job_that_is_held_tells_how_long() -> None:
    jobs = [_dead("g", 2), _dead("h", 1, seconds=50), _dead("g", 1, seconds=90)]

    assert _order(jobs) == [0, 1, 2]


def test_a_job_without_a_time_of_death_counts_from_its_submission() -> None:
    """An older version wrote none."""
    first = replace(_dead("g", 2), finished_at=None)
    jobs = [first, _dead("g", 1, seconds=61)]

    assert _order(jobs) == [0, 1]


def test_the_time_of_death_counts_and_not_that_of_the_submission() -> None:
    jobs = [replace(_dead("g", 2), created_at=NOW - timedelta(hours=1)), _dead("g", 1, seconds=1)]

    assert _order(jobs) == [1, 0]


@pytest.mark.parametrize(("other", "name", "order"), [(1, "a", [1, 0]), (-1, "c", [0, 1])])
def test_a_job_without_a_position_counts_as_position_0(other: int, name: str, order: list[int]) -> None:
    """Jobs of one position come by their ids."""
    jobs = [replace(_dead("g", other), id=name), replace(_dead("g", None, seconds=1), id="b")]

    assert _order(jobs) == order


def test_a_group_that_comes_again_after_a_while_is_held_again() -> None:
    jobs = [_dead("g", 1), _dead("g", 3, seconds=100), _dead("g", 2, seconds=101)]

    assert _order(jobs) == [0, 2, 1]
