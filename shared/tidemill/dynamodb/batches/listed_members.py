"""Lists the jobs that belong to one job, its members: the jobs of a batch, or those of an event's consumers.

Their ids are known without an index, and their documents supply the rest. They come in the order of their ids, the
greatest first: a listing by time would have to read all documents for each page.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from tidemill.application.events.events import consumer_jobs
from tidemill.application.ports import Unreadable, ignore_unreadable
from tidemill.domain.batches.batches import is_batch
from tidemill.domain.errors import TidemillError
from tidemill.domain.events.events import is_event
from tidemill.domain.job import Job
from tidemill.domain.states import FINAL_STATES, State
from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
from tidemill.dynamodb.listing import MOST_READ, Page, ReadJobs, Wanted
from tidemill.dynamodb.listing_entries import Position

#: Documents per read of a filtered listing.
_BATCH: Final = 100
#: The kinds of job that have members, as requests and options name them. A new kind needs its ids in `MemberListing`,
#: and what its members say of it in `_belongs`.
KINDS: Final[Mapping[str, Callable[[Job], bool]]] = {"batch": is_batch, "event": is_event}


#: After any job.
_END: Final = Position(datetime.max.replace(tzinfo=UTC))


def has_members(job: Job) -> bool:
    return any(is_one(job) for is_one in KINDS.values())


class MemberListing:
    """Lists the members of the batches and events of one table."""

    def __init__(self, batches: DynamoBatchPages, *, read: ReadJobs) -> None:
        self._batches = batches
        self._read = read

    def all(
        self,
        whole: Job,
        wanted: Wanted,
        *,
        below: Position = _END,
        now: datetime,
        unreadable: Unreadable = ignore_unreadable,
    ) -> Iterator[Job]:
        """Page after page."""
        end: Position | None = below
        while end:
            page = self.page(whole, wanted, below=end, limit=_BATCH, now=now)
            for job_id, error in page.unreadable.items():
                unreadable(whole.tenant, job_id, error)
            yield from page.jobs
            end = page.end

    def page(self, whole: Job, wanted: Wanted, *, below: Position, limit: int, now: datetime) -> Page:
        """Up to `limit` members of `whole`; fewer when the request has read `MOST_READ` documents.

        The time of `below` is the first that is too late for a member, and its id the last of the page before.
        """
        jobs: list[Job] = []
        unreadable: dict[str, TidemillError] = {}

        def note(_tenant: str, job_id: str, error: TidemillError) -> None:
            unreadable[job_id] = error

        ids = sorted((each for each in self._ids(whole, wanted.state) if not below.id or each < below.id), reverse=True)
        size = _BATCH if wanted.filtered else limit
        for start in range(0, min(len(ids), MOST_READ), size):
            some = ids[start : start + size]
            found = {job.id: job for job in self._read([(whole.tenant, each) for each in some], unreadable=note)}
            for position, job_id in enumerate(some, start + 1):
                job = found.get(job_id)
                if job and _belongs(job, whole) and _fits(job, wanted, below, now):
                    jobs.append(job)
                if len(jobs) == limit or position == MOST_READ:
                    end = Position(below.at, job_id) if position < len(ids) else None
                    return Page(jobs=jobs, end=end, unreadable=unreadable)
        return Page(jobs=jobs, end=None, unreadable=unreadable)

    def _ids(self, whole: Job, state: State | None) -> list[str]:
        """Return the ids of the members that may be in that state; None is any."""
        if is_event(whole):
            return list(consumer_jobs(whole))
        if not is_batch(whole):
            return []
        # A state that is final has been noted for good, so the documents of these members need no look.
        others = [each for each in FINAL_STATES if state not in {None, each}]
        pages = self._batches.pages(whole)
        return [each for page in pages for each in page.members.difference(*(page.ended.get(o, ()) for o in others))]


def _belongs(job: Job, whole: Job) -> bool:
    """Another job may have replaced one that has expired."""
    return (job.batch if is_batch(whole) else job.parent) == whole.id


def _fits(job: Job, wanted: Wanted, below: Position, now: datetime) -> bool:
    return job in wanted and wanted.since <= job.created_at < below.at and not job.lifetime.over(now)
