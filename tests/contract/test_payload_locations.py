"""Where payloads go by their size, and how they are read and deleted there."""

import json
from secrets import token_hex
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import (
    NOW,
    TENANT,
    a_job,
    fresh_token,
    with_changes,
)
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tests.support.payload_bucket import PayloadBucket, payload_of
from tidemill.domain.errors import (
    MalformedDocumentError,
    MissingResourceError,
)
from tidemill.dynamodb.document import key
from tidemill.dynamodb.payloads import (
    LARGEST_INLINE_BYTES,
    LARGEST_ITEM_BYTES,
    Bucket,
    DynamoPayloads,
    payload_item,
)
from tidemill.names import JOB_KEY, LARGEST_BODY_BYTES, PAYLOADS_PREFIX


def _no_bucket() -> Bucket:
    raise AssertionError("no bucket was needed")


@pytest.mark.parametrize("size_bytes", [2, LARGEST_INLINE_BYTES])
def test_a_small_payload_stays_in_its_document(client: FaultyClient, table: Table, size_bytes: int) -> None:
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    job = a_job(payload=payload_of(size_bytes) if size_bytes > 2 else "{}")

    assert payloads.put_away(job) == job
    assert payloads.load(job) == job.payload.text
    payloads.delete(job.tenant, job.id, job.payload.location)


@pytest.mark.parametrize("size_bytes", [LARGEST_INLINE_BYTES + 1, LARGEST_ITEM_BYTES])
def test_a_larger_payload_has_an_item_of_its_own_and_needs_no_bucket(
    client: FaultyClient, table: Table, size_bytes: int
) -> None:
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    job = a_job(payload=payload_of(size_bytes))

    apart = payloads.put_away(job)

    assert apart == with_changes(job, payload=None, payload_at=apart.payload.location)
    assert payloads.load(apart) == job.payload.text
    (item,) = table.client.scan(TableName=table.name)["Items"]
    assert set(item) == {JOB_KEY, "payload", "stored_at"}
    owner = payload_item(item)
    assert owner is not None
    assert (owner.tenant, owner.job_id, owner.location, owner.stored_at) == (
        TENANT,
        job.id,
        apart.payload.location,
        NOW,
    )
    payloads.delete(apart.tenant, apart.id, apart.payload.location)
    payloads.delete(apart.tenant, apart.id, apart.payload.location)
    assert table.client.scan(TableName=table.name)["Items"] == []


@pytest.mark.parametrize("size_bytes", [LARGEST_ITEM_BYTES + 1, LARGEST_BODY_BYTES])
def test_the_largest_payloads_are_files_in_the_bucket(
    payloads: DynamoPayloads, table: Table, payload_bucket: PayloadBucket, size_bytes: int
) -> None:
    job = a_job(payload=payload_of(size_bytes), tenant="x" * 512)

    apart = payloads.put_away(job)

    assert apart.payload.text is None
    assert payloads.load(apart) == job.payload.text
    (path,) = payload_bucket.keys()
    assert path.startswith(PAYLOADS_PREFIX)
    assert len(path) < 1024
    assert table.client.scan(TableName=table.name)["Items"] == []
    payloads.delete(apart.tenant, apart.id, apart.payload.location)
    payloads.delete(apart.tenant, apart.id, apart.payload.location)
    assert payload_bucket.keys() == []


def test_a_stage_that_prefers_files_still_reads_and_deletes_the_items_of_before(
    payloads: DynamoPayloads, client: FaultyClient, table: Table, payload_bucket: PayloadBucket
) -> None:
    """And the other way round: a job says where its payload is, so the setting needs no migration."""
    frugal = DynamoPayloads(
        client,  # type: ignore[arg-type]  # a proxy
        table=table.name,
        bucket=lambda: Bucket(payload_bucket.client, payload_bucket.name),
        new_token=fresh_token,
        largest_item_bytes=1024,
    )
    job = a_job(payload=payload_of(1025))

    before, after = payloads.put_away(job), frugal.put_away(job)

    assert len(payload_bucket.keys()) == 1
    assert len(table.client.scan(TableName=table.name)["Items"]) == 1
    assert frugal.put_away(a_job(payload=payload_of(1024))).payload.location is not None
    assert len(payload_bucket.keys()) == 1
    for reader, other in ((frugal, before), (payloads, after)):
        assert reader.load(other) == job.payload.text
        reader.delete(other.tenant, other.id, other.payload.location)
    assert payload_bucket.keys() == []


def _compressing(client: FaultyClient, table: Table, **changes: Any) -> DynamoPayloads:
    return DynamoPayloads(
        client,  # type: ignore[arg-type]  # a proxy
        table=table.name,
        bucket=_no_bucket,
        new_token=fresh_token,
        compresses=True,
        **changes,
    )


