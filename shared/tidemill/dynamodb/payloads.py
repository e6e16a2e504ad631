"""Stores payloads that are too large for a document: in their own item, or in a file of the bucket.

A job's document is written three times, and its payload once. Each payload has its own location, which contains the id
of its job and a fresh token, and is stored before the document that names it. So no payload is ever overwritten, no two
submissions share a payload that one of them may delete, and a crash leaves only orphans.
"""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.ports import NewToken, PayloadItem
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.dynamodb.document import from_milliseconds
from tidemill.names import JOB_KEY, PAYLOAD_PREFIX, PAYLOADS_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The largest payload in a document. A running document has about 500 bytes besides, and a write is charged per
#: kilobyte of the whole item. So this leaves 100 bytes for a result or an error before each write costs twice.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
LARGEST_INLINE_BYTES: Final = 400
#: The largest payload in an item. A file is slower than an item to write and to read, but costs the same at any size.
#: An item of this size costs 64 writes, and 64 more when it is deleted.
LARGEST_ITEM_BYTES: Final = 64 * 1024

#: The error codes of S3 for a missing file. A caller without the right to list the bucket, such as every function of
#: Tidemill, gets the second one.
#: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
_NOT_THERE: Final = frozenset({"NoSuchKey", "AccessDenied"})


class Kind(StrEnum):
    """The prefix of a location."""

    ITEM = "item"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket of the files. `client` is an S3 client."""

    client: Any
    name: str


class DynamoPayloads:
    """`Payloads` in the jobs table and a bucket. `bucket` is called when the first file is written or read."""

    def __init__(
        self, client: "DynamoDBClient", *, table: str, bucket: Callable[[], Bucket], new_token: NewToken
    ) -> None:
        self._client = client
        self._table = table
        self._bucket = bucket
        self._new_token = new_token

    def put_away(self, job: Job) -> Job:
        if job.payload is None or len(job.payload) <= LARGEST_INLINE_BYTES:
            return job
        kind = Kind.ITEM if len(job.payload) <= LARGEST_ITEM_BYTES else Kind.FILE
        stored = replace(job, payload=None, payload_at=f"{kind}/{self._new_token()}")
        with translated():
            if kind is Kind.ITEM:
                self._client.put_item(
                    TableName=self._table,
                    Item=_item_key(stored) | {"payload": text(job.payload), "stored_at": milliseconds(job.created_at)},
                )
            else:
                bucket = self._bucket()
                bucket.client.put_object(
                    Bucket=bucket.name,
                    Key=_path(stored),
                    Body=job.payload.encode("ascii"),
                    ContentType="application/json",
                )
        return stored

    def load(self, job: Job) -> str:
        payload = job.payload if job.payload_at is None else self._read(job)
        if payload is None:
            raise MalformedDocumentError(f"the payload of job {job.id} is missing, or this function may not read it")
        return payload

    def delete(self, job: Job) -> None:
        if job.payload_at is None:
            return
        with translated():
            if _kind(job) is Kind.ITEM:
                self._client.delete_item(TableName=self._table, Key=_item_key(job))
            else:
                bucket = self._bucket()
                bucket.client.delete_object(Bucket=bucket.name, Key=_path(job))

    def _read(self, job: Job) -> str | None:
        with translated():
            if _kind(job) is Kind.ITEM:
                answer = self._client.get_item(TableName=self._table, Key=_item_key(job), ConsistentRead=True)
                return answer["Item"]["payload"]["S"] if "Item" in answer else None
            bucket = self._bucket()
            try:
                # Read after write is consistent: https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html
                body: bytes = bucket.client.get_object(Bucket=bucket.name, Key=_path(job))["Body"].read()
            except ClientError as error:
                if error.response["Error"]["Code"] in _NOT_THERE:
                    return None
                raise
            return body.decode("ascii")


def payload_item(item: Item) -> PayloadItem | None:
    """None for an item of another kind."""
    item_key = item[JOB_KEY]["S"]
    if not item_key.startswith(PAYLOAD_PREFIX):
        return None
    tenant, job_id, location = json.loads(item_key.removeprefix(PAYLOAD_PREFIX))
    stored_at = from_milliseconds(item["stored_at"])
    return PayloadItem(tenant=tenant, job_id=job_id, location=location, stored_at=stored_at, item_key=item_key)


def _kind(job: Job) -> Kind:
    location = job.payload_at or ""
    try:
        return Kind(location.partition("/")[0])
    except ValueError as error:
        raise MalformedDocumentError(f"job {job.id} has an invalid payload location: {location!r}") from error


def _item_key(job: Job) -> Item:
    """As JSON, so that no part can contain the separator."""
    parts = [job.tenant, job.id, job.payload_at]
    return {JOB_KEY: text(PAYLOAD_PREFIX + json.dumps(parts, separators=(",", ":")))}


def _path(job: Job) -> str:
    """Only characters that need no escaping, and at most 800 of the 1,024 bytes of an S3 key.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
    """
    tenant = base64.urlsafe_b64encode(job.tenant.encode()).decode().rstrip("=")
    token = (job.payload_at or "").partition("/")[2]
    return f"{PAYLOADS_PREFIX}{tenant}/{job.id}/{token}"
