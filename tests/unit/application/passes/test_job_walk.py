"""The walk through jobs page by page: where it stops, where it goes on, and when it saves that."""

from collections.abc import Sequence
from datetime import timedelta

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job
from tests.support.single_job import Clock
from tidemill.application.passes.job_search import FoundPage
from tidemill.application.passes.job_walk import JobWalk, WalkProgress
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import UnreadableItem
from tidemill.domain.job import Job
from tidemill.domain.records import replace

JOBS = [a_job(id=str(number)) for number in range(4)]
DAMAGED = UnreadableItem("damaged", ValueError("damaged"))
PAGES = [
    FoundPage(found=[JOBS[0], DAMAGED, JOBS[1]], cursor="of the first page"),
    FoundPage(found=[JOBS[2], JOBS[3], DAMAGED], cursor=None),
]


class Progress(WalkProgress, frozen=True, kw_only=True):
    seen: int = 0


def walked(pages: Sequence[FoundPage], *, jobs: int, each: timedelta = SECOND) -> tuple[Progress, list[Progress]]:
    """A walk with time for so many jobs, each of which takes a while; and what it has saved."""
    clock, saved, left = Clock(), list[Progress](), jobs

    def time_left() -> timedelta:
        nonlocal left
        left -= 1
        return timedelta(0) if left < 0 else timedelta.max

    def see(progress: Progress, found: Job | UnreadableItem) -> Progress:
        clock.now += each * isinstance(found, Job)
        return replace(progress, seen=progress.seen + 1)

    # Each job has to wait for its turn.
    pace = Pace(1, clock=lambda: NOW, pause=lambda _seconds: None)
    found = JobWalk(jobs=pace, clock=clock).run(
        pages,
        Progress(),
        see=see,
        cursor_after=lambda job: job.id,
        time_left=time_left,
        save=saved.append,
    )
    return found, saved


def test_a_walk_has_seen_every_item_once() -> None:
    assert walked(PAGES, jobs=4) == (Progress(cursor=None, complete=True, seen=6), [])


def test_a_walk_without_jobs_is_complete() -> None:
    assert walked([FoundPage(found=[], cursor=None)], jobs=0)[0] == Progress(complete=True)
    assert walked([FoundPage(found=[DAMAGED], cursor="next")], jobs=0)[0] == Progress(cursor="next", seen=1)
    assert walked([], jobs=0)[0] == Progress(cursor=None, complete=False)


def test_a_walk_that_has_no_more_time_goes_on_after_its_last_job() -> None:
    """What cannot be read comes again unless a job was seen after it."""
    found = [walked(PAGES, jobs=jobs)[0] for jobs in (1, 2, 3)]

    assert found == [
        Progress(cursor="0", seen=1),
        Progress(cursor="of the first page", seen=3),
        Progress(cursor="2", seen=4),
    ]
    assert not any(each.complete for each in found)


def test_a_walk_saves_every_five_seconds() -> None:
    pages = [FoundPage(found=[a_job(id=str(number)) for number in range(12)], cursor=None)]

    assert [each.cursor for each in walked(pages, jobs=12)[1]] == ["4", "9"]
    assert [each.cursor for each in walked(pages, jobs=12, each=SECOND - MILLISECOND)[1]] == ["5", "11"]
