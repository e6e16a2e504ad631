"""No race, crash or replay takes a payload from a job that needs it."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

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
    with_changes,
)
from tests.support.faulty_client import Fault, FaultyClient, KilledError
from tests.support.in_memory_owed_work import owing
from tests.support.job_tables import Table
from tests.support.payload_bucket import PayloadBucket, payload_of
from tests.support.single_job import Clock
from tidemill.application.features import submit_features
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.errors import (
    KeyReusedError,
    StoreUnavailableError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import (
    LARGEST_ITEM_BYTES,
    DynamoPayloads,
    payload_item,
)
from tidemill.names import JOB_KEY, PAYLOAD_PREFIX
from tidemill.powertools.idempotency import insert_once

Post = Callable[..., Accepted]
Apart = Callable[[], int]


@pytest.fixture
def apart(table: Table, payload_bucket: PayloadBucket) -> Apart:
    """Counts the payloads that are stored apart from their jobs."""

    def apart() -> int:
        items = table.client.scan(TableName=table.name)["Items"]
        return sum(item[JOB_KEY]["S"].startswith(PAYLOAD_PREFIX) for item in items) + len(payload_bucket.keys())

    return apart


@pytest.fixture
def post(store: DynamoJobStore, payloads: DynamoPayloads) -> Post:
    clock = Clock()
    types = types_of(a_job_type())
    submit = submit_features.submit(
        store=store, payloads=owing(payloads), job_types=types, clock=clock, new_id=fresh_token, insert_once=insert_once
    )

    def post(payload: Mapping[str, Any], *, later: bool = False, **asked: Any) -> Accepted:
        clock.now = NOW + 2 * RETENTION if later else NOW
        submission = Submission(type="test.job", payload=payload, **asked)
        return submit(submission, tenant=TENANT, trace=fresh_token())

    return post


def test_a_second_body_for_one_idempotency_key_leaves_the_first_payload(
    post: Post, payloads: DynamoPayloads, apart: Apart
) -> None:
    first = post({"a": "x" * 2000}, key="key").job

    with pytest.raises(KeyReusedError):
        post({"a": "y" * 2000}, key="key")

    assert payloads.load(first) == payload_of(2008)
    assert apart() == 1


def test_a_second_body_for_one_unique_job_leaves_the_first_payload(
    post: Post, payloads: DynamoPayloads, apart: Apart
) -> None:
    unique = Unique(period=RETENTION, key="k")
    first = post({"a": "x" * 2000}, unique=unique).job

    assert post({"a": "y" * 2000}, unique=unique) == Accepted(job=first, replayed=True)

    assert payloads.load(first) == payload_of(2008)
    assert apart() == 1


@pytest.mark.parametrize("size_bytes", [2000, LARGEST_ITEM_BYTES + 1])
def test_concurrent_identical_submissions_keep_the_payload_of_the_accepted_one(
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
    assert payloads.load(stored(store, winner)) == payload_of(size_bytes + 8)
    assert apart() == 1


def test_deleting_the_payload_of_a_purged_job_keeps_that_of_the_next_job_with_its_key(
    post: Post, payloads: DynamoPayloads, table: Table
) -> None:
    first = post({"a": "x" * 2000}, key="key").job
    table.put(with_changes(first, state=State.SUCCEEDED, due=None, expires_at=NOW + RETENTION))
    second = post({"a": "x" * 2000}, key="key", later=True).job

    # The stream may report the removal of the first job much later.
    payloads.delete(first.tenant, first.id, first.payload.location)

    assert second.id == first.id
    assert payloads.load(second) == payload_of(2008)


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
def test_a_submission_without_an_answer_keeps_its_payload_in_case_its_job_was_written(
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
    assert payloads.load(answer.job) == payload_of(2008)
    assert apart() == 1 + left_behind


@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
def test_an_orphaned_payload_is_distinguishable_from_one_in_use(
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

    def in_use(job: Job | None, location: str) -> bool:
        return job is not None and job.payload.location == location

    kept = [owner for owner in owners if in_use(store.get(owner.tenant, owner.job_id), owner.location)]
    assert len(owners) == 3
    assert len(kept) == (2 if fault is Fault.KILLED_AFTER else 1)
    assert needed.payload.location in {owner.location for owner in kept}
    assert all(owner.stored_at - NOW < MILLISECOND for owner in owners)


def test_a_replay_is_answered_even_if_its_payload_cannot_be_deleted(
    client: FaultyClient, post: Post, payloads: DynamoPayloads
) -> None:
    first = post({"a": "x" * 2000}, key="key").job
    client.faults = [None, None, Fault.NOT_SENT]

    assert post({"a": "x" * 2000}, key="key") == Accepted(job=first, replayed=True)
    assert payloads.load(first) == payload_of(2008)


def test_a_submission_that_loses_the_race_for_its_group_keeps_its_payload_for_a_while(
    post: Post, store: DynamoJobStore, apart: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crowded(_job: Job) -> None:
        raise TransactionConflictError("others were faster")

    monkeypatch.setattr(store, "insert_if_absent", crowded)

    with pytest.raises(TransactionConflictError):
        post({"a": "x" * 2000}, group="g")

    # A send that is held up may write the job yet.
    assert apart() == 1


def test_an_insert_whose_repeat_conflicts_with_the_settle_of_its_job_keeps_its_payload(
    client: FaultyClient, post: Post, payloads: DynamoPayloads
) -> None:
    """The insert was applied, its answer lost, and by the time of the SDK's repeat a worker settles the job."""
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
    assert payloads.load(again.job) == payload_of(2008)


def test_an_insert_that_the_sdk_sends_twice_keeps_its_payload(
    client: FaultyClient, post: Post, payloads: DynamoPayloads, apart: Apart
) -> None:
    client.faults = [Fault.SENT_TWICE, Fault.SENT_TWICE]

    answer = post({"a": "x" * 2000}, key="key")

    assert not answer.replayed
    assert payloads.load(answer.job) == payload_of(2008)
    assert apart() == 1


def test_a_bucket_that_does_not_answer_counts_as_an_unavailable_store(
    payloads: DynamoPayloads, payload_bucket: PayloadBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(**_request: Any) -> None:
        raise ReadTimeoutError(endpoint_url="https://s3.invalid")

    monkeypatch.setattr(payload_bucket.client, "put_object", hang)

    with pytest.raises(StoreUnavailableError):
        payloads.put_away(a_job(payload=payload_of(LARGEST_ITEM_BYTES + 1)))
