"""Stores payloads that are too large for a document: in their own item, or in a file of the bucket.

A job's document is written three times, and its payload once. Each payload has its own location, which contains the id
of its job and a fresh token, and is stored before the document that names it. So no payload is ever overwritten, no two
submissions share a payload that one of them may delete, and a crash leaves only orphans.
"""

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from msgspec import Struct

from tidemill.application.ports import NewToken, PayloadItem
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.domain.job_parts import StoredPayload
from tidemill.domain.records import replace
from tidemill.dynamodb.document import encode, from_milliseconds
from tidemill.dynamodb.history_entries import WRITE_UNIT_BYTES, size_bytes
from tidemill.names import JOB_KEY, PAYLOAD_ITEM_BYTES, PAYLOAD_PREFIX, PAYLOADS_PREFIX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The largest payload in a document. It is stored apart earlier if the document would take a second write unit with it
#: and takes one without, because tags and a trace leave less room.
LARGEST_INLINE_BYTES: Final = 400
#: The growth of a document until the success of its first attempt, with the tenant once more: its index entry, the
#: facts and the history of its run, and a result of 100 bytes.
FIRST_RUN_BYTES: Final = 340
#: The largest payload in an item, unless the stage says otherwise.
LARGEST_ITEM_BYTES: Final = PAYLOAD_ITEM_BYTES

#: A document has this instead of a payload that is stored apart: `payload_at`, the kind, a slash and a token.
LOCATION_BYTES: Final = 47
#: About what such an item has besides: its key with tenant, job and location, and the time.
ITEM_KEY_BYTES: Final = 200

#: The error codes of S3 for a missing file. A caller without the right to list the bucket, such as every function of
#: Tidemill, gets the second one.
#: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
_NOT_THERE: Final = frozenset({"NoSuchKey", "AccessDenied"})


class Kind(StrEnum):
    """The prefix of a location."""

    ITEM = "item"
    #: An item whose payload is compressed.
    ZLIB = "zlib"
    FILE = "file"


class Bucket(Struct, frozen=True):
    """The bucket of the files. `client` is an S3 client."""

    client: Any
    name: str


class Place(Struct, frozen=True):
    """Where the payload of a job is. `location` is its kind and a token, as `Job.payload_at`."""

    tenant: str
    job_id: str
    location: str

    @property
    def kind(self) -> Kind:
        try:
            return Kind(self.location.partition("/")[0])
        except ValueError as error:
            message = f"job {self.job_id} has an invalid payload location: {self.location!r}"
            raise MalformedDocumentError(message) from error

    @property
    def item_key(self) -> Item:
        """Return a key of JSON, so that no part can contain the separator."""
        parts = [self.tenant, self.job_id, self.location]
        return {JOB_KEY: text(PAYLOAD_PREFIX + json.dumps(parts, separators=(",", ":")))}

    @property
    def path(self) -> str:
        """Only characters that need no escaping, and at most 800 of the 1,024 bytes of an S3 key.

        https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
        """
        tenant = base64.urlsafe_b64encode(self.tenant.encode()).decode().rstrip("=")
        return f"{PAYLOADS_PREFIX}{tenant}/{self.job_id}/{self.location.partition('/')[2]}"


