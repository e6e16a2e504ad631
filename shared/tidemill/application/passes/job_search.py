"""Job search: read the whole table for the jobs that match, page by page, at a limited rate and up to a limit.

For questions that no index answers, because an index entry would cost each job a write. The caller gets a cursor with
each page, so that a search can stop at any time and be continued.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from tidemill.application.job_filter import JobFilter
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import UnreadableItem
from tidemill.domain.job import Job


class JobPage(Struct, frozen=True, kw_only=True):
    """One page of the table."""

    #: In the order of the table. May be more than match.
    found: Sequence[Job | UnreadableItem]
    #: The key after which the next page begins. None at the end of the table.
    cursor: str | None
    #: The number of items that the page read, and their price.
    items: int
    read_units: float


class JobScan(Protocol):
    """The jobs of the whole table, in no useful order."""

    def page(self, wanted: JobFilter, *, after: str | None) -> JobPage:
        """The next page. `after` is None for the first one. The jobs may be some seconds old."""

    def cursor_after(self, job: Job) -> str:
        """A cursor that begins after this job."""


class FoundPage(Struct, frozen=True, kw_only=True):
    """Wanted jobs of one page, and the items that may be such jobs."""

    #: In the order read.
    found: Sequence[Job | UnreadableItem]
    #: Where to continue. None after the last page.
    cursor: str | None


class SearchStep(FoundPage, frozen=True, kw_only=True):
    """The search after one page."""

    #: What the search has read so far.
    items: int
    read_units: float

    @property
    def jobs(self) -> Sequence[Job]:
        return [each for each in self.found if isinstance(each, Job)]

    @property
    def unreadable(self) -> Sequence[UnreadableItem]:
        return [each for each in self.found if isinstance(each, UnreadableItem)]


class JobSearch:
    """It changes nothing."""

    def __init__(self, scan: JobScan, pace: Pace) -> None:
        self._scan = scan
        self._pace = pace

    def steps(
        self,
        wanted: JobFilter,
        *,
        now: datetime,
        after: str | None,
        most_jobs: int | None = None,
        most_units: float = math.inf,
        time_left: Callable[[], timedelta] = lambda: timedelta.max,
    ) -> Iterator[SearchStep]:
        """Ends with the table, with `most_jobs` jobs, 1 or more, or when it has taken `most_units`.

        It also ends if `time_left` is too short to pay for a page. Expired jobs are left out.
        """
        items, units, jobs, cursor = 0, 0.0, 0, after
        while True:
            page = self._scan.page(wanted, after=cursor)
            items, units, cursor = items + page.items, units + page.read_units, page.cursor
            matching = [
                each
                for each in page.found
                if isinstance(each, UnreadableItem) or (each in wanted and not each.lifetime.over(now))
            ]
            found = matching if most_jobs is None else _up_to(matching, jobs=most_jobs - jobs)
            if len(found) < len(matching) and isinstance(last := found[-1], Job):
                cursor = self._scan.cursor_after(last)
            step = SearchStep(found=found, cursor=cursor, items=items, read_units=units)
            jobs += len(step.jobs)
            yield step
            if cursor is None or jobs == most_jobs or units >= most_units:
                return
            if not self._pace.spend(page.read_units, within=time_left()):
                return


def _up_to(found: Sequence[Job | UnreadableItem], *, jobs: int) -> Sequence[Job | UnreadableItem]:
    """All that was found, or with more jobs than that, what ends with the last of them."""
    ends = [end for end, each in enumerate(found, 1) if isinstance(each, Job)]
    return found if len(ends) <= jobs else found[: ends[jobs - 1]]
