"""The events of one tenant in the order of their times: the listing index finds them, and their documents follow.

The index lags behind the documents, so an event of the last seconds may be missing. A repeated replay finds it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from tidemill.application.ports import UnreadableItem
from tidemill.application.replay import EventPage, Replay
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.time_constants import EPOCH
from tidemill.dynamodb.document import from_milliseconds, split_key
from tidemill.dynamodb.indexes import listing_partition, merged
from tidemill.dynamodb.listing import ReadJobs
from tidemill.names import EVENT_TYPE, LISTING_INDEX, LISTING_KEY, LISTING_SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Documents per read, and index entries per query.
_BATCH: Final = 100
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True, order=True)
class _Position:
    """In the order of times. Entries of one millisecond are in the order of their ids."""

    at: datetime
    id: str

    @property
    def cursor(self) -> str:
        return json.dumps([(self.at - EPOCH) // _MILLISECOND, self.id])

    @classmethod
    def of(cls, cursor: str) -> "_Position":
        at, job_id = json.loads(cursor)
        return cls(EPOCH + at * _MILLISECOND, job_id)


class ListedEvents:
    """`StoredEvents` of one tenant, in a stage that keeps the listing index."""

    ordered = True

    def __init__(self, client: "DynamoDBClient", *, table: str, tenant: str, read: ReadJobs) -> None:
        self._client = client
        self._table = table
        self._tenant = tenant
        self._read = read

    def pages(self, wanted: Replay, *, after: str | None, now: datetime) -> Iterator[EventPage]:
        begin = _Position.of(after) if after else _Position(wanted.since, "")
        entries = (entry for entry in self._entries(begin.at, wanted.until) if entry > begin)
        batch = list(islice(entries, _BATCH))
        while further := list(islice(entries, _BATCH)):
            yield self._page(batch, now, cursor=batch[-1].cursor)
            batch = further
        yield self._page(batch, now, cursor=None)

    def cursor_after(self, event: Job) -> str:
        return _Position(event.created_at, event.id).cursor

    def _page(self, batch: list[_Position], now: datetime, *, cursor: str | None) -> EventPage:
        unreadable: list[UnreadableItem] = []

        def note(tenant: str, job_id: str, error: TidemillError) -> None:
            unreadable.append(UnreadableItem(f"{tenant}#{job_id}", error))

        found = {job.id: job for job in self._read([(self._tenant, each.id) for each in batch], unreadable=note)}
        # A new job may have replaced an expired one under its key. It has an entry of its own.
        jobs = [job for each in batch if (job := found.get(each.id)) and job.created_at == each.at]
        events = [job for job in jobs if job.type == EVENT_TYPE and not job.retention_over(now)]
        return EventPage(events=events, unreadable=unreadable, cursor=cursor)

    def _entries(self, since: datetime, until: datetime) -> Iterator[_Position]:
        newest = until - _MILLISECOND
        if newest < since:
            # DynamoDB refuses `BETWEEN` with its bounds in this order.
            return iter(())
        return merged(lambda shard: _in_order(self._shard(shard, since, newest)))

    def _shard(self, shard: int, since: datetime, newest: datetime) -> Iterator[_Position]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=LISTING_INDEX,
            KeyConditionExpression="#partition = :partition AND #at BETWEEN :since AND :newest",
            ExpressionAttributeNames={"#partition": LISTING_KEY, "#at": LISTING_SORT_KEY},
            ExpressionAttributeValues={
                ":partition": text(listing_partition(self._tenant, shard)),
                ":since": milliseconds(since),
                ":newest": milliseconds(newest),
            },
            PaginationConfig={"PageSize": _BATCH},
        )
        with translated():
            for page in pages:
                yield from map(_position, page["Items"])


def _position(entry: Item) -> _Position:
    return _Position(from_milliseconds(entry[LISTING_SORT_KEY]), split_key(entry)[1])


def _in_order(entries: Iterator[_Position]) -> Iterator[_Position]:
    """DynamoDB does not define the order of entries of the same millisecond."""
    for _, tied in groupby(entries, key=attrgetter("at")):
        yield from sorted(tied)