class DynamoPayloads:
    """`Payloads` in the jobs table and a bucket. `bucket` is called when the first file is written or read.

    A payload is read where and as its location says, so `largest_item_bytes` and `compresses` may differ between
    writers, and may change. With `compresses`, the bytes of an item are the compressed ones.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        table: str,
        bucket: Callable[[], Bucket],
        new_token: NewToken,
        largest_item_bytes: int = LARGEST_ITEM_BYTES,
        compresses: bool = False,
    ) -> None:
        self._client = client
        self._table = table
        self._bucket = bucket
        self._new_token = new_token
        self._largest_item_bytes = largest_item_bytes
        self._compresses = compresses

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        if job.payload.text is None or self.stays_inline(job):
            return job
        kind, value = self._form(job.payload.text)
        place = Place(job.tenant, job.id, f"{kind}/{self._new_token()}")
        with translated():
            if kind is not Kind.FILE:
                stored_at = milliseconds(now or job.created_at)
                self._client.put_item(
                    TableName=self._table,
                    Item=place.item_key | {"payload": value, "stored_at": stored_at},
                )
            else:
                bucket = self._bucket()
                bucket.client.put_object(
                    Bucket=bucket.name,
                    Key=place.path,
                    Body=job.payload.text.encode("ascii"),
                    ContentType="application/json",
                )
        return replace(job, payload=StoredPayload(location=place.location))

    def stays_inline(self, job: Job) -> bool:
        if job.payload.text is None or len(job.payload.text) > LARGEST_INLINE_BYTES:
            return job.payload.text is None
        whole_bytes = size_bytes(encode(job)) + len(job.tenant) + FIRST_RUN_BYTES
        bytes_without = whole_bytes - len("payload") - len(job.payload.text) + LOCATION_BYTES
        return not bytes_without <= WRITE_UNIT_BYTES < whole_bytes

    def _form(self, payload: str) -> tuple[Kind, Item]:
        """The kind of its place, and the value of an item there. A payload is compressed if that saves write units."""
        if self._compresses:
            packed = zlib.compress(payload.encode("ascii"))
            saves = len(payload) > self._largest_item_bytes or _units(len(packed)) < _units(len(payload))
            if saves and len(packed) <= self._largest_item_bytes:
                return Kind.ZLIB, {"B": packed}
        return Kind.ITEM if len(payload) <= self._largest_item_bytes else Kind.FILE, text(payload)

    def load(self, job: Job) -> str:
        payload = (
            job.payload.text
            if job.payload.location is None
            else self._read(Place(job.tenant, job.id, job.payload.location))
        )
        if payload is None:
            raise MalformedDocumentError(f"the payload of job {job.id} is missing, or this function may not read it")
        return payload

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        if location is None:
            return
        place = Place(tenant, job_id, location)
        with translated():
            if place.kind is not Kind.FILE:
                self._client.delete_item(TableName=self._table, Key=place.item_key)
            else:
                bucket = self._bucket()
                bucket.client.delete_object(Bucket=bucket.name, Key=place.path)

    def _read(self, place: Place) -> str | None:
        with translated():
            if place.kind is not Kind.FILE:
                answer = self._client.get_item(TableName=self._table, Key=place.item_key, ConsistentRead=True)
                return _text_of(answer["Item"]["payload"], place.kind) if "Item" in answer else None
            bucket = self._bucket()
            try:
                # Read after write is consistent: https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html
                body: bytes = bucket.client.get_object(Bucket=bucket.name, Key=place.path)["Body"].read()
            except ClientError as error:
                if error.response["Error"]["Code"] in _NOT_THERE:
                    return None
                raise
            return body.decode("ascii")


def _text_of(value: Mapping[str, Any], kind: Kind) -> str:
    return zlib.decompress(value["B"]).decode("ascii") if kind is Kind.ZLIB else str(value["S"])


def _units(payload_bytes: int) -> int:
    """Write units of an item with so many bytes of payload."""
    return math.ceil((payload_bytes + ITEM_KEY_BYTES) / WRITE_UNIT_BYTES)


def payload_item(item: Item) -> PayloadItem | None:
    """None for an item of another kind."""
    item_key = item[JOB_KEY]["S"]
    if not item_key.startswith(PAYLOAD_PREFIX):
        return None
    tenant, job_id, location = json.loads(item_key.removeprefix(PAYLOAD_PREFIX))
    stored_at = from_milliseconds(item["stored_at"])
    return PayloadItem(tenant=tenant, job_id=job_id, location=location, stored_at=stored_at, item_key=item_key)
