"""Scans the table page by page for overdue jobs, non-empty groups, and payload items."""

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemill.application.ports import Found, OpenGroup, PayloadItem, ScanPage, UnreadableItem
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.dynamodb.document import decode, key
from tidemill.dynamodb.groups.group_items import HEAD_PREFIX, head_key
from tidemill.dynamodb.groups.groups import DynamoGroups
from tidemill.dynamodb.payloads import payload_item
from tidemill.names import JOB_KEY, PAYLOAD_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoTableScan:
    """`TableScan` of one table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def page(self, segment: int, *, of: int, after: str | None, overdue_since: datetime) -> ScanPage:
        """The filter saves transfer and decoding, but DynamoDB reads and charges every item of the page, up to 1 MB.

        Read eventually, which costs half: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html
        """
        start: Any = {} if after is None else {"ExclusiveStartKey": {JOB_KEY: text(after)}}
        with translated():
            answer = self._client.scan(
                TableName=self._table,
                Segment=segment,
                TotalSegments=of,
                ReturnConsumedCapacity="TOTAL",
                # Waiting jobs, terminal jobs and items of other kinds have no `due`.
                FilterExpression="#due <= :since OR begins_with(#pk, :group) OR begins_with(#pk, :payload)",
                ExpressionAttributeNames={"#due": "due", "#pk": JOB_KEY},
                ExpressionAttributeValues={
                    ":since": milliseconds(overdue_since),
                    ":group": text(HEAD_PREFIX),
                    ":payload": text(PAYLOAD_PREFIX),
                },
                **start,
            )
        last: Any = answer.get("LastEvaluatedKey")
        return ScanPage(
            found=[found for item in answer["Items"] for found in found_in(item)],
            cursor=last[JOB_KEY]["S"] if last else None,
            items=answer["ScannedCount"],
            read_units=answer["ConsumedCapacity"]["CapacityUnits"],
        )

    @staticmethod
    def cursor_after(found: Found) -> str:
        match found:
            case Job():
                cursor: str = key(found.tenant, found.id)[JOB_KEY]["S"]
            case OpenGroup():
                cursor = head_key(found.tenant, found.group)[JOB_KEY]["S"]
            case PayloadItem():
                cursor = found.item_key
            case UnreadableItem():
                cursor = found.key
        return cursor

    def discard(self, payload: PayloadItem) -> None:
        with translated():
            self._client.delete_item(TableName=self._table, Key={JOB_KEY: text(payload.item_key)})


def found_in(item: Item) -> Iterator[Found]:
    """At most one. None for the head of a group without jobs."""
    name: str = item[JOB_KEY]["S"]
    try:
        if name.startswith(HEAD_PREFIX):
            for tenant, group in DynamoGroups.open([item]):
                yield OpenGroup(tenant, group)
        elif payload := payload_item(item):
            yield payload
        else:
            yield decode(item)
    except MalformedDocumentError as error:
        yield UnreadableItem(name, error)
    except (KeyError, TypeError, ValueError) as error:
        yield UnreadableItem(name, MalformedDocumentError(f"not an item of Tidemill: {error!r}"))
