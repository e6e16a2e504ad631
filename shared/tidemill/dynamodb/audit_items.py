"""The audit log in the jobs table: one item for each command, in a partition of the attention index by its time."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.audit import AuditEntry, Outcome
from tidemill.aws.attribute_values import milliseconds, seconds, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.conditional_writes import refusing_item
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
MOST_ENTRIES: Final = 100


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

    def end(self, entry: AuditEntry) -> None:
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
                ":ended_at": milliseconds(entry.ended_at or entry.began_at),
                ":outcome": text(entry.outcome or Outcome.FAILED),
                ":counts": text(json.dumps(entry.counts)),
            },
        )

    def entries(self, *, most: int) -> Sequence[AuditEntry]:
        with translated():
            page: Any = self._client.query(
                TableName=self._table,
                IndexName=ATTENTION_INDEX,
                KeyConditionExpression="#partition = :partition",
                ExpressionAttributeNames={"#partition": ATTENTION_KEY},
                ExpressionAttributeValues={":partition": text(_PARTITION)},
                ScanIndexForward=False,
                Limit=min(most, MOST_ENTRIES),
            )
        keys: Any = [{JOB_KEY: entry[JOB_KEY]} for entry in page["Items"]]
        found: list[AuditEntry] = []
        while keys:
            with translated():
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
