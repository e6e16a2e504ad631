"""Reading job documents: one, many, and those that an index or a scan finds.

Where many are read, one that this code cannot read costs the others nothing: `unreadable` is told of it.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.application.ports import Unreadable, ignore_unreadable
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import decode, key, split_key
from tidemill.dynamodb.update_requests import attention_partition
from tidemill.names import ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SHARDS, ATTENTION_SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The most keys that one BatchGetItem takes.
_BATCH_GET_LIMIT: Final = 100
#: How often a read that was throttled in part is continued, and the pause before, which doubles each time.
_BUSY_TRIES: Final = 6
_BUSY_PAUSE_SECONDS: Final = 0.05


class JobReader:
    """The reading half of `JobStore`, over one table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, tenant: str, job_id: str) -> Job | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key(tenant, job_id), ConsistentRead=True)
        return decode(answer["Item"]) if "Item" in answer else None

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        # One call refuses to be asked for a key twice.
        asked = [key(*pair) for pair in dict.fromkeys(keys)]
        return [
            job
            for start in range(0, len(asked), _BATCH_GET_LIMIT)
            for job in readable(self._get_batch(asked[start : start + _BATCH_GET_LIMIT]), unreadable)
        ]

    def scheduled(self, *, before: datetime, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        return self._attention(State.SCHEDULED, lambda job: job.due, before=before, unreadable=unreadable)

    def dead(self, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        return self._attention(State.DEAD, lambda job: job.finished_at, before=None, unreadable=unreadable)

    def overdue(self, *, before: datetime, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        # Neither waiting nor terminal jobs have a `due`.
        return self._scan("due", milliseconds(before), unreadable)

    def ended(self, *, before: datetime, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        # A redrive takes it away.
        return self._scan("finished_at", milliseconds(before), unreadable)

    def _scan(self, attribute: str, until: Item, unreadable: Unreadable) -> Iterator[Job]:
        """Every job of the table whose `attribute` is not after that."""
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table,
            ConsistentRead=True,
            FilterExpression="#at <= :until",
            ExpressionAttributeNames={"#at": attribute},
            ExpressionAttributeValues={":until": until},
        )
        with translated():
            for page in pages:
                yield from readable(page["Items"], unreadable)

    def _attention(
        self,
        state: State,
        at: Callable[[Job], datetime | None],
        *,
        before: datetime | None,
        unreadable: Unreadable,
    ) -> Iterator[Job]:
        """The jobs of the index that are in `state` by their documents, by the time that they stand there for."""

        def order(job: Job) -> tuple[datetime, str]:
            return at(job) or job.created_at, job.id

        def is_asked_for(job: Job) -> bool:
            return job.state is state and (before is None or order(job)[0] <= before)

        def shard_of(number: int) -> Iterator[Job]:
            for jobs in self._attention_pages(attention_partition(state, number), before, unreadable):
                yield from sorted(filter(is_asked_for, jobs), key=order)

        return heapq.merge(*map(shard_of, range(ATTENTION_SHARDS)), key=order)

    def _attention_pages(self, partition: str, before: datetime | None, unreadable: Unreadable) -> Iterator[list[Job]]:
        condition, values = "#partition = :partition", {":partition": text(partition)}
        names = {"#partition": ATTENTION_KEY}
        if before is not None:
            condition += " AND #at <= :before"
            names["#at"] = ATTENTION_SORT_KEY
            values[":before"] = milliseconds(before)
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=ATTENTION_INDEX,
            KeyConditionExpression=condition,
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
            # A page holds thousands of keys: as many as are read at once, so that the first need not wait for the last.
            PaginationConfig={"PageSize": _BATCH_GET_LIMIT},
        )
        with translated():
            for page in pages:
                # The index lags behind its documents, so they are asked.
                yield self.get_many([split_key(entry) for entry in page["Items"]], unreadable=unreadable)

    def _get_batch(self, keys: Sequence[Item]) -> Iterator[Item]:
        unread: Any = list(keys)
        for busy in range(_BUSY_TRIES):
            if busy:
                time.sleep(_BUSY_PAUSE_SECONDS * 2**busy)
            request: Any = {self._table: {"Keys": unread, "ConsistentRead": True}}
            with translated():
                answer: Mapping[str, Any] = self._client.batch_get_item(RequestItems=request)
            yield from answer["Responses"].get(self._table, [])
            # What a throttled table leaves out is not an error, so the SDK does not ask again.
            unread = answer["UnprocessedKeys"].get(self._table, {}).get("Keys", [])
            if not unread:
                return
        raise StoreUnavailableError(f"the table was too busy to read {len(unread)} of {len(keys)} jobs")


def readable(items: Iterable[Item], unreadable: Unreadable) -> Iterator[Job]:
    """The jobs of these documents, but for those that this code cannot read."""
    for item in items:
        try:
            yield decode(item)
        except MalformedDocumentError as error:
            unreadable(*split_key(item), error)
