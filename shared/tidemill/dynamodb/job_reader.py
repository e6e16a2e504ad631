"""Reads job documents: one, many, and those that an index or a scan finds.

A read of many skips a document that this code cannot read, and reports it to `unreadable`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tidemill.application.job_filter import ANY_JOB, JobFilter
from tidemill.application.ports import WHOLE, Part, Unreadable, ignore_unreadable
from tidemill.aws.attribute_values import milliseconds
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.attention_index import entry_pages
from tidemill.dynamodb.document import decode, key, split_key
from tidemill.dynamodb.indexes import attention_partition, line_partition, merged

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The most keys that one BatchGetItem accepts.
_BATCH_GET_LIMIT: Final = 100
#: How many entries of jobs that were just released a search of a line allows for in its first page.
_STALE_ENTRIES: Final = 3
#: How often a partly throttled read is attempted, and the pause before each retry, which doubles each time.
_THROTTLED_TRIES: Final = 6
_THROTTLED_PAUSE_SECONDS: Final = 0.05


class JobReader:
    """The reading part of the store of jobs, over one table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def get(self, tenant: str, job_id: str) -> Job | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=key(tenant, job_id), ConsistentRead=True)
        return decode(answer["Item"]) if "Item" in answer else None

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        # BatchGetItem rejects duplicate keys.
        unique_keys = [key(*pair) for pair in dict.fromkeys(keys)]
        return [
            job
            for start in range(0, len(unique_keys), _BATCH_GET_LIMIT)
            for job in readable(self._get_batch(unique_keys[start : start + _BATCH_GET_LIMIT]), unreadable)
        ]

    def scheduled(
        self, *, before: datetime, part: Part = WHOLE, unreadable: Unreadable = ignore_unreadable
    ) -> Iterator[Job]:
        def pages(partition: str) -> Iterator[list[Job]]:
            return self._attention_pages(partition, unreadable, before=before)

        jobs = self._attention(State.SCHEDULED, lambda job: job.due, pages, part=part)
        # With the jobs that wait alone for a signal.
        return (job for job in jobs if job.due is None or job.due <= before)

    def dead(self, wanted: JobFilter = ANY_JOB, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        def pages(partition: str) -> Iterator[list[Job]]:
            return self._attention_pages(partition, unreadable, wanted=wanted)

        jobs = self._attention(State.DEAD, lambda job: job.finished_at, pages, part=WHOLE)
        return (job for job in jobs if job in wanted)

    def parked(
        self, line: Line, *, most: int, since: datetime | None = None, unreadable: Unreadable = ignore_unreadable
    ) -> list[Job]:
        """The first parked jobs of a line, in its order."""
        found: list[Job] = []
        # The index lags: it may still show jobs that were released. So look at a few more.
        for jobs in self._attention_pages(line_partition(line), unreadable, since=since, size=most + _STALE_ENTRIES):
            found += [job for job in jobs if job.state is State.PARKED and job.wait and job.wait.line == line]
            if len(found) >= most:
                break
        return sorted(found, key=lambda job: (job.created_at, job.id))[:most]

    def overdue(
        self,
        *,
        before: datetime,
        unreadable: Unreadable = ignore_unreadable,
        spend: Callable[[float], object] = lambda _units: None,
    ) -> Iterator[Job]:
        # Waiting and terminal jobs have no `due`.
        # Read eventually, which costs half: each use of a job is conditional on what was read.
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table,
            ReturnConsumedCapacity="TOTAL",
            FilterExpression="#due <= :before",
            ExpressionAttributeNames={"#due": "due"},
            ExpressionAttributeValues={":before": milliseconds(before)},
        )
        with translated():
            for page in pages:
                yield from readable(page["Items"], unreadable)
                if "LastEvaluatedKey" in page:
                    spend(page["ConsumedCapacity"]["CapacityUnits"])

    def _attention(
        self,
        state: State,
        at: Callable[[Job], datetime | None],
        pages: Callable[[str], Iterator[list[Job]]],
        *,
        part: Part,
    ) -> Iterator[Job]:
        """The indexed jobs whose documents are in `state`, ordered by the time `at`."""

        def order(job: Job) -> tuple[datetime, str]:
            return at(job) or job.created_at, job.id

        def jobs_of_shard(number: int) -> Iterator[Job]:
            for jobs in pages(attention_partition(state, number)):
                yield from sorted((job for job in jobs if _listed_as(job) is state), key=order)

        return merged(jobs_of_shard, part=part, key=order)

    def _attention_pages(
        self,
        partition: str,
        unreadable: Unreadable,
        *,
        wanted: JobFilter = ANY_JOB,
        since: datetime | None = None,
        before: datetime | None = None,
        size: int = _BATCH_GET_LIMIT,
    ) -> Iterator[list[Job]]:
        # By default a page holds thousands of keys. One batch per page yields the first jobs early. If few of the keys
        # match, large pages are fewer calls.
        few = wanted.ids or wanted.tenant
        pages = entry_pages(
            self._client,
            table=self._table,
            partition=partition,
            since=since or wanted.ended_since,
            before=before or wanted.ended_until,
            size=None if few else min(size, _BATCH_GET_LIMIT),
        )
        for entries in pages:
            keys = [pair for pair in map(split_key, entries) if wanted.fits_key(*pair)]
            # The index lags behind the documents, so read the documents.
            for start in range(0, len(keys), _BATCH_GET_LIMIT):
                yield self.get_many(keys[start : start + _BATCH_GET_LIMIT], unreadable=unreadable)

    def _get_batch(self, keys: Sequence[Item]) -> Iterator[Item]:
        unread: Any = list(keys)
        for attempt in range(_THROTTLED_TRIES):
            if attempt:
                time.sleep(_THROTTLED_PAUSE_SECONDS * 2**attempt)
            request: Any = {self._table: {"Keys": unread, "ConsistentRead": True}}
            with translated():
                answer: Mapping[str, Any] = self._client.batch_get_item(RequestItems=request)
            yield from answer["Responses"].get(self._table, [])
            # A throttled table returns unprocessed keys without an error, so the SDK does not retry them.
            unread = answer["UnprocessedKeys"].get(self._table, {}).get("Keys", [])
            if not unread:
                return
        raise StoreUnavailableError(f"the table was too busy to read {len(unread)} of {len(keys)} jobs")


def _listed_as(job: Job) -> State:
    """The state by whose entries the index lists the job."""
    alone = job.state is State.PARKED and job.wait is not None and job.wait.alone
    return State.SCHEDULED if alone else job.state


def readable(items: Iterable[Item], unreadable: Unreadable) -> Iterator[Job]:
    """The jobs of these items. Reports the items that this code cannot read to `unreadable`."""
    for item in items:
        try:
            yield decode(item)
        except MalformedDocumentError as error:
            unreadable(*split_key(item), error)
