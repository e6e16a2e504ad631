"""The cost of a payload, inside its document and outside."""

from tests.support.builders import (
    NOW,
    RETENTION,
    SETTLEMENTS,
    a_job,
    a_job_type,
    claimed,
    fresh_token,
    stored,
    types_of,
)
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill.application.submit import Submit
from tidemill.aws.clients import Item
from tidemill.domain.states import State
from tidemill.domain.submission import Submission
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, Bucket, DynamoPayloads
from tidemill.powertools.idempotency import insert_once

#: As an HTTP API and IAM give them.
CALLER = "111122223333:AROAEXAMPLEROLEID0042"
REQUEST = "JKJaXmPLvHcESHA="


def _no_bucket() -> Bucket:
    raise AssertionError("no bucket was needed")


def _size_bytes(item: Item) -> int:
    """As a write is charged.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Item) -> int:
    ((kind, held),) = value.items()
    match kind:
        case "S":
            return len(held.encode())
        case "N":
            return (len(held.strip("0")) + 1) // 2 + 1
        case "L":
            return 3 + sum(1 + _value_bytes(each) for each in held)
        case "M":
            return 3 + sum(1 + len(name) + _value_bytes(each) for name, each in held.items())
    return 1


def test_a_job_of_10_kilobytes_costs_14_writes_where_its_payload_inside_would_cost_33(
    client: FaultyClient, table: Table
) -> None:
    payloads = DynamoPayloads(client, table=table.name, bucket=_no_bucket, new_token=fresh_token)  # type: ignore[arg-type]
    store = DynamoJobStore(client, table=table.name, retention=RETENTION, indexes=Indexes(listed=True))  # type: ignore[arg-type]
    types = types_of(a_job_type())
    submit = Submit(
        store=store, payloads=payloads, job_types=types, clock=Clock(), new_id=fresh_token, insert_once=insert_once
    )
    sizes: list[int] = []

    def written(applied: bool) -> None:
        if applied:
            items = table.client.scan(TableName=table.name)["Items"]
            sizes.append(max(map(_size_bytes, items)) if not sizes else min(map(_size_bytes, items)))

    client.watch = written
    submission = Submission(type="test.job", payload={"text": "x" * 10 * 1024})
    job = claimed(store, submit(submission, tenant=CALLER, trace=REQUEST).job)
    store.settle(job, SETTLEMENTS[State.SUCCEEDED], now=NOW)

    assert len(sizes) == 4
    assert sum(-(-size // 1024) for size in sizes) == 14


def test_a_document_with_the_largest_payload_that_it_may_hold_costs_one_write_each_time(
    client: FaultyClient, table: Table
) -> None:
    store = DynamoJobStore(client, table=table.name, retention=RETENTION, indexes=Indexes(listed=True))  # type: ignore[arg-type]
    job = a_job(tenant=CALLER, id="0" * 36, trace=REQUEST, payload="x" * LARGEST_INLINE_BYTES)
    sizes = []

    def written(applied: bool) -> None:
        item = table.item(job)
        if applied and item:
            sizes.append(_size_bytes(item))

    client.watch = written
    store.insert_if_absent(job)
    token = "0" * 32
    store.settle(claimed(store, job, token=token), SETTLEMENTS[State.RETRYING], now=NOW)
    again = claimed(store, stored(store, job), token=token[:-1] + "1", now=NOW + RETENTION)
    store.settle(again, SETTLEMENTS[State.SUCCEEDED], now=NOW + RETENTION)

    assert len(sizes) == 5
    assert max(sizes) <= 1024