@pytest.mark.parametrize("size_bytes", [2_000, LARGEST_ITEM_BYTES, LARGEST_BODY_BYTES])
def test_a_stage_that_compresses_stores_fewer_bytes_that_every_stage_reads(
    payloads: DynamoPayloads, client: FaultyClient, table: Table, size_bytes: int
) -> None:
    """Also one that is too large for an item without compression."""
    compressing, job = _compressing(client, table), a_job(payload=payload_of(size_bytes))

    apart = compressing.put_away(job)

    (item,) = table.client.scan(TableName=table.name)["Items"]
    assert len(item["payload"]["B"]) < 500
    assert payload_item(item) is not None
    for reader in (compressing, payloads):
        assert reader.load(apart) == job.payload.text
    payloads.delete(apart.tenant, apart.id, apart.payload.location)
    assert table.client.scan(TableName=table.name)["Items"] == []


def test_a_payload_is_compressed_only_if_that_saves_a_write_unit(client: FaultyClient, table: Table) -> None:
    compressing = _compressing(client, table)

    within_one_unit = compressing.put_away(a_job(payload=payload_of(800)))
    random_text = a_job(payload=json.dumps({"a": token_hex(600)}))
    apart = compressing.put_away(random_text)

    kinds = [str(each.payload.location).partition("/")[0] for each in (within_one_unit, apart)]
    assert kinds == ["item", "zlib"]
    assert len(random_text.payload.text or "") > 1_024
    assert compressing.load(apart) == random_text.payload.text


def test_a_payload_whose_compressed_bytes_are_too_many_for_an_item_is_a_file(
    payloads: DynamoPayloads, client: FaultyClient, table: Table, payload_bucket: PayloadBucket
) -> None:
    compressing = _compressing(client, table, largest_item_bytes=1024)
    compressing._bucket = lambda: Bucket(payload_bucket.client, payload_bucket.name)
    job = a_job(payload=json.dumps({"a": token_hex(5_000)}))

    apart = compressing.put_away(job)

    assert len(payload_bucket.keys()) == 1
    assert payloads.load(apart) == job.payload.text


@pytest.mark.parametrize("size_bytes", [LARGEST_INLINE_BYTES + 1, LARGEST_ITEM_BYTES + 1])
def test_loading_a_missing_payload_fails_and_names_the_job(payloads: DynamoPayloads, size_bytes: int) -> None:
    apart = payloads.put_away(a_job(payload=payload_of(size_bytes)))
    payloads.delete(apart.tenant, apart.id, apart.payload.location)

    with pytest.raises(MalformedDocumentError, match=apart.id):
        payloads.load(apart)


@pytest.mark.parametrize("changes", [{"payload": None}, {"payload": None, "payload_at": "elsewhere/1"}], ids=str)
def test_a_job_without_a_known_payload_location_is_malformed(payloads: DynamoPayloads, changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedDocumentError):
        payloads.load(a_job(**changes))


def test_a_missing_bucket_is_not_reported_as_a_missing_payload(
    payloads: DynamoPayloads, payload_bucket: PayloadBucket
) -> None:
    apart = payloads.put_away(a_job(payload=payload_of(LARGEST_ITEM_BYTES + 1)))
    payload_bucket.client.delete_object(Bucket=payload_bucket.name, Key=payload_bucket.keys()[0])
    payload_bucket.client.delete_bucket(Bucket=payload_bucket.name)

    with pytest.raises(MissingResourceError, match="NoSuchBucket"):
        payloads.load(apart)


def test_a_missing_file_is_malformed_also_without_the_right_to_list_the_bucket(
    payloads: DynamoPayloads, payload_bucket: PayloadBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = payloads.put_away(a_job(payload=payload_of(LARGEST_ITEM_BYTES + 1)))

    def denied(**_request: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "GetObject")  # type: ignore[typeddict-item]  # as far as it is looked at

    monkeypatch.setattr(payload_bucket.client, "get_object", denied)

    with pytest.raises(MalformedDocumentError):
        payloads.load(apart)


def test_the_item_of_a_job_is_not_a_payload(table: Table) -> None:
    assert payload_item(key(TENANT, "job")) is None


def test_payload_keys_separate_tenant_and_job_id_for_all_characters(payloads: DynamoPayloads, table: Table) -> None:
    for tenant, job_id in [("a", 'b","c'), ('a","b', "c"), ("a#b", "c")]:
        payloads.put_away(a_job(tenant=tenant, id=job_id, payload=payload_of(1000)))

    owners = map(payload_item, table.client.scan(TableName=table.name)["Items"])
    assert {(owner.tenant, owner.job_id) for owner in owners if owner} == {
        ("a", 'b","c'),
        ('a","b', "c"),
        ("a#b", "c"),
    }
