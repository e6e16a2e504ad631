"""The events of one tenant in the order of their times: the listing index finds them, and their documents follow.

The index lags behind the documents, so an event of the last seconds may be missing. A repeated replay finds it.
"""

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from tidemill.application.events.replay import Replay
from tidemill.application.passes.job_search import FoundPage
from tidemill.application.ports import UnreadableItem
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.dynamodb.listing import ReadJobs
from tidemill.dynamodb.listing_entries import ListingEntries, Position
from tidemill.names import EVENT_TYPE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Documents per read.
_BATCH: Final = 100


class ListedEvents:
    """`StoredEvents` of one tenant, in a stage that keeps the listing index."""

    ordered = True

    def __init__(self, client: "DynamoDBClient", *, table: str, tenant: str, read: ReadJobs) -> None:
        self._entries = ListingEntries(client=client, table=table)
        self._tenant = tenant
        self._read = read

    def pages(
        self, wanted: Replay, *, after: str | None, now: datetime, time_left: Callable[[], timedelta]
    ) -> Iterator[FoundPage]:
        begin = _position(after) if after else Position(wanted.since)
        found = self._entries.between(begin.at, wanted.until - MILLISECOND, tenant=self._tenant)
        entries = (entry for entry in found if entry > begin)
        batch = list(islice(entries, _BATCH))
        while further := list(islice(entries, _BATCH)):
            yield self._page(batch, now, cursor=_cursor(batch[-1]))
            if time_left() <= timedelta(0):
                return
            batch = further
        yield self._page(batch, now, cursor=None)

    def cursor_after(self, event: Job) -> str:
        return _cursor(Position(event.created_at, event.id))

    def _page(self, batch: list[Position], now: datetime, *, cursor: str | None) -> FoundPage:
        read: dict[str, Job | UnreadableItem] = {}

        def note(tenant: str, job_id: str, error: TidemillError) -> None:
            read[job_id] = UnreadableItem(f"{tenant}#{job_id}", error)

        read |= {job.id: job for job in self._read([(self._tenant, each.id) for each in batch], unreadable=note)}
        found = [(each.at, read[each.id]) for each in batch if each.id in read]
        return FoundPage(found=[each for at, each in found if _is_wanted(each, at, now)], cursor=cursor)


def _is_wanted(found: Job | UnreadableItem, at: datetime, now: datetime) -> bool:
    if isinstance(found, UnreadableItem):
        return True
    # A new job may have replaced an expired one under its key. It has an entry of its own.
    return found.created_at == at and found.type == EVENT_TYPE and not found.lifetime.over(now)


def _cursor(position: Position) -> str:
    return json.dumps([(position.at - EPOCH) // MILLISECOND, position.id])


def _position(cursor: str) -> Position:
    at, job_id = json.loads(cursor)
    return Position(EPOCH + at * MILLISECOND, job_id)
