"""The entries of the listing index: the jobs of one tenant within some times, in the order of these.

The index has a partition for each shard of a tenant, sorted by time. A listing merges the shards. The index lags behind
the documents.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import Item, translated
from tidemill.dynamodb.document import from_milliseconds, split_key
from tidemill.dynamodb.indexes import listing_partition, merged
from tidemill.names import LISTING_INDEX, LISTING_KEY, LISTING_SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: Entries per query.
_PAGE: Final = 100


class Position(Struct, frozen=True, order=True):
    """A position in the order of jobs. Without an id, the position before all jobs of that millisecond."""

    at: datetime
    id: str = ""


class ListingEntries(Struct, frozen=True, kw_only=True):
    """Reads the listing entries of one table."""

    client: "DynamoDBClient"
    table: str

    def between(
        self, oldest: datetime, newest: datetime, *, tenant: str, newest_first: bool = False
    ) -> Iterator[Position]:
        """Both times are included."""
        if newest < oldest:
            # DynamoDB refuses `BETWEEN` with its bounds in this order.
            return iter(())

        def of_shard(shard: int) -> Iterator[Position]:
            pages = self.client.get_paginator("query").paginate(
                TableName=self.table,
                IndexName=LISTING_INDEX,
                KeyConditionExpression="#partition = :partition AND #at BETWEEN :oldest AND :newest",
                ExpressionAttributeNames={"#partition": LISTING_KEY, "#at": LISTING_SORT_KEY},
                ExpressionAttributeValues={
                    ":partition": text(listing_partition(tenant, shard)),
                    ":oldest": milliseconds(oldest),
                    ":newest": milliseconds(newest),
                },
                ScanIndexForward=not newest_first,
                PaginationConfig={"PageSize": _PAGE},
            )
            with translated():
                entries = (_position(entry) for page in pages for entry in page["Items"])
                # DynamoDB does not define the order of entries of the same millisecond.
                for _, tied in groupby(entries, key=attrgetter("at")):
                    yield from sorted(tied, reverse=newest_first)

        return merged(of_shard, reverse=newest_first)


def _position(entry: Item) -> Position:
    return Position(from_milliseconds(entry[LISTING_SORT_KEY]), split_key(entry)[1])
