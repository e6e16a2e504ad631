"""The search of the whole table: where it stops, where it can be continued, and what it leaves out."""

import math
from collections.abc import Sequence
from datetime import timedelta

from tests.support.builders import NOW, SECOND, a_job
from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.application.passes.job_search import JobPage, JobSearch, SearchStep
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import UnreadableItem
from tidemill.domain.job import Job
from tidemill.domain.states import State

JOBS = [a_job(id=str(number)) for number in range(7)]
#: What a page of three jobs costs.
UNITS = 1.5


class Pages:
    """`JobScan` over jobs in order, three a page. The cursor is the id of the last job."""

    def __init__(self, jobs: Sequence[Job | UnreadableItem] = JOBS) -> None:
        self.jobs = jobs

    def page(self, wanted: JobFilter, *, after: str | None) -> JobPage:
        begin = next((index + 1 for index, job in enumerate(self.jobs) if _name(job) == after), 0)
        jobs = self.jobs[begin : begin + 3]
        cursor = _name(jobs[-1]) if begin + 3 < len(self.jobs) else None
        return JobPage(found=jobs, cursor=cursor, items=len(jobs), read_units=UNITS)

    def cursor_after(self, job: Job) -> str:
        return job.id


def _name(found: Job | UnreadableItem) -> str:
    return found.id if isinstance(found, Job) else found.key


def searched(
    *,
    wanted: JobFilter = ANY_JOB,
    after: str | None = None,
    most: int | None = None,
    units: float = math.inf,
    pages: Pages | None = None,
) -> list[SearchStep]:
    search = JobSearch(pages or Pages(), Pace(1_000, clock=lambda: NOW, pause=lambda _seconds: None))
    return list(search.steps(wanted, now=NOW, after=after, most_jobs=most, most_units=units))


def found(steps: Sequence[SearchStep]) -> tuple[list[str], str | None]:
    """The jobs, and where to continue."""
    return [job.id for step in steps for job in step.jobs], steps[-1].cursor


def test_a_search_reads_the_table_to_its_end() -> None:
    steps = searched()

    assert found(steps) == (["0", "1", "2", "3", "4", "5", "6"], None)
    assert [(step.items, step.read_units) for step in steps] == [(3, UNITS), (6, 2 * UNITS), (7, 3 * UNITS)]


def test_a_search_that_has_enough_jobs_is_continued_behind_the_last_of_them() -> None:
    """Also in the middle of a page, whose other jobs the next search finds."""
    assert found(searched(most=2)) == (["0", "1"], "1")
    assert found(searched(most=2, after="1")) == (["2", "3"], "3")
    assert found(searched(most=3)) == (["0", "1", "2"], "2")
    assert found(searched(most=5)) == (["0", "1", "2", "3", "4"], "4")
    assert found(searched(most=5, after="4")) == (["5", "6"], None)
    assert found(searched(most=7)) == (["0", "1", "2", "3", "4", "5", "6"], None)


def test_a_search_ends_when_it_has_taken_its_units() -> None:
    assert found(searched(units=UNITS)) == (["0", "1", "2"], "2")
    assert found(searched(units=UNITS + 0.1)) == (["0", "1", "2", "3", "4", "5"], "5")


def test_jobs_that_do_not_match_and_expired_ones_count_as_read_only() -> None:
    ended = a_job(id="ended", state=State.SUCCEEDED, due=None, expires_at=NOW)
    kept = a_job(id="kept", state=State.SUCCEEDED, due=None, expires_at=NOW + SECOND)
    steps = searched(wanted=JobFilter(states=(State.SUCCEEDED,)), pages=Pages([ended, JOBS[0], kept]), most=1)

    assert (found(steps), steps[-1].items) == ((["kept"], None), 3)


def test_a_search_waits_after_each_page_but_the_last() -> None:
    """So that it leaves the table the rest of its capacity."""
    pauses: list[float] = []
    clock = [NOW]

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        clock[0] += timedelta(seconds=seconds)

    search = JobSearch(Pages(), Pace(UNITS, clock=lambda: clock[0], pause=pause))
    steps = list(search.steps(ANY_JOB, now=NOW, after=None))

    assert (len(steps), pauses) == (3, [1.0, 1.0])


def test_a_search_ends_before_a_wait_that_is_longer_than_its_time() -> None:
    """Otherwise a run would be killed in the wait, and its repeat would read the same page again."""
    left = iter([timedelta(seconds=1), timedelta(seconds=0.9)])
    pauses: list[float] = []
    search = JobSearch(Pages(), Pace(UNITS, clock=lambda: NOW + timedelta(seconds=sum(pauses)), pause=pauses.append))
    steps = list(search.steps(ANY_JOB, now=NOW, after=None, time_left=lambda: next(left)))

    assert (found(steps), pauses) == ((["0", "1", "2", "3", "4", "5"], "5"), [1.0])


def test_a_search_that_is_continued_reports_each_damaged_item_once() -> None:
    """Also of those between the last job of the first search and the first job of the second one."""
    damaged = [UnreadableItem(name, ValueError(name)) for name in ("first", "second")]
    pages = Pages([damaged[0], JOBS[0], damaged[1], JOBS[1]])

    (first,) = searched(most=1, pages=Pages([damaged[0], JOBS[0], JOBS[1], damaged[1]]))
    assert (first.unreadable, first.jobs, first.cursor) == ([damaged[0]], [JOBS[0]], "0")

    begun = searched(most=1, pages=pages)
    continued = searched(after=begun[-1].cursor, pages=pages)
    told = [item for step in (*begun, *continued) for item in step.unreadable]
    assert told == damaged


def test_a_search_that_ends_with_the_last_job_of_a_page_has_read_all_of_it() -> None:
    damaged = UnreadableItem("damaged", ValueError("damaged"))

    (step,) = searched(most=2, pages=Pages([*JOBS[:2], damaged]))

    assert (step.jobs, step.unreadable, step.cursor) == (JOBS[:2], [damaged], None)
