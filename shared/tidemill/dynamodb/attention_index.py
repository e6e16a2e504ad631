"""Reads the attention index: scheduled, dead and parked jobs, owed work, and lines of limits.

It lags behind the items, so a caller reads the item of an entry before it acts.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import translated
from tidemill.names import ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SORT_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def entry_pages(
    client: "DynamoDBClient",
    *,
    table: str,
    partition: str,
    since: datetime | None = None,
    before: datetime | None = None,
    size: int | None = None,
) -> Iterator[Sequence[Any]]:
    """The entries of a partition in the order of their time, from `since` to `before`, in pages of at most `size`.

    Without a size, a page holds up to a megabyte.
    """
    condition, names, values = "#partition = :partition", {"#partition": ATTENTION_KEY}, {":partition": text(partition)}
    bounds = {":since": since, ":before": before}
    # A key condition takes one comparison with the sort key:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.KeyConditionExpressions.html
    if since is not None and before is not None:
        condition += " AND #at BETWEEN :since AND :before"
    elif since is not None:
        condition += " AND #at >= :since"
    elif before is not None:
        condition += " AND #at <= :before"
    if any(bounds.values()):
        names["#at"] = ATTENTION_SORT_KEY
        values |= {name: milliseconds(at) for name, at in bounds.items() if at is not None}
    request: dict[str, Any] = {
        "TableName": table,
        "IndexName": ATTENTION_INDEX,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        **({"Limit": size} if size else {}),
    }
    with translated():
        # Without a paginator of botocore, which costs as much processor time as the answer of a small page.
        while True:
            page = client.query(**request)
            yield page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
