"""Lists a tenant's jobs, newest first: the listing index finds them, and their documents supply the fields.

The index lags behind the documents and holds no states, so the listing reads each document.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, field

from tidemill.application.ports import Unreadable
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.time_constants import MILLISECOND
from tidemill.dynamodb.listing_entries import ListingEntries, Position

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The most documents that one request reads, including filtered ones, plus or minus one batch.
MOST_READ: Final = 500
#: Documents per read of a filtered listing.
_BATCH: Final = 100


class Wanted(Struct, frozen=True, kw_only=True):
    """Selects a tenant's jobs, created at `since` or later. None means any."""

    tenant: str
    since: datetime
    state: State | None = None
    type: str | None = None
    #: One of the tags of the job.
    tag: str | None = None

    @property
    def filtered(self) -> bool:
        return any(part is not None for part in (self.state, self.type, self.tag))

    def __contains__(self, job: Job) -> bool:
        return self.state in {None, job.state} and self.type in {None, job.type} and self.tag in {None, *job.tags}


class Page(Struct, frozen=True, kw_only=True):
    """Some of the jobs, possibly zero. The next page begins at `end`; None after the last page."""

    jobs: Sequence[Job]
    end: Position | None
    #: The ids of jobs whose documents cannot be read, and why. No filter leaves them out.
    unreadable: Mapping[str, TidemillError] = field(default_factory=dict)


class ReadJobs(Protocol):
    """Reads jobs by (tenant, id), consistently, without those that do not exist."""

    def __call__(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable) -> list[Job]: ...


class DynamoListing:
    """The listing index of one table."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        table: str,
        read: ReadJobs,
    ) -> None:
        self._entries = ListingEntries(client=client, table=table)
        self._read = read

    def page(self, wanted: Wanted, *, below: Position, limit: int, now: datetime) -> Page:
        """Up to `limit` jobs older than `below`; fewer when the request has read `MOST_READ` documents."""
        jobs: list[Job] = []
        unreadable: dict[str, TidemillError] = {}
        page = partial(Page, jobs=jobs, unreadable=unreadable)
        read = 0
        # A position without an id excludes its whole millisecond, so the query ends a millisecond earlier.
        newest = below.at if below.id else below.at - MILLISECOND
        found = self._entries.between(wanted.since, newest, tenant=wanted.tenant, newest_first=True)
        entries = (entry for entry in found if entry < below)
        while batch := list(islice(entries, _BATCH if wanted.filtered else limit - len(jobs))):
            for entry, job in self._documents(wanted.tenant, batch, now, unreadable):
                if job in wanted:
                    jobs.append(job)
                if len(jobs) == limit:
                    return page(end=entry)
            read += len(batch)
            if read >= MOST_READ:
                return page(end=batch[-1])
        return page(end=None)

    def _documents(
        self, tenant: str, batch: Sequence[Position], now: datetime, unreadable: dict[str, TidemillError]
    ) -> Iterator[tuple[Position, Job]]:
        def note(_tenant: str, job_id: str, error: TidemillError) -> None:
            unreadable[job_id] = error

        keys = [(tenant, entry.id) for entry in batch]
        found = {job.id: job for job in self._read(keys, unreadable=note)}
        for entry in batch:
            job = found.get(entry.id)
            # A new job may have replaced an expired job under its key. The new job has its own index entry.
            if job is not None and job.created_at == entry.at and not job.lifetime.over(now):
                yield entry, job
