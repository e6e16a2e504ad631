"""The scan finds every overdue job, open group and payload of a table, each in one segment, among all other items."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.support.builders import LEASE, MILLISECOND, NOW, TENANT, a_job, brought_to, fresh_token
from tests.support.job_tables import Table
from tidemill.application.ports import Found, JobStore, OpenGroup, PayloadItem, UnreadableItem
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.dynamodb.table_scan import DynamoTableScan


@pytest.fixture
def table_scan(table: Table) -> DynamoTableScan:
    return DynamoTableScan(table.client, table=table.name)


@pytest.fixture
def payloads(table: Table) -> DynamoPayloads:
    def bucket() -> Bucket:
        raise AssertionError("none of these is so large")

    return DynamoPayloads(table.client, table=table.name, bucket=bucket, new_token=fresh_token)


def everything(table_scan: DynamoTableScan, *, segments: int = 1) -> list[Found]:
    pages = [
        page
        for number in range(segments)
        for page in table_scan.segment(number, of=segments, overdue_since=NOW + LEASE)
    ]
    return [found for page in pages for found in page]


def test_the_scan_finds_the_jobs_whose_due_time_has_passed(store: JobStore, table_scan: DynamoTableScan) -> None:
    jobs = {state: brought_to(store, state) for state in State}

    found = {job.state for job in everything(table_scan) if isinstance(job, Job)}

    assert found == {State.QUEUED, State.RUNNING, State.RETRYING}
    assert jobs[State.RUNNING].due == NOW + LEASE
    early = table_scan.segment(0, of=1, overdue_since=NOW - MILLISECOND)
    assert [one for page in early for one in page if isinstance(one, Job)] == []


def test_every_job_is_in_one_segment(store: JobStore, table_scan: DynamoTableScan) -> None:
    jobs = [brought_to(store, State.QUEUED) for _ in range(40)]

    found = Counter(job.id for job in everything(table_scan, segments=7) if isinstance(job, Job))

    assert found == Counter(job.id for job in jobs)


def test_groups_are_found_while_they_hold_jobs(store: JobStore, table_scan: DynamoTableScan) -> None:
    job = store.insert_if_absent(a_job(group="a group"))
    assert OpenGroup(TENANT, "a group") in everything(table_scan)

    store.cancel(job, now=NOW)
    store.advance(TENANT, "a group", now=NOW)

    assert [found for found in everything(table_scan) if isinstance(found, OpenGroup)] == []


def test_payloads_are_found_with_their_owner_and_discarded(
    store: JobStore, table_scan: DynamoTableScan, payloads: DynamoPayloads
) -> None:
    job = payloads.put_away(a_job(payload='"' + "x" * 5_000 + '"'))
    store.insert_if_absent(job)

    (payload,) = [found for found in everything(table_scan) if isinstance(found, PayloadItem)]
    assert (payload.tenant, payload.job_id, payload.location) == (job.tenant, job.id, job.payload_at)
    assert payload.stored_at == NOW

    table_scan.discard(payload)
    table_scan.discard(payload)
    assert [found for found in everything(table_scan) if isinstance(found, PayloadItem)] == []


@pytest.mark.parametrize("change", [{"schema": {"N": "99"}}, {"state": {"S": "perplexed"}}, {"lane": {"N": "1"}}])
def test_an_unreadable_item_is_named_and_hides_no_other_item(
    store: JobStore, table_scan: DynamoTableScan, table: Table, change: dict[str, dict[str, str]]
) -> None:
    job = brought_to(store, State.QUEUED)
    rubbish = replace(job, id="rubbish")
    table.put(rubbish, **change)
    table.client.put_item(TableName=table.name, Item={"pk": {"S": "!group#rubbish"}})
    table.client.put_item(TableName=table.name, Item={"pk": {"S": "!payload#[]"}})

    found = everything(table_scan)

    assert [one for one in found if isinstance(one, Job)] == [job]
    keys = {one.key for one in found if isinstance(one, UnreadableItem)}
    assert keys == {f"{TENANT}#rubbish", "!group#rubbish", "!payload#[]"}
