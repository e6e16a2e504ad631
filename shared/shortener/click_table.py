"""The clicks table: a record for each click, counters for each link and day, and a total for each link.

The counters of a day are spread over shards. A shard is one item with one number for each counter (`clicks`,
`country:DE`, `browser:Firefox`). The counters are top-level attributes, so ADD creates a missing one; a map would have
to exist first. A rollup adds shards to the total, which names the last day that it includes. Statistics are the total
plus the shards of later days. One item thus decides where a click is counted, and the sum is exact at every moment.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from shortener.click_tally import Tally, summed
from shortener.names import CLICK_KEY, CLICK_SORT_KEY, TTL_ATTRIBUTE
from tidemill.aws.attribute_values import text
from tidemill.aws.clients import Item, translated

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Two transactions on one item conflict, and a worker settles a batch at once, so a popular link needs several.
SHARDS: Final = 16
#: How long the record of a click is kept. Counters stay.
RECORDS_KEPT: Final = timedelta(days=90)

RECORD: Final = "click#"
_COUNTERS: Final = "count#"
_TOTAL: Final = "total"
#: Sorts after every text that follows a `#` in a sort key of this table.
LAST: Final = "~"


@dataclass(frozen=True, slots=True)
class Total:
    """The counters of a link up to and including the day `through`; `None` before the first rollup."""

    through: date | None = None
    counters: Mapping[str, int] = field(default_factory=dict)


class Clicks:
    """Reads and writes the clicks table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self.table = table

    def tally(self, code: str) -> Tally:
        """The total of a link plus its later shards. Consistent reads include every click whose job has succeeded.

        Reads the total first. A rollup in between does no harm: a shard stays for a day after it was added.
        """
        total = self.total(code)
        return summed([total.counters, *self.shards(code, after=total.through)])

    def total(self, code: str) -> Total:
        with translated():
            answer = self._client.get_item(TableName=self.table, Key=total_key(code), ConsistentRead=True)
        if "Item" not in answer:
            return Total()
        item = answer["Item"]
        return Total(through=date.fromisoformat(item["through"]["S"]), counters=_numbers(item))

    def shards(self, code: str, *, after: date | None, through: date | None = None) -> Iterator[Mapping[str, int]]:
        """Yield the shards of a link for the days after `after` and up to `through`."""
        first = f"{_COUNTERS}{after}#{LAST}" if after else _COUNTERS
        last = f"{_COUNTERS}{through}#{LAST}" if through else f"{_COUNTERS}{LAST}"
        pages = self._client.get_paginator("query").paginate(
            TableName=self.table,
            KeyConditionExpression="#link = :link AND #sort BETWEEN :first AND :last",
            ExpressionAttributeNames={"#link": CLICK_KEY, "#sort": CLICK_SORT_KEY},
            ExpressionAttributeValues={":link": text(code), ":first": text(first), ":last": text(last)},
            ConsistentRead=True,
        )
        with translated():
            for page in pages:
                yield from map(_numbers, page["Items"])

    def shard(self, key: Item) -> Mapping[str, int]:
        """The counters of a shard. Eventually consistent: one name too many or a mark that exists does no harm."""
        with translated():
            answer = self._client.get_item(TableName=self.table, Key=key)
        return _numbers(answer.get("Item", {}))


def shard_of(job_id: str) -> int:
    return crc32(job_id.encode()) % SHARDS


def shard_key(code: str, day: date, shard: int) -> Item:
    return table_key(code, f"{_COUNTERS}{day}#{shard:02d}")


def total_key(code: str) -> Item:
    return table_key(code, _TOTAL)


def mark_key(code: str, day: date, shard: int) -> Item:
    """Key of the item that marks a link as having this shard. A code cannot start with `!`, as these partitions do."""
    return table_key(mark_partition(day, shard), code)


def mark_partition(day: date, shard: int) -> str:
    return f"!counted#{day}#{shard:02d}"


def table_key(partition: str, sort: str) -> Item:
    return {CLICK_KEY: text(partition), CLICK_SORT_KEY: text(sort)}


def _numbers(item: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(value["N"]) for name, value in item.items() if "N" in value and name != TTL_ATTRIBUTE}
