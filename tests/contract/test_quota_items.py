"""The shared counts of submissions in the jobs table."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW, TENANT, fresh_token
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.admission.quotas import Period
from tidemill.domain.errors import StoreUnavailableError
from tidemill.dynamodb.admission.quota_items import DynamoSubmissionCounts
from tidemill.names import JOB_KEY, QUOTA_KEY, TTL_ATTRIBUTE

PERIOD = Period(begins=NOW, ends=NOW + timedelta(minutes=1))


@pytest.fixture
def counts(client: FaultyClient, table: Table) -> DynamoSubmissionCounts:
    return DynamoSubmissionCounts(client, table=table.name, new_token=fresh_token)  # type: ignore[arg-type]  # a proxy


def test_each_tenant_and_each_period_has_a_count(counts: DynamoSubmissionCounts) -> None:
    later = Period(begins=PERIOD.ends, ends=PERIOD.ends + timedelta(minutes=1))

    assert [counts.add(TENANT, PERIOD, 5), counts.add(TENANT, PERIOD, 2)] == [5, 7]
    assert counts.add("another", PERIOD, 1) == 1
    assert counts.add(TENANT, later, 3) == 3


def test_a_write_that_the_sdk_sends_twice_counts_once(counts: DynamoSubmissionCounts, client: FaultyClient) -> None:
    client.faults = [Fault.SENT_TWICE]

    assert counts.add(TENANT, PERIOD, 5) == 5
    assert counts.add(TENANT, PERIOD, 1) == 6


def test_a_store_that_does_not_respond_is_reported(counts: DynamoSubmissionCounts, client: FaultyClient) -> None:
    client.faults = [Fault.NOT_SENT]

    with pytest.raises(StoreUnavailableError):
        counts.add(TENANT, PERIOD, 5)


def test_a_count_expires_an_hour_after_its_period(counts: DynamoSubmissionCounts, table: Table) -> None:
    counts.add(TENANT, PERIOD, 5)

    (item,) = table.client.scan(TableName=table.name)["Items"]
    assert item[JOB_KEY]["S"].startswith(QUOTA_KEY)
    assert item[JOB_KEY]["S"].endswith(TENANT)
    late = int(item[TTL_ATTRIBUTE]["N"]) - PERIOD.ends.timestamp()
    assert 3_600 <= late < 3_601
