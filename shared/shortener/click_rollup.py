"""Adds the counters of closed days to the totals of links, link by link. Every step may be repeated."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from shortener.click_table import RECORDS_KEPT, Clicks, Total, mark_partition, shard_key, total_key
from shortener.click_tally import condensed, summed
from shortener.names import CLICK_KEY, CLICK_SORT_KEY, TTL_ATTRIBUTE
from tidemill import TransactWrite
from tidemill.aws.attribute_values import number, seconds, text
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: A day is closed this long after its end. A worker chooses the day when it starts to count. Its write arrives within
#: 20 minutes: Lambda stops it after 15, and a signed request is valid for five more:
#: https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html
#: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_aws-signing.html
CLOSED_AFTER: Final = timedelta(hours=1)
#: How long a shard stays after it was added to its total, for a reader that has read the previous total.
SHARDS_KEPT: Final = timedelta(days=1)
#: Key of the item that holds the last day that the totals of all links include.
_PROGRESS: Final[Item] = {CLICK_KEY: text("!rollup"), CLICK_SORT_KEY: text("through")}


def last_closed_day(now: datetime) -> date:
    return (now.astimezone(UTC) - CLOSED_AFTER).date() - timedelta(days=1)


class Rollup:
    """Writes the totals of links, and records the last day that they include."""

    def __init__(self, client: "DynamoDBClient", clicks: Clicks, *, table: str) -> None:
        self._client = client
        self._clicks = clicks
        self._table = table

    def first_open_day(self, *, now: datetime) -> date:
        """The first day that the total of a link may lack. Before the first rollup, the oldest day that has marks."""
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=_PROGRESS, ConsistentRead=True)
        if "Item" in answer:
            return date.fromisoformat(answer["Item"]["day"]["S"]) + timedelta(days=1)
        return (now - RECORDS_KEPT).date()

    def progress_write(self, day: date) -> TransactWrite:
        """The write that records that all totals include `day`, for the transaction in which the job succeeds."""
        return {"Put": {"TableName": self._table, "Item": {**_PROGRESS, "day": text(str(day))}}}

    def codes_with_shard(self, day: date, shard: int, *, after: str | None) -> Iterator[str]:
        """Yield the codes of the links that have this shard of this day, in order, starting after the code `after`."""
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#marks = :marks AND #code > :after",
            ExpressionAttributeNames={"#marks": CLICK_KEY, "#code": CLICK_SORT_KEY},
            # A space sorts before the first code. A key must not be empty.
            ExpressionAttributeValues={":marks": text(mark_partition(day, shard)), ":after": text(after or " ")},
        )
        with translated():
            for page in pages:
                yield from (item[CLICK_SORT_KEY]["S"] for item in page["Items"])

    def add(self, code: str, *, through: date) -> None:
        """Add the shards of a link up to the day `through` to its total, in one write."""
        while (total := self._clicks.total(code)).through is None or total.through < through:
            shards = self._clicks.shards(code, after=total.through, through=through)
            self._put_total(code, total, Total(through, condensed(summed([total.counters, *shards]))))

    def expire_shard(self, code: str, day: date, shard: int, *, now: datetime) -> None:
        """Set the expiry of a shard that its total includes."""
        with translated():
            self._client.update_item(
                TableName=self._table,
                Key=shard_key(code, day, shard),
                UpdateExpression="SET #expires_at = :at",
                ExpressionAttributeNames={"#expires_at": TTL_ATTRIBUTE},
                ExpressionAttributeValues={":at": seconds(now + SHARDS_KEPT)},
            )

    def _put_total(self, code: str, read: Total, total: Total) -> None:
        """Write the total, unless another rollup has written it since `read` was read."""
        item = total_key(code) | {"through": text(str(total.through))}
        item |= {name: number(count) for name, count in total.counters.items()}
        request: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#through)"}
        if read.through:
            request["ConditionExpression"] = "#through = :read"
            request["ExpressionAttributeValues"] = {":read": text(str(read.through))}
        try:
            with translated():
                self._client.put_item(
                    TableName=self._table, Item=item, ExpressionAttributeNames={"#through": "through"}, **request
                )
        except ClientError as error:
            refusing_item(error)  # raises other errors
