"""The owed work of publish, in the jobs table: an item for each work, found through the attention index."""

import heapq
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from botocore.exceptions import ClientError

from tidemill.application.dispatch.owed import Kind, Owed, Work
from tidemill.application.ports import WHOLE, Part
from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.dynamodb.attention_index import entry_pages
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.item_keys import prefixed_key
from tidemill.dynamodb.update_requests import update
from tidemill.names import ATTENTION_KEY, ATTENTION_SORT_KEY, JOB_KEY, OWED_PREFIX
from tidemill.system import ids

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The kind of these items in the attention index, sorted there by the time of the next try.
_ATTENTION_KIND: Final = "owed"
#: The partitions of owed work, which is rare: publish writes it only for work that failed.
_SHARDS: Final = 4


class DynamoOwedWork:
    """`OwedWork` in one table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def owe(self, work: Work, *, now: datetime, error: str) -> None:
        """Without a condition: it may be repeated, and all callers owe the same work.

        The fresh version keeps a caller that began before from deleting the item. So does the number of failures: if
        the SDK sends this call again after that of another caller, it restores a version that may have been read.
        """
        key = owed_key(work)
        attributes = {
            "since": milliseconds(now),
            "tries": number(0),
            ATTENTION_KEY: text(_partition(crc32(key[JOB_KEY]["S"].encode()) % _SHARDS)),
            ATTENTION_SORT_KEY: milliseconds(now),
        }
        # The first failure, and the pause after failed tries, stay.
        kept = ", ".join(f"#{name} = if_not_exists(#{name}, :{name})" for name in attributes)
        with translated():
            self._client.update_item(
                TableName=self._table,
                Key=key,
                UpdateExpression=(
                    f"SET {kept}, #version = :version, #error = :error REMOVE #resent ADD #failures :one"
                ),
                ExpressionAttributeNames={
                    f"#{name}": name for name in (*attributes, "version", "failures", "error", "resent")
                },
                ExpressionAttributeValues={f":{name}": value for name, value in attributes.items()}
                | {":version": text(ids.new_token()), ":error": text(error), ":one": number(1)},
            )

    def pending(self, *, before: datetime, part: Part = WHOLE) -> Iterator[Owed]:
        """The earliest first, so that no shard waits for the end of another.

        The index lags behind the items, so read each item. With more parts than shards, some parts are empty.
        """

        def entries(shard: int) -> Iterator[Any]:
            pages = entry_pages(self._client, table=self._table, partition=_partition(shard), before=before)
            return chain.from_iterable(pages)

        shards = range(_SHARDS)[part.number :: part.count]
        for entry in heapq.merge(*map(entries, shards), key=lambda entry: int(entry[ATTENTION_SORT_KEY]["N"])):
            if (owed := self._read(entry[JOB_KEY])) and owed.next_try <= before:
                yield owed

    def find(self, work: Work) -> Owed | None:
        return self._read(owed_key(work)[JOB_KEY])

    def put_off(self, owed: Owed, *, until: datetime, error: str | None) -> None:
        said = {"resent": {"BOOL": True}} if error is None else {"error": text(error)}
        request = update(
            owed_key(owed.work),
            sets={
                "tries": number(owed.tries + 1),
                "version": text(ids.new_token()),
                ATTENTION_SORT_KEY: milliseconds(until),
                **said,
            },
            conditions=[
                # Since it was read, publish failed once more, or another caller tried it, put it off or deleted it.
                "#version = :read",
                # Since it was read, publish failed once more, and an older call has restored the version.
                "#failures = :failures",
            ],
            names=["version", "failures"],
            values={":read": text(owed.version), ":failures": number(owed.failures)},
        )
        self._unless_changed(self._client.update_item, request)

    def done(self, owed: Owed) -> None:
        self._unless_changed(
            self._client.delete_item,
            {
                "Key": owed_key(owed.work),
                # Since it was read, publish failed once more: what was done may not include it.
                # And an older call has restored the version.
                "ConditionExpression": "#version = :read AND #failures = :failures",
                "ExpressionAttributeNames": {"#version": "version", "#failures": "failures"},
                "ExpressionAttributeValues": {":read": text(owed.version), ":failures": number(owed.failures)},
            },
        )

    def _unless_changed(self, call: Any, request: dict[str, Any]) -> None:
        try:
            with translated():
                call(TableName=self._table, **request)
        except ClientError as error:
            refusing_item(error)  # raises other errors

    def _read(self, key: Any) -> Owed | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key={JOB_KEY: key}, ConsistentRead=True)
        try:
            return _decoded(answer["Item"]) if "Item" in answer else None
        except (KeyError, ValueError):
            # A newer version wrote it, and does it.
            return None


def owed_partitions() -> list[str]:
    """The partitions of the attention index that hold owed work."""
    return [_partition(shard) for shard in range(_SHARDS)]


def _partition(shard: int) -> str:
    return f"{_ATTENTION_KIND}#{shard}"


def owed_key(work: Work) -> Item:
    location = [] if work.payload_at is None else [work.payload_at]
    return prefixed_key(OWED_PREFIX, work.kind, work.tenant, work.name, *location)


def _decoded(item: Item) -> Owed:
    kind, tenant, name, *location = json.loads(item[JOB_KEY]["S"].removeprefix(OWED_PREFIX))
    return Owed(
        work=Work(kind=Kind(kind), tenant=tenant, name=name, payload_at=location[0] if location else None),
        since=from_milliseconds(item["since"]),
        next_try=from_milliseconds(item[ATTENTION_SORT_KEY]),
        tries=int(item["tries"]["N"]),
        error=item["error"]["S"],
        resent="resent" in item,
        version=item["version"]["S"],
        failures=int(item["failures"]["N"]),
    )
