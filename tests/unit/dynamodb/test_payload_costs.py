"""The cost of a payload, inside its document and outside."""

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    a_job,
    a_job_type,
    claimed,
    fresh_token,
    reference_to,
    types_of,
    with_changes,
)
from tests.support.faulty_client import FaultyClient
from tests.support.in_memory_owed_work import owing
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.features import submit_features
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.history_entries import WRITE_UNIT_BYTES, size_bytes
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import FIRST_RUN_BYTES, LARGEST_INLINE_BYTES, Bucket, DynamoPayloads
from tidemill.powertools.idempotency import insert_once
from tidemill.system.ids import new_token

#: An HTTP API and IAM give callers of this form.
CALLER = "111122223333:AROAEXAMPLEROLEID0042"
REQUEST = "JKJaXmPLvHcESHA="


def _no_bucket() -> Bucket:
    raise AssertionError("no bucket was needed")


def test_a_job_of_10_kilobytes_costs_14_writes_where_its_payload_inside_would_cost_33(
    client: FaultyClient, table: Table
) -> None:
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    store = DynamoJobStore(client, table=table.name, retention=RETENTION, indexes=Indexes(listed=True))  # type: ignore[arg-type]
    types = types_of(a_job_type())
    submit = submit_features.submit(
        store=store,
        payloads=owing(payloads),
        job_types=types,
        clock=Clock(),
        new_id=fresh_token,
        insert_once=insert_once,
    )
    sizes: list[int] = []

    def written(applied: bool) -> None:
        if applied:
            items = table.client.scan(TableName=table.name)["Items"]
            sizes.append(max(map(size_bytes, items)) if not sizes else min(map(size_bytes, items)))

    client.watch = written
    submission = Submission(type="test.job", payload={"text": "x" * 10 * 1024})
    job = claimed(store, submit(submission, tenant=CALLER, trace=REQUEST).job)
    store.settle(job, SETTLEMENTS[State.SUCCEEDED], now=NOW)

    assert len(sizes) == 4
    assert sum(-(-size // 1024) for size in sizes) == 14


#: Each is as long as the documents of AWS and W3C allow: a Lambda request id, a `traceparent`.
WORKER = "8d41d7a1-7fd5-4d3c-9c3f-6b1d2f3e4a5b/0123456789abcdef"
TRACE = f"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01/{REQUEST}"
TAGS = tuple(letter * 32 for letter in "abcde")


@pytest.mark.parametrize(("tags", "at_least"), [((), 310), (TAGS, 140)], ids=["no tags", "five tags"])
def test_a_job_that_succeeds_at_once_costs_one_write_unit_each_time_with_trace_tags_and_history(
    client: FaultyClient, table: Table, tags: tuple[str, ...], at_least: int
) -> None:
    """With the largest payload that its document may hold, and a result of 100 bytes."""
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    store = DynamoJobStore(client, table=table.name, retention=RETENTION, indexes=Indexes(listed=True))  # type: ignore[arg-type]
    empty = a_job(tenant=CALLER, id="0" * 36, type="billing.invoice.send", trace=TRACE, tags=tags)
    inside = [
        job
        for size in range(2, LARGEST_INLINE_BYTES + 1)
        if payloads.put_away(job := with_changes(empty, payload="x" * size)).payload.location is None
    ]
    job = inside[-1]
    sizes = []

    def written(applied: bool) -> None:
        item = table.item(job)
        if applied and item:
            sizes.append(size_bytes(item))

    client.watch = written
    store.insert_if_absent(job)
    running = store.claim(reference_to(job), token="0" * 32, now=NOW, lease_end=NOW + LEASE, worker=WORKER)
    store.settle(running, Settlement(state=State.SUCCEEDED, result="x" * 100), now=NOW + SECOND)

    assert len(sizes) == 3
    assert max(sizes) <= 1024
    assert at_least <= len(job.payload.text or "") == len(inside) + 1


def test_a_small_payload_is_stored_apart_exactly_where_that_saves_its_document_a_write_unit(
    client: FaultyClient, table: Table
) -> None:
    """The document without it has its location instead."""
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=new_token)  # type: ignore[arg-type]
    small = a_job(tenant=CALLER, id="0" * 36, payload="x" * 300)

    def bytes_after_first_run(job: Job) -> int:
        return size_bytes(encode(job)) + len(job.tenant) + FIRST_RUN_BYTES

    first = WRITE_UNIT_BYTES - bytes_after_first_run(small)
    jobs = [replace(small, trace="t" * (first - len("trace") + more)) for more in range(-5, 320)]
    moved = [(job, stored) for job in jobs if (stored := payloads.put_away(job)) != job]

    assert [bytes_after_first_run(both[0]) for both in moved] == list(range(1025, 1025 + len(moved)))
    assert bytes_after_first_run(moved[-1][1]) == 1024


def test_a_payload_stays_in_a_document_that_is_too_large_without_it(client: FaultyClient, table: Table) -> None:
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    job = a_job(tenant="x" * 500, payload="{}")

    assert payloads.put_away(job) == job
