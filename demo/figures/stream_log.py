"""The writes of a table as its stream shows them: one record each, also in a transaction.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tidemill.local.lifecycle import App
from tidemill.names import JOB_KEY, Output

_PAGE: Final = 1_000


class StreamLog:
    """The records of the jobs table of an app, from the construction on."""

    def __init__(self, app: App) -> None:
        self._client = app.client("dynamodbstreams")
        table = app.client("dynamodb").describe_table(TableName=app.outputs[Output.JOBS_TABLE])["Table"]
        self._arn = table["LatestStreamArn"]
        (shard,) = self._client.describe_stream(StreamArn=self._arn)["StreamDescription"]["Shards"]
        self._iterator = self._client.get_shard_iterator(
            StreamArn=self._arn, ShardId=shard["ShardId"], ShardIteratorType="LATEST"
        )["ShardIterator"]

    def read(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The key of each item that was written since the last read, and the item as written; empty if deleted."""
        while True:
            answer = self._client.get_records(ShardIterator=self._iterator, Limit=_PAGE)
            self._iterator = answer["NextShardIterator"]
            if not answer["Records"]:
                return
            for record in answer["Records"]:
                images = record["dynamodb"]
                yield images["Keys"][JOB_KEY]["S"], images.get("NewImage", {})


def size(item: Mapping[str, Any]) -> int:
    """In bytes, nearly as DynamoDB counts them: names and values, with three bytes for each list or map."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "M":
        return 3 + sum(len(name.encode()) + 1 + _value_size(each) for name, each in content.items())
    if kind == "L":
        return 3 + sum(1 + _value_size(each) for each in content)
    if kind in {"SS", "NS"}:
        return sum(len(each.encode()) for each in content)
    if kind == "N":
        return len(content) // 2 + 2
    return len(content.encode()) if kind == "S" else 1
