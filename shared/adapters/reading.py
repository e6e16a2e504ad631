"""Reading job documents: one, many, and those that an index or a scan finds."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from shared.adapters.clients import Item, translated
from shared.adapters.document import decode, key, milliseconds, split_key
from shared.adapters.requests import attention_partition
from shared.domain.errors import StoreUnavailableError
from shared.domain.job import Job
from shared.domain.states import State
from shared.names import ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SHARDS, ATTENTION_SORT_KEY

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

    def get_many(self, keys: Sequence[tuple[str, str]]) -> list[Job]:
        # One call refuses to be asked for a key twice.
        asked = [key(*pair) for pair in dict.fromkeys(keys)]
        return [
            decode(item)
            for start in range(0, len(asked), _BATCH_GET_LIMIT)
            for item in self._get_batch(asked[start : start + _BATCH_GET_LIMIT])
        ]

    def scheduled(self, *, before: datetime) -> Iterator[Job]:
        for shard in range(ATTENTION_SHARDS):
            for jobs in self._attention_pages(State.SCHEDULED, shard, before=before):
                yield from sorted(jobs, key=lambda job: (job.due or job.created_at, job.id))

    def dead(self) -> Iterator[Job]:
        for shard in range(ATTENTION_SHARDS):
            for jobs in self._attention_pages(State.DEAD, shard):
                yield from sorted(jobs, key=lambda job: (job.finished_at or job.created_at, job.id))

    def overdue(self, *, before: datetime) -> Iterator[Job]:
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table,
            ConsistentRead=True,
            # Neither waiting nor terminal jobs have a `due`.
            FilterExpression="#due <= :before",
            ExpressionAttributeNames={"#due": "due"},
            ExpressionAttributeValues={":before": milliseconds(before)},
        )
        with translated():
            for page in pages:
                yield from map(decode, page["Items"])

    def _attention_pages(self, state: State, shard: int, *, before: datetime | None = None) -> Iterator[list[Job]]:
        """Page by page, the jobs of one partition of the index that are in `state` by their documents."""
        condition, values = "#partition = :partition", {":partition": {"S": attention_partition(state, shard)}}
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
        )
        with translated():
            for page in pages:
                # The index lags behind its documents, so they are asked.
                jobs = self.get_many([split_key(entry) for entry in page["Items"]])
                yield [job for job in jobs if job.state is state]

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
