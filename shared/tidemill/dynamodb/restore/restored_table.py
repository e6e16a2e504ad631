"""The items of a restored jobs table that a recovery reads and writes, beside the jobs themselves."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.ports import PayloadItem
from tidemill.application.restore.recover import Page, Recovery
from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.errors import ConfigurationConflictError
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb.document import from_milliseconds
from tidemill.dynamodb.groups.group_items import HEAD_PREFIX
from tidemill.dynamodb.passes.table_scan import found_in
from tidemill.names import JOB_KEY, STATE_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: No tenant begins with it, so no item key of a job does.
_KEY: Final = "!epoch"
#: The states of jobs that are not over. A dead job has a message in a dead-letter queue.
_RECOVERED: Final = [state for state in State if state not in TERMINAL or state is State.DEAD]


class DynamoRecoveryLog:
    """`RecoveryLog` in one item of the table. It has no state, so no stream record of it reaches publish."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def read(self) -> Recovery | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key={JOB_KEY: text(_KEY)}, ConsistentRead=True)
        return _decoded(answer["Item"]) if "Item" in answer else None

    def write(self, recovery: Recovery, *, seen: Recovery | None) -> None:
        item = {
            JOB_KEY: text(_KEY),
            "epoch": number(recovery.epoch),
            "table": text(recovery.table),
            "replaces": text(recovery.replaces),
            "began_at": milliseconds(recovery.began_at),
        }
        condition: dict[str, Any]
        if seen is None:
            # Two operators recover the table at once: the second one continues what the first one began.
            condition = {
                "ConditionExpression": "attribute_not_exists(#pk)",
                "ExpressionAttributeNames": {"#pk": JOB_KEY},
            }
        else:
            condition = {
                # The same holds for a table that was recovered before its backup was made.
                "ConditionExpression": "#epoch = :epoch AND #table = :table",
                "ExpressionAttributeNames": {"#epoch": "epoch", "#table": "table"},
                "ExpressionAttributeValues": {":epoch": number(seen.epoch), ":table": text(seen.table)},
            }
        try:
            with translated():
                self._client.put_item(
                    TableName=self._table, Item=item, ReturnValuesOnConditionCheckFailure="ALL_OLD", **condition
                )
        except ClientError as error:
            current = refusing_item(error)
            # The SDK's retry of its own success finds what it wrote.
            if not current or _decoded(current) != _decoded(item):
                raise ConfigurationConflictError("another operator recovers this table") from None


class RestoredPages:
    """Pages of a table with the jobs that are not over, the dead ones, and the heads of groups.

    Read eventually, which costs half: before the recovery nothing writes the table, and its writes are conditional.
    """

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def live(self, after: str | None) -> Page:
        values = {f":{state}": text(state) for state in _RECOVERED}
        return self._page(
            f"#state IN ({', '.join(values)}) OR begins_with(#pk, :group)",
            names={"#state": STATE_ATTRIBUTE, "#pk": JOB_KEY},
            values={**values, ":group": text(HEAD_PREFIX)},
            after=after,
        )

    def accepted_since(self, since: datetime, after: str | None) -> Page:
        return self._page(
            "attribute_exists(#state) AND #created_at >= :since",
            names={"#state": STATE_ATTRIBUTE, "#created_at": "created_at"},
            values={":since": milliseconds(since)},
            after=after,
        )

    def _page(self, wanted: str, *, names: dict[str, str], values: dict[str, Item], after: str | None) -> Page:
        start: Any = {} if after is None else {"ExclusiveStartKey": {JOB_KEY: text(after)}}
        with translated():
            answer = self._client.scan(
                TableName=self._table,
                ReturnConsumedCapacity="TOTAL",
                FilterExpression=wanted,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                **start,
            )
        last: Any = answer.get("LastEvaluatedKey")
        return Page(
            found=[each for item in answer["Items"] for each in found_in(item) if not isinstance(each, PayloadItem)],
            cursor=last[JOB_KEY]["S"] if last else None,
            read_units=answer["ConsumedCapacity"]["CapacityUnits"],
        )


def _decoded(item: Item) -> Recovery:
    return Recovery(
        epoch=int(item["epoch"]["N"]),
        table=item["table"]["S"],
        began_at=from_milliseconds(item["began_at"]),
        replaces=item["replaces"]["S"],
    )
