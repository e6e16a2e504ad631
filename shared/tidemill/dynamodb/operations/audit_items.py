"""The audit log in the jobs table: one item for each command, in a partition of the attention index by its time."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.operations.audit import AuditEntry, Outcome
from tidemill.aws.attribute_values import milliseconds, seconds, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.time_constants import EPOCH, MILLISECOND
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.item_keys import prefixed_key
from tidemill.names import ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SORT_KEY, JOB_KEY, TTL_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: No tenant begins with it, so no item key of a job does.
_PREFIX: Final = "!audit#"
#: In the attention index. No state and no line has this name.
_PARTITION: Final = "audit"
#: The most keys of one BatchGetItem:
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_BATCH: Final = 100
_EVER: Final = EPOCH
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class DynamoAuditLog:
    """`AuditLog` over one table of jobs. The items have no state, so no stream record reaches publish.

    Entries expire after `retention`.
    """

    def __init__(self, client: "DynamoDBClient", *, table: str, retention: timedelta) -> None:
        self._client = client
        self._table = table
        self._retention = retention

    def begin(self, entry: AuditEntry) -> None:
        item = _key(entry) | {
            ATTENTION_KEY: text(_PARTITION),
            ATTENTION_SORT_KEY: milliseconds(entry.began_at),
            TTL_ATTRIBUTE: seconds(entry.began_at + self._retention),
            "command": text(entry.command),
            "by": text(entry.by),
            "reason": text(entry.reason),
            "options": text(json.dumps(entry.options)),
        }
        self._unless_refused(
            self._client.put_item,
            Item=item,
            # A late copy of this request, which the SDK sent again, must not remove the end of the entry.
            ConditionExpression="attribute_not_exists(#pk)",
            ExpressionAttributeNames={"#pk": JOB_KEY},
        )

    def end(self, entry: AuditEntry, *, at: datetime, outcome: Outcome, counts: Mapping[str, int]) -> None:
        self._unless_refused(
            self._client.update_item,
            Key=_key(entry),
            UpdateExpression="SET #ended_at = :ended_at, #outcome = :outcome, #counts = :counts",
            # The entry has expired and been deleted meanwhile: an end alone would never expire.
            ConditionExpression="attribute_exists(#pk)",
            ExpressionAttributeNames={
                "#pk": JOB_KEY,
                "#ended_at": "ended_at",
                "#outcome": "outcome",
                "#counts": "counts",
            },
            ExpressionAttributeValues={
                ":ended_at": milliseconds(at),
                ":outcome": text(outcome),
                ":counts": text(json.dumps(counts)),
            },
        )

    def entries(self, *, since: datetime | None = None, before: datetime | None = None) -> Iterator[AuditEntry]:
        bounds = {
            # Without a bound, of any time that an item can have.
            ":since": milliseconds(since or _EVER),
            ":last": milliseconds(before - MILLISECOND if before else _NEVER),
        }
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=ATTENTION_INDEX,
            KeyConditionExpression="#partition = :partition AND #at BETWEEN :since AND :last",
            ExpressionAttributeNames={"#partition": ATTENTION_KEY, "#at": ATTENTION_SORT_KEY},
            ExpressionAttributeValues={":partition": text(_PARTITION), **bounds},
            ScanIndexForward=False,
            PaginationConfig={"PageSize": _BATCH},
        )
        with translated():
            for page in pages:
                yield from self._read([{JOB_KEY: entry[JOB_KEY]} for entry in page["Items"]])

    def _read(self, keys: Any) -> Sequence[AuditEntry]:
        found: list[AuditEntry] = []
        while keys:
            answer: Any = self._client.batch_get_item(
                RequestItems={self._table: {"Keys": keys, "ConsistentRead": True}}
            )
            found += map(_decoded, answer["Responses"].get(self._table, []))
            keys = answer["UnprocessedKeys"].get(self._table, {}).get("Keys", [])
        return sorted(found, key=lambda entry: (entry.began_at, entry.id), reverse=True)

    def _unless_refused(self, call: Any, **request: Any) -> None:
        try:
            with translated():
                call(TableName=self._table, **request)
        except ClientError as error:
            refusing_item(error)  # raises any other error


def _key(entry: AuditEntry) -> Item:
    return prefixed_key(_PREFIX, entry.id)


def _decoded(item: Item) -> AuditEntry:
    (entry_id,) = json.loads(item[JOB_KEY]["S"].removeprefix(_PREFIX))
    return AuditEntry(
        id=entry_id,
        command=item["command"]["S"],
        began_at=from_milliseconds(item[ATTENTION_SORT_KEY]),
        by=item["by"]["S"],
        reason=item["reason"]["S"],
        options=json.loads(item["options"]["S"]),
        ended_at=from_milliseconds(item["ended_at"]) if "ended_at" in item else None,
        outcome=Outcome(item["outcome"]["S"]) if "outcome" in item else None,
        counts=json.loads(item["counts"]["S"]) if "counts" in item else {},
    )
