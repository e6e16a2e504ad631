"""The job documents in DynamoDB: one call a write, and what a refusal means is read from the item that it returns."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from shared.adapters import writes
from shared.adapters.clients import Item, translated
from shared.adapters.document import decode, key, milliseconds, split_key
from shared.domain.errors import EffectRefusedError, StoreUnavailableError, TransactionConflictError, WriteRefusedError
from shared.domain.job import Job, Redrive, Reference
from shared.domain.outcomes import Settlement, TransactWrite
from shared.domain.states import State, Write
from shared.names import ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SHARDS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The most keys that one BatchGetItem takes.
_BATCH_GET_LIMIT: Final = 100
#: How often a read that was throttled in part is continued, and the pause before, which doubles each time.
_BUSY_TRIES: Final = 6
_BUSY_PAUSE_SECONDS: Final = 0.05
#: Reasons of a cancelled transaction that are nobody's fault.
_CONTENTION: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})


class DynamoJobStore:
    """`JobStore` over one table. Terminal documents are kept for `retention`."""

    def __init__(self, client: "DynamoDBClient", *, table: str, retention: timedelta) -> None:
        self._client = client
        self._table = table
        self._retention = retention

    def insert_if_absent(self, job: Job) -> None:
        def mine(current: Job) -> bool:
            return (current.trace, current.created_at, current.body_hash) == (job.trace, job.created_at, job.body_hash)

        self._write(self._client.put_item, Write.INSERT, writes.insert(job), mine=mine)

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime) -> Job:
        request = writes.claim(reference, token=token, now=now, lease_end=lease_end)
        return self._update(Write.CLAIM, request, mine=lambda current: current.owner == token)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> None:
        request = writes.settle(job, settlement, now=now, retention=self._retention)
        if settlement.writes:
            self._transact(job, request, settlement.writes)
        else:
            self._update(Write.SETTLE, request, mine=lambda current: _settled_by(job, current))

    def release(self, job: Job, *, due: datetime) -> None:
        self._update(Write.RELEASE, writes.release(job, due=due), mine=lambda current: _settled_by(job, current))

    def nudge(self, job: Job, *, now: datetime, limit: timedelta) -> None:
        self._update(
            Write.NUDGE,
            writes.nudge(job, now=now, limit=limit),
            mine=lambda current: current.generation == job.generation and current.nudged_at == now,
        )

    def redrive(self, job: Job, *, token: str, now: datetime, by: str) -> Job:
        entry = Redrive(token=token, at=now, by=by, death=job.death)
        return self._update(
            Write.REDRIVE,
            writes.redrive(job, entry),
            mine=lambda current: bool(current.redrives) and current.redrives[-1].token == token,
        )

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

    def dead(self) -> Iterator[Job]:
        for shard in range(ATTENTION_SHARDS):
            for entries in self._attention_pages(writes.attention_partition(shard)):
                # The index lags behind its documents, so they are asked.
                jobs = self.get_many([split_key(entry) for entry in entries])
                dead = [job for job in jobs if job.state is State.DEAD]
                yield from sorted(dead, key=lambda job: (job.finished_at or job.created_at, job.id))

    def overdue(self, *, before: datetime) -> Iterator[Job]:
        pages = self._client.get_paginator("scan").paginate(
            TableName=self._table,
            ConsistentRead=True,
            # Terminal jobs have no `due`.
            FilterExpression="#due <= :before",
            ExpressionAttributeNames={"#due": "due"},
            ExpressionAttributeValues={":before": milliseconds(before)},
        )
        with translated():
            for page in pages:
                yield from map(decode, page["Items"])

    def _attention_pages(self, partition: str) -> Iterator[Sequence[Item]]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=ATTENTION_INDEX,
            KeyConditionExpression="#partition = :partition",
            ExpressionAttributeNames={"#partition": ATTENTION_KEY},
            ExpressionAttributeValues={":partition": {"S": partition}},
        )
        with translated():
            for page in pages:
                yield page["Items"]

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

    def _update(self, write: Write, request: writes.Request, *, mine: Callable[[Job], bool]) -> Job:
        answer = self._write(self._client.update_item, write, request | {"ReturnValues": "ALL_NEW"}, mine=mine)
        return decode(answer)

    def _write(
        self,
        call: Callable[..., Mapping[str, Any]],
        write: Write,
        request: writes.Request,
        *,
        mine: Callable[[Job], bool],
    ) -> Item:
        """Make the call. A refusal by a document that this very call made is the SDK's retry of its own success."""
        try:
            with translated():
                answer = call(TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request)
        except ClientError as error:
            response: Mapping[str, Any] = error.response
            if response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            item: Item | None = response.get("Item")
            if item and mine(decode(item)):
                return item
            raise WriteRefusedError(write, decode(item) if item else None) from None
        attributes: Item = answer.get("Attributes", {})
        return attributes

    def _transact(self, job: Job, request: writes.Request, effects: Sequence[TransactWrite]) -> None:
        """Settle and the handler's own writes, all or nothing. The owner token makes a repeat by the SDK harmless."""
        ours = request | {"TableName": self._table, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        entries: Sequence[Any] = [{"Update": ours}, *effects]
        try:
            with translated():
                self._client.transact_write_items(TransactItems=entries, ClientRequestToken=job.owner or "")
        except ClientError as error:
            refusal = _cancellation(error)
            if isinstance(refusal, WriteRefusedError) and refusal.current and _settled_by(job, refusal.current):
                return
            raise refusal from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # The client does not validate what it sends, so it trips over what it cannot encode.
            raise EffectRefusedError(f"the handler's writes are not valid: {error!r}") from error


def _settled_by(job: Job, current: Job) -> bool:
    """Whether the run that holds `job` has ended it, even if another has claimed it since."""
    return job.owner is not None and current.last_owner == job.owner


def _cancellation(error: ClientError) -> Exception:
    """What a cancelled transaction means, read reason by reason; the first reason is about our own document.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
    """
    response: Mapping[str, Any] = error.response
    if response["Error"]["Code"] != "TransactionCanceledException":
        # Not valid, no such table, not allowed: a settle without the handler's writes will tell of it.
        return EffectRefusedError(f"the handler's writes were refused: {error}")
    reasons = response["CancellationReasons"]
    own = reasons[0]
    if own["Code"] == "ConditionalCheckFailed":
        return WriteRefusedError(Write.SETTLE, decode(own["Item"]) if own.get("Item") else None)
    refused = [
        f"write {index}: {reason['Code']}: {reason.get('Message', '')}"
        for index, reason in enumerate(reasons)
        if reason["Code"] not in _CONTENTION | {"None"}
    ]
    if refused:
        return EffectRefusedError("; ".join(refused))
    return TransactionConflictError(str(error))
