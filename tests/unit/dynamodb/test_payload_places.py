"""Where a payload is stored, in which form, and from when on it counts as stored."""

import zlib
from datetime import datetime
from random import Random
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, a_job
from tidemill.aws.attribute_values import milliseconds
from tidemill.domain.errors import MalformedDocumentError
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads, payload_item

#: Hardly smaller when it is compressed.
NOISE = Random(1).randbytes(4_000).hex()
PACKED_BYTES = len(zlib.compress(NOISE.encode()))
LARGEST = 4_000


class Client:
    """A table, and a bucket."""

    def __init__(self) -> None:
        self.items: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}

    def put_item(self, **request: Any) -> None:
        self.items[request["Item"]["pk"]["S"]] = request["Item"]

    def get_item(self, **request: Any) -> Any:
        item = self.items.get(request["Key"]["pk"]["S"])
        return {"Item": item} if item else {}

    def delete_item(self, **request: Any) -> None:
        self.items.pop(request["Key"]["pk"]["S"], None)

    def put_object(self, **request: Any) -> None:
        assert (request["Bucket"], request["ContentType"]) == ("files", "application/json")
        self.files[request["Key"]] = request["Body"]


def payloads(client: Any, **changes: Any) -> DynamoPayloads:
    fields: dict[str, Any] = {"largest_item_bytes": LARGEST, "new_token": lambda: "1"} | changes
    return DynamoPayloads(client, table="jobs", bucket=lambda: Bucket(client, "files"), **fields)


@pytest.mark.parametrize(
    ("payload", "compresses", "largest", "kind"),
    [
        ("x" * LARGEST, False, LARGEST, "item"),
        ("x" * (LARGEST + 1), False, LARGEST, "file"),
        # An item has 200 bytes besides its payload, so this one takes a write unit in either form.
        ("x" * 824, True, LARGEST, "item"),
        ("x" * 825, True, LARGEST, "zlib"),
        ("x" * (LARGEST + 1), True, LARGEST, "zlib"),
        # It takes one write unit in either form, and a file otherwise.
        (NOISE[:801], True, 800, "zlib"),
        # It is too large for an item in either form.
        (NOISE, True, PACKED_BYTES - 1, "file"),
        (NOISE, True, PACKED_BYTES, "zlib"),
        (NOISE, True, len(NOISE), "zlib"),
        # Compressed, it would be larger.
        (NOISE[:500], True, 100, "file"),
    ],
)
def test_a_payload_is_compressed_where_that_saves_write_units_or_a_file(
    payload: str, compresses: bool, largest: int, kind: str
) -> None:
    client = Client()
    stored = payloads(client, largest_item_bytes=largest, compresses=compresses).put_away(a_job(payload=payload))

    assert stored.payload.text is None
    assert stored.payload.location == f"{kind}/1"
    assert (len(client.items), len(client.files)) == ((0, 1) if kind == "file" else (1, 0))
    if kind != "file":
        assert payloads(client).load(stored) == payload


@pytest.mark.parametrize(("now", "stored_at"), [(None, NOW), (NOW + SECOND, NOW + SECOND)])
@pytest.mark.parametrize("compresses", [True, False])
def test_an_item_says_since_when_it_is_stored(now: datetime | None, stored_at: datetime, *, compresses: bool) -> None:
    """A payload that belongs to no document is deleted some time after that."""
    client = Client()
    job = payloads(client, compresses=compresses).put_away(a_job(payload="x" * 2_000), now=now)

    (item,) = client.items.values()
    found = payload_item(item)

    assert item["stored_at"] == milliseconds(stored_at)
    assert found is not None
    assert (found.tenant, found.job_id, found.location) == (TENANT, job.id, job.payload.location)
    assert (found.stored_at, found.item_key) == (stored_at, item["pk"]["S"])


def test_another_item_holds_no_payload() -> None:
    assert payload_item({"pk": {"S": f"{TENANT}#a"}}) is None


@pytest.mark.parametrize("location", ["", "disk/1", "item"])
def test_an_invalid_location_is_reported(location: str) -> None:
    client: Any = Client()
    store = payloads(client)
    message = "is missing" if location == "item" else "has an invalid payload location"

    with pytest.raises(MalformedDocumentError, match=message):
        store.load(a_job(payload=None, payload_at=location))


def test_a_job_without_a_location_has_nothing_to_delete() -> None:
    client = Client()
    store = payloads(client)
    job = store.put_away(a_job(payload="x" * 2_000))

    store.delete(job.tenant, job.id, None)
    assert len(client.items) == 1
    store.delete(job.tenant, job.id, job.payload.location)
    assert client.items == {}
