"""The backends that real clients use: moto, or the emulator over HTTP."""

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from tests.simulation.conformance import scripted_function
from tests.simulation.conformance.case import BUCKET, DLQ, INDEX, MOST_RECEIVES, QUEUE, TABLE, Aws, Value
from tests.support.job_tables import REGION, client
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.wait import wait_until

_FUNCTION: Final = "scripted-function"


class Served(Aws):
    """`endpoint` is None for moto."""

    def __init__(self, endpoint: str | None) -> None:
        self._endpoint = endpoint
        self.dynamodb, self.sqs, self.s3 = self._client("dynamodb"), self._client("sqs"), self._client("s3")
        self._mapping = ""

    @classmethod
    @contextmanager
    def at(cls, endpoint: str | None) -> Iterator[Self]:
        """With an empty table and empty queues, which are deleted afterwards."""
        served = cls(endpoint)
        served._create()
        try:
            yield served
        finally:
            served._delete()

    def eventually(self, ask: Callable[[], Value]) -> Value:
        return wait_until(ask, PATIENCE_SECONDS, "the answer")

    def records(self) -> list[Any]:
        streams = self._client("dynamodbstreams")
        arn = streams.list_streams(TableName=TABLE)["Streams"][0]["StreamArn"]
        found: list[Any] = []
        for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
            first = streams.get_shard_iterator(
                StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )
            found += streams.get_records(ShardIterator=first["ShardIterator"])["Records"]
        return found

    def lane(self) -> None:
        self.sqs.set_queue_attributes(
            QueueUrl=self.queue_url, Attributes={"VisibilityTimeout": "2"} | self._redriven_after(1)
        )
        lambda_ = self._client("lambda")
        script = Path(scripted_function.__file__)
        lambda_.create_function(
            FunctionName=_FUNCTION,
            Runtime="python3.13",
            Role="arn:aws:iam::000000000000:role/scripted-function",
            Handler=f"{script.stem}.handle",
            Code={"ZipFile": _zipped(script)},
        )
        # A cold start may take longer than the messages are hidden.
        lambda_.invoke(FunctionName=_FUNCTION, Payload=json.dumps({"Records": []}))
        self._mapping = lambda_.create_event_source_mapping(
            FunctionName=_FUNCTION,
            EventSourceArn=self._arn(self.queue_url),
            BatchSize=10,
            FunctionResponseTypes=["ReportBatchItemFailures"],
        )["UUID"]

    def _create(self) -> None:
        self.dynamodb.create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "colour", "AttributeType": "S"},
                {"AttributeName": "size", "AttributeType": "N"},
            ],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": INDEX,
                    "KeySchema": [
                        {"AttributeName": "colour", "KeyType": "HASH"},
                        {"AttributeName": "size", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        self.dlq_url = self.sqs.create_queue(QueueName=DLQ)["QueueUrl"]
        redriven = self._redriven_after(MOST_RECEIVES)
        self.queue_url = self.sqs.create_queue(QueueName=QUEUE, Attributes=redriven)["QueueUrl"]
        self.s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})

    def _delete(self) -> None:
        if self._mapping:
            self._client("lambda").delete_event_source_mapping(UUID=self._mapping)
            self._client("lambda").delete_function(FunctionName=_FUNCTION)
        self.dynamodb.delete_table(TableName=TABLE)
        for url in (self.queue_url, self.dlq_url):
            self.sqs.delete_queue(QueueUrl=url)
        for held in self.s3.list_objects_v2(Bucket=BUCKET).get("Contents", []):
            self.s3.delete_object(Bucket=BUCKET, Key=held["Key"])
        self.s3.delete_bucket(Bucket=BUCKET)

    def _redriven_after(self, receives: int) -> dict[str, str]:
        policy = {"deadLetterTargetArn": self._arn(self.dlq_url), "maxReceiveCount": receives}
        return {"RedrivePolicy": json.dumps(policy)}

    def _arn(self, url: str) -> str:
        asked = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        return str(asked["Attributes"]["QueueArn"])

    def _client(self, service: str) -> Any:
        return client(service, self._endpoint)


def _zipped(path: Path) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.write(path, path.name)
    return written.getvalue()
