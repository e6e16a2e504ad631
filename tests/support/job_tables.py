"""Jobs tables and SDK clients on moto or on the emulator."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import boto3
from moto import mock_aws

from tidemill.aws import clients
from tidemill.aws.clients import Item
from tidemill.domain.job import Job
from tidemill.dynamodb.document import encode, key
from tidemill.names import (
    ATTENTION_INDEX,
    ATTENTION_KEY,
    ATTENTION_SORT_KEY,
    JOB_KEY,
    LISTING_INDEX,
    LISTING_KEY,
    LISTING_SORT_KEY,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REGION: Final = "eu-west-1"
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Table:
    """The jobs table of one test, with reads and writes that no store offers."""

    client: "DynamoDBClient"
    name: str

    def item(self, job: Job) -> Item | None:
        """The item of the job as it is stored."""
        found = self.client.get_item(TableName=self.name, Key=key(job.tenant, job.id), ConsistentRead=True)
        item: Item | None = found.get("Item")
        return item

    def put(self, job: Job, **attributes: Item) -> None:
        """Write the document without any condition."""
        self.client.put_item(TableName=self.name, Item=encode(job) | attributes)


@cache
def client(service: str, endpoint: str | None = None) -> Any:
    """An SDK client, made once: making one takes longer than most tests. While moto is on, it answers the calls."""
    return boto3.client(
        service,  # type: ignore[call-overload]  # whichever
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=clients.CONFIG,
    )


def create_table(dynamodb: "DynamoDBClient") -> Table:
    """Create a table with the schema of `tidemill.cdk.storage.job_table`."""
    name = f"jobs-{next(_numbers)}"
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": JOB_KEY, "AttributeType": "S"},
            {"AttributeName": ATTENTION_KEY, "AttributeType": "S"},
            {"AttributeName": ATTENTION_SORT_KEY, "AttributeType": "N"},
            {"AttributeName": LISTING_KEY, "AttributeType": "S"},
            {"AttributeName": LISTING_SORT_KEY, "AttributeType": "N"},
        ],
        KeySchema=[{"AttributeName": JOB_KEY, "KeyType": "HASH"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": partition, "KeyType": "HASH"},
                    {"AttributeName": sort, "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for index, partition, sort in (
                (ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SORT_KEY),
                (LISTING_INDEX, LISTING_KEY, LISTING_SORT_KEY),
            )
        ],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    return Table(dynamodb, name)


@contextmanager
def table_on_moto() -> Iterator[Table]:
    with mock_aws():
        yield create_table(client("dynamodb"))
