"""The events of all tenants, in no order, by a scan of the whole table at a limited rate."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from tidemill.application.events.replay import Replay
from tidemill.application.job_filter import JobFilter
from tidemill.application.passes.job_search import FoundPage, JobScan, JobSearch
from tidemill.application.passes.pace import Pace
from tidemill.domain.job import Job
from tidemill.names import EVENT_TYPE


class ScannedEvents:
    """`StoredEvents` of any stage. `reads` bounds the read units."""

    ordered = False

    def __init__(self, scan: JobScan, reads: Pace) -> None:
        self._scan = scan
        self._search = JobSearch(scan, reads)

    def pages(
        self, wanted: Replay, *, after: str | None, now: datetime, time_left: Callable[[], timedelta]
    ) -> Iterator[FoundPage]:
        events = JobFilter(types=(EVENT_TYPE,), tenant=wanted.tenant, since=wanted.since, until=wanted.until)
        return self._search.steps(events, now=now, after=after, time_left=time_left)

    def cursor_after(self, event: Job) -> str:
        return self._scan.cursor_after(event)
