"""The table scan: finds every overdue job, open group and payload, each in exactly one segment."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.support.builders import LEASE, MILLISECOND, NOW, TENANT, a_job, brought_to, fresh_token
from tests.support.job_tables import Table
from tidemill.application.ports import Found, JobStore, OpenGroup, PayloadItem, ScanPage, UnreadableItem
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.passes.table_scan import DynamoTableScan
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.names import JOB_KEY


@pytest.fixture
def table_scan(table: Table) -> DynamoTableScan:
    return DynamoTableScan(table.client, table=table.name)


@pytest.fixture
def payloads(table: Table) -> DynamoPayloads:
    def bucket() -> Bucket:
        raise AssertionError("none of these is so large")

    return DynamoPayloads(table.client, table=table.name, bucket=bucket, new_token=fresh_token)


def everything(table_scan: DynamoTableScan, *, segments: int = 1) -> list[Found]:
    return [
        found for number in range(segments) for page in pages(table_scan, number, of=segments) for found in page.found
    ]


def pages(
    table_scan: DynamoTableScan, segment: int, *, of: int, overdue_since: datetime = NOW + LEASE
) -> Iterator[ScanPage]:
    after = None
    while True:
        page = table_scan.page(segment, of=of, after=after, overdue_since=overdue_since)
        yield page
        if (after := page.cursor) is None:
            return


def test_jobs_whose_due_time_has_passed_are_found(store: JobStore, table_scan: DynamoTableScan) -> None:
    jobs = {state: brought_to(store, state) for state in State}

    found = {job.state for job in everything(table_scan) if isinstance(job, Job)}

    assert found == {State.QUEUED, State.RUNNING, State.RETRYING}
    assert jobs[State.RUNNING].due == NOW + LEASE
    early = pages(table_scan, 0, of=1, overdue_since=NOW - MILLISECOND)
    assert [one for page in early for one in page.found if isinstance(one, Job)] == []


def test_every_job_is_in_one_segment(store: JobStore, table_scan: DynamoTableScan) -> None:
    jobs = [brought_to(store, State.QUEUED) for _ in range(40)]

    found = Counter(job.id for job in everything(table_scan, segments=7) if isinstance(job, Job))

    assert found == Counter(job.id for job in jobs)


def test_a_page_continues_after_a_key_and_says_its_size_and_price(
    store: JobStore, table_scan: DynamoTableScan, table: Table
) -> None:
    jobs = {key_of(brought_to(store, State.QUEUED)) for _ in range(5)}
    whole = table_scan.page(0, of=1, after=None, overdue_since=NOW)
    assert (whole.cursor, whole.items) == (None, 5)
    assert whole.read_units >= 0.5
    first = key_of(next(one for one in whole.found if isinstance(one, Job)))

    rest = table_scan.page(0, of=1, after=first, overdue_since=NOW)
    assert {key_of(one) for one in rest.found if isinstance(one, Job)} == jobs - {first}

    # The item of the cursor may be deleted meanwhile.
    table.client.delete_item(TableName=table.name, Key={JOB_KEY: {"S": first}})
    assert table_scan.page(0, of=1, after=first, overdue_since=NOW).items == 4


def key_of(job: Job) -> str:
    return f"{job.tenant}#{job.id}"


def test_non_empty_groups_are_found(store: JobStore, table_scan: DynamoTableScan) -> None:
    job = store.insert_if_absent(a_job(group="a group"))
    assert OpenGroup(TENANT, "a group") in everything(table_scan)

    store.cancel(job, now=NOW)
    store.advance(TENANT, "a group", now=NOW)

    assert [found for found in everything(table_scan) if isinstance(found, OpenGroup)] == []


def test_a_page_begins_after_any_item_of_an_earlier_one(
    table: Table, store: JobStore, table_scan: DynamoTableScan, payloads: DynamoPayloads
) -> None:
    store.insert_if_absent(a_job(group="g"))
    payloads.put_away(a_job(payload='"' + "x" * 5_000 + '"'))
    table.client.put_item(TableName=table.name, Item={"pk": {"S": "!head#malformed"}})
    found = everything(table_scan)
    assert {type(one) for one in found} == {Job, OpenGroup, PayloadItem, UnreadableItem}

    cursors = [table_scan.cursor_after(one) for one in found]
    for number, cursor in enumerate(cursors, 1):
        page = table_scan.page(0, of=1, after=cursor, overdue_since=NOW + LEASE)
        assert [table_scan.cursor_after(one) for one in page.found] == cursors[number:]


def test_payloads_are_found_with_their_owner_and_discarded(
    store: JobStore, table_scan: DynamoTableScan, payloads: DynamoPayloads
) -> None:
    job = payloads.put_away(a_job(payload='"' + "x" * 5_000 + '"'))
    store.insert_if_absent(job)

    (payload,) = [found for found in everything(table_scan) if isinstance(found, PayloadItem)]
    assert (payload.tenant, payload.job_id, payload.location) == (job.tenant, job.id, job.payload.location)
    assert payload.stored_at == NOW

    table_scan.discard(payload)
    table_scan.discard(payload)
    assert [found for found in everything(table_scan) if isinstance(found, PayloadItem)] == []


@pytest.mark.parametrize("change", [{"schema": {"N": "99"}}, {"state": {"S": "perplexed"}}, {"lane": {"N": "1"}}])
def test_an_unreadable_item_is_reported_and_hides_no_others(
    store: JobStore, table_scan: DynamoTableScan, table: Table, change: dict[str, dict[str, str]]
) -> None:
    job = brought_to(store, State.QUEUED)
    malformed = replace(job, id="malformed")
    table.put(malformed, **change)
    table.client.put_item(TableName=table.name, Item={"pk": {"S": "!head#malformed"}})
    table.client.put_item(TableName=table.name, Item={"pk": {"S": "!payload#[]"}})

    found = everything(table_scan)

    assert [one for one in found if isinstance(one, Job)] == [job]
    keys = {one.key for one in found if isinstance(one, UnreadableItem)}
    assert keys == {f"{TENANT}#malformed", "!head#malformed", "!payload#[]"}
