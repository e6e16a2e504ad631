"""The location of payloads by size. No race or crash deletes a payload that a job needs."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.support import job_tables
from tests.support.builders import (
    MILLISECOND,
    NOW,
    RETENTION,
    TENANT,
    a_job,
    a_job_type,
    fresh_token,
    stored,
    types_of,
)
from tests.support.faulty_client import Fault, FaultyClient, KilledError
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.submit import Accepted, Submit
from tidemill.domain.errors import (
    KeyReusedError,
    MalformedDocumentError,
    StoreUnavailableError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.submission import Submission, Unique
from tidemill.dynamodb.document import key
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import (
    LARGEST_INLINE_BYTES,
    LARGEST_ITEM_BYTES,
    PAYLOAD_PREFIX,
    Bucket,
    DynamoPayloads,
    payload_item,
)
from tidemill.names import JOB_KEY, LARGEST_BODY_BYTES, PAYLOADS_PREFIX
from tidemill.powertools.idempotency import insert_once

#: As an HTTP API and IAM give them.
CALLER = "111122223333:AROAEXAMPLEROLEID0042"
REQUEST = "JKJaXmPLvHcESHA="


def _no_bucket() -> Bucket:
    raise AssertionError("no bucket was needed")


class Files:
    """A fresh bucket for one test, beside the table."""

    def __init__(self, table: Table) -> None:
        endpoint = table.client.meta.endpoint_url
        self.client = job_tables.client("s3", endpoint if endpoint.startswith("http://127.0.0.1:") else None)
        self.bucket = f"files-of-{table.name}"
        self.client.create_bucket(
            Bucket=self.bucket, CreateBucketConfiguration={"LocationConstraint": job_tables.REGION}
        )

    def keys(self) -> list[str]:
        return [each["Key"] for each in self.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])]


@pytest.fixture
def files(table: Table) -> Files:
    return Files(table)


@pytest.fixture
def payloads(client: FaultyClient, table: Table, files: Files) -> DynamoPayloads:
    return DynamoPayloads(
        client,  # type: ignore[arg-type]  # a proxy
        table=table.name,
        bucket=lambda: Bucket(files.client, files.bucket),
        new_token=fresh_token,
    )


Post = Callable[..., Accepted]
Apart = Callable[[], int]


@pytest.fixture
def apart(table: Table, files: Files) -> Apart:
    """The number of payloads stored outside documents."""

    def apart() -> int:
        items = table.client.scan(TableName=table.name)["Items"]
        return sum(item[JOB_KEY]["S"].startswith(PAYLOAD_PREFIX) for item in items) + len(files.keys())

    return apart


@pytest.fixture
def post(store: DynamoJobStore, payloads: DynamoPayloads) -> Post:
    clock = Clock()
    types = types_of(a_job_type())
    submit = Submit(
        store=store, payloads=payloads, job_types=types, clock=clock, new_id=fresh_token, insert_once=insert_once
    )

    def post(payload: Mapping[str, Any], *, later: bool = False, **asked: Any) -> Accepted:
        clock.now = NOW + 2 * RETENTION if later else NOW
        submission = Submission(type="test.job", payload=payload, **asked)
        return submit(submission, tenant=TENANT, trace=fresh_token())

    return post


def _payload(size_bytes: int, character: str = "x") -> str:
    return f'{{"a":"{character * (size_bytes - 8)}"}}'


@pytest.mark.parametrize("size_bytes", [2, LARGEST_INLINE_BYTES])
def test_a_small_payload_stays_in_its_document(client: FaultyClient, table: Table, size_bytes: int) -> None:
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    job = a_job(payload=_payload(size_bytes) if size_bytes > 2 else "{}")

    assert payloads.put_away(job) == job
    assert payloads.load(job) == job.payload
    payloads.delete(job)


@pytest.mark.parametrize("size_bytes", [LARGEST_INLINE_BYTES + 1, LARGEST_ITEM_BYTES])
def test_a_larger_payload_has_its_own_item_and_needs_no_bucket(
    client: FaultyClient, table: Table, size_bytes: int
) -> None:
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    job = a_job(payload=_payload(size_bytes))

    apart = payloads.put_away(job)

    assert apart == replace(job, payload=None, payload_at=apart.payload_at)
    assert payloads.load(apart) == job.payload
    (item,) = table.client.scan(TableName=table.name)["Items"]
    assert set(item) == {JOB_KEY, "payload", "stored_at"}
    owner = payload_item(item)
    assert owner is not None
    assert (owner.tenant, owner.job_id, owner.location, owner.stored_at) == (TENANT, job.id, apart.payload_at, NOW)
    payloads.delete(apart)
    payloads.delete(apart)
    assert table.client.scan(TableName=table.name)["Items"] == []


@pytest.mark.parametrize("size_bytes", [LARGEST_ITEM_BYTES + 1, LARGEST_BODY_BYTES])
def test_the_largest_payloads_are_files(payloads: DynamoPayloads, table: Table, files: Files, size_bytes: int) -> None:
    job = a_job(payload=_payload(size_bytes), tenant="x" * 512)

    apart = payloads.put_away(job)

    assert apart.payload is None
    assert payloads.load(apart) == job.payload
    (path,) = files.keys()
    assert path.startswith(PAYLOADS_PREFIX)
    assert len(path) < 1024
    assert table.client.scan(TableName=table.name)["Items"] == []
    payloads.delete(apart)
    payloads.delete(apart)
    assert files.keys() == []


@pytest.mark.parametrize("size_bytes", [LARGEST_INLINE_BYTES + 1, LARGEST_ITEM_BYTES + 1])
def test_a_missing_payload_raises(payloads: DynamoPayloads, size_bytes: int) -> None:
    apart = payloads.put_away(a_job(payload=_payload(size_bytes)))
    payloads.delete(apart)

    with pytest.raises(MalformedDocumentError, match=apart.id):
        payloads.load(apart)


@pytest.mark.parametrize("changes", [{"payload": None}, {"payload": None, "payload_at": "elsewhere/1"}], ids=str)
def test_a_job_that_has_no_location_of_ours_is_malformed(payloads: DynamoPayloads, changes: dict[str, Any]) -> None:
    with pytest.raises(MalformedDocumentError):
        payloads.load(a_job(**changes))


def test_a_bucket_that_denies_access_is_not_a_missing_payload(payloads: DynamoPayloads, files: Files) -> None:
    apart = payloads.put_away(a_job(payload=_payload(LARGEST_ITEM_BYTES + 1)))
    files.client.delete_object(Bucket=files.bucket, Key=files.keys()[0])
    files.client.delete_bucket(Bucket=files.bucket)

    with pytest.raises(ClientError, match="NoSuchBucket"):
        payloads.load(apart)


def test_a_missing_file_raises_without_the_right_to_list_the_bucket(
    payloads: DynamoPayloads, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = payloads.put_away(a_job(payload=_payload(LARGEST_ITEM_BYTES + 1)))

    def denied(**_request: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}, "GetObject")  # type: ignore[typeddict-item]  # only the fields that are read

    monkeypatch.setattr(files.client, "get_object", denied)

    with pytest.raises(MalformedDocumentError):
        payloads.load(apart)


def test_an_item_of_another_kind_is_not_a_payload_item(table: Table) -> None:
    assert payload_item(key(TENANT, "job")) is None


def test_payload_keys_of_different_tenants_and_jobs_never_collide(payloads: DynamoPayloads, table: Table) -> None:
    for tenant, job_id in [("a", 'b","c'), ('a","b', "c"), ("a#b", "c")]:
        payloads.put_away(a_job(tenant=tenant, id=job_id, payload=_payload(1000)))

    owners = map(payload_item, table.client.scan(TableName=table.name)["Items"])
    assert {(owner.tenant, owner.job_id) for owner in owners if owner} == {
        ("a", 'b","c'),
        ('a","b', "c"),
        ("a#b", "c"),
    }


def test_a_second_body_under_one_key_keeps_the_first_and_its_payload(
    post: Post, payloads: DynamoPayloads, apart: Apart
) -> None:
    first = post({"a": "x" * 2000}, key="key").job

    with pytest.raises(KeyReusedError):
        post({"a": "y" * 2000}, key="key")

    assert payloads.load(first) == _payload(2008)
    assert apart() == 1


def test_a_second_body_of_one_unique_job_keeps_the_first_and_its_payload(
    post: Post, payloads: DynamoPayloads, apart: Apart
) -> None:
    unique = Unique(period=RETENTION, key="k")
    first = post({"a": "x" * 2000}, unique=unique).job

    assert post({"a": "y" * 2000}, unique=unique) == Accepted(job=first, replayed=True)

    assert payloads.load(first) == _payload(2008)
    assert apart() == 1


@pytest.mark.parametrize("size_bytes", [2000, LARGEST_ITEM_BYTES + 1])
def test_concurrent_identical_submissions_keep_the_payload_of_the_winner(
    post: Post, payloads: DynamoPayloads, store: DynamoJobStore, apart: Apart, size_bytes: int
) -> None:
    answers: list[Accepted] = []
    threads = [
        threading.Thread(target=lambda: answers.append(post({"a": "x" * size_bytes}, key="key"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (winner,) = [answer.job for answer in answers if not answer.replayed]
    assert {answer.job for answer in answers} == {winner}
    assert payloads.load(stored(store, winner)) == _payload(size_bytes + 8)
    assert apart() == 1


def test_a_deleted_job_does_not_delete_the_payload_of_the_next_job_of_its_key(
    post: Post, payloads: DynamoPayloads, table: Table
) -> None:
    first = post({"a": "x" * 2000}, key="key").job
    table.put(replace(first, state=State.SUCCEEDED, due=None, expires_at=NOW + RETENTION))
    second = post({"a": "x" * 2000}, key="key", later=True).job

    # The stream may deliver the end of the first job much later.
    payloads.delete(first)

    assert second.id == first.id
    assert payloads.load(second) == _payload(2008)


@pytest.mark.parametrize(
    ("faults", "accepted", "left_behind"),
    [
        ([Fault.NOT_SENT], False, 0),
        ([Fault.ANSWER_LOST], False, 1),
        ([None, Fault.NOT_SENT], False, 1),
        ([None, Fault.ANSWER_LOST], True, 0),
    ],
    ids=str,
)
def test_a_submission_without_a_response_keeps_its_payload(
    post: Post,
    client: FaultyClient,
    payloads: DynamoPayloads,
    apart: Apart,
    *,
    faults: Any,
    accepted: bool,
    left_behind: int,
) -> None:
    client.faults = list(faults)
    with pytest.raises(StoreUnavailableError):
        post({"a": "x" * 2000}, key="key")

    answer = post({"a": "x" * 2000}, key="key")

    assert answer.replayed is accepted
    assert payloads.load(answer.job) == _payload(2008)
    assert apart() == 1 + left_behind


@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
def test_an_orphaned_payload_is_distinguished_from_a_needed_one(
    client: FaultyClient, post: Post, store: DynamoJobStore, table: Table, fault: Fault
) -> None:
    needed = post({"a": "x" * 2000}, key="key").job
    client.faults = [None, fault]
    with pytest.raises(KilledError):
        post({"a": "x" * 2000}, key="other")
    client.faults = [None, None, Fault.KILLED_BEFORE]
    with pytest.raises(KilledError):
        post({"a": "x" * 2000}, key="key")

    owners = [owner for item in table.client.scan(TableName=table.name)["Items"] if (owner := payload_item(item))]

    def wanted(job: Job | None, location: str) -> bool:
        return job is not None and job.payload_at == location

    kept = [owner for owner in owners if wanted(store.get(owner.tenant, owner.job_id), owner.location)]
    assert len(owners) == 3
    assert len(kept) == (2 if fault is Fault.KILLED_AFTER else 1)
    assert needed.payload_at in {owner.location for owner in kept}
    assert all(owner.stored_at - NOW < MILLISECOND for owner in owners)


def test_a_replay_succeeds_even_if_its_payload_cannot_be_deleted(
    client: FaultyClient, post: Post, payloads: DynamoPayloads
) -> None:
    first = post({"a": "x" * 2000}, key="key").job
    client.faults = [None, None, Fault.NOT_SENT]

    assert post({"a": "x" * 2000}, key="key") == Accepted(job=first, replayed=True)
    assert payloads.load(first) == _payload(2008)


def test_a_submission_that_conflicts_at_its_group_leaves_no_payload(
    post: Post, store: DynamoJobStore, apart: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crowded(_job: Job) -> None:
        raise TransactionConflictError("others were faster")

    monkeypatch.setattr(store, "insert_if_absent", crowded)

    with pytest.raises(TransactionConflictError):
        post({"a": "x" * 2000}, group="g")

    assert apart() == 0


def test_an_insert_whose_sdk_retry_conflicts_with_its_own_job_keeps_its_payload(
    client: FaultyClient, post: Post, payloads: DynamoPayloads
) -> None:
    """The insert took effect, its response was lost, and a worker settles the job during the SDK's retry."""
    applied: list[bool] = []

    def conflict(after: bool) -> None:
        applied.append(after)
        if applied.count(True) == 2:
            client.watch = lambda _applied: None
            raise ClientError({"Error": {"Code": "TransactionConflictException"}}, "PutItem")

    client.watch = conflict
    with pytest.raises(TransactionConflictError):
        post({"a": "x" * 2000}, key="key")

    again = post({"a": "x" * 2000}, key="key")
    assert again.replayed
    assert payloads.load(again.job) == _payload(2008)


def test_a_write_that_the_sdk_sends_twice_keeps_its_payload(
    client: FaultyClient, post: Post, payloads: DynamoPayloads, apart: Apart
) -> None:
    client.faults = [Fault.SENT_TWICE, Fault.SENT_TWICE]

    answer = post({"a": "x" * 2000}, key="key")

    assert not answer.replayed
    assert payloads.load(answer.job) == _payload(2008)
    assert apart() == 1


def test_a_bucket_that_does_not_respond_is_unavailable(
    payloads: DynamoPayloads, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(**_request: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://s3.invalid")

    monkeypatch.setattr(files.client, "put_object", hang)

    with pytest.raises(StoreUnavailableError):
        payloads.put_away(a_job(payload=_payload(LARGEST_ITEM_BYTES + 1)))
