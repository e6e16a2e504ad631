"""Quotas through the functions: 429 with Retry-After, and only for the tenant that has used its quota up."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.deployed_functions import TENANT, Mill
from tests.support.http_events import Answer, call
from tidemill.application.configuration import Configurator
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.entrypoints import submit
from tidemill.names import FLOW_PACKAGE, JOB_KEY, QUOTA_KEY, Env


@pytest.fixture(autouse=True)
def _clock(mill: Mill) -> None:
    mill.stop_clock()


def set_quota(mill: Mill, count: int, *, tenant: str = TENANT) -> None:
    changes = Configurator(store=DynamoConfiguration(mill.table.client, table=mill.table.name), clock=mill.now)
    value = {"count": count, "period_seconds": 3_600}
    changes.set(changes.read(), f"quotas.{tenant}", value, by="ops", reason="a test")
    mill.late += timedelta(seconds=10)


def quota_items(mill: Mill) -> list[Any]:
    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    return [item for item in items if item[JOB_KEY]["S"].startswith(QUOTA_KEY)]


@pytest.mark.parametrize("tenant", [TENANT, "default"])
def test_over_its_quota_a_tenant_gets_429_with_retry_after(mill: Mill, tenant: str) -> None:
    set_quota(mill, 2, tenant=tenant)

    answers = [mill.post() for _ in range(3)]

    assert [answer.status for answer in answers] == [202, 202, 429]
    refused = answers[-1]
    assert refused.body["type"] == "urn:tidemill:problem:quota-exceeded"
    assert refused.body["detail"] == "the quota of 2 jobs in 3600 s is used up; submit the job again later"
    assert 0 < int(refused.headers["Retry-After"]) <= 3_600


def test_no_quota_refuses_the_canaries(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    """A default quota of a day may be less than the three canaries of each minute."""
    monkeypatch.setenv(Env.CANARY, TENANT)
    set_quota(mill, 1, tenant="default")

    assert [mill.post().status for _ in range(3)] == [202, 202, 202]
    assert quota_items(mill) == []


def test_over_its_quota_a_tenant_still_gets_the_job_of_a_repeated_submission(mill: Mill) -> None:
    set_quota(mill, 1)
    first = mill.post(key="k")
    item = '{"type": "test.scripted", "payload": {}, "idempotency_key": "%s"}'
    batch = '{"jobs": [' + item % "k" + ", " + item % "new" + "]}"

    again, new = mill.post(key="k"), mill.post(key="new")
    both = call(submit, "POST", "/jobs/batch", body=batch, headers={"content-type": "application/json"})

    assert (first.status, again.status, new.status) == (202, 200, 429)
    assert (again.body["id"], again.headers["Idempotent-Replayed"]) == (first.body["id"], "true")
    assert [each["status"] for each in both.body["jobs"]] == [200, 429]
    assert both.body["jobs"][0]["job"]["id"] == first.body["id"]


def test_each_node_that_is_added_to_a_flow_counts(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE}")
    set_quota(mill, 3)
    flow = posted("/flows", "first").body["id"]
    path = f"/flows/{flow}/nodes"

    answers = [posted(path, *names) for names in (["second", "third"], ["fourth"], ["second", "third"])]

    assert [answer.status for answer in answers] == [200, 429, 200]
    assert answers[1].body["type"] == "urn:tidemill:problem:quota-exceeded"
    assert answers[2].body["size"] == 3


def posted(path: str, *names: str) -> Answer:
    body = json.dumps({"nodes": [{"name": name, "type": "test.scripted"} for name in names]})
    return call(submit, "POST", path, body=body, headers={"content-type": "application/json"})


def test_each_job_of_a_batch_counts(mill: Mill) -> None:
    set_quota(mill, 2)
    batch = '{"jobs": [' + ", ".join(['{"type": "test.noop", "payload": {}}'] * 3) + "]}"

    answer = call(submit, "POST", "/jobs/batch", body=batch, headers={"content-type": "application/json"})

    assert [each["status"] for each in answer.body["jobs"]] == [202, 202, 429]
    assert 0 < answer.body["jobs"][2]["retry_after"] <= 3_600


def test_another_tenant_is_not_refused_and_costs_no_write(mill: Mill) -> None:
    set_quota(mill, 0, tenant="another")

    assert [mill.post().status for _ in range(3)] == [202] * 3
    assert quota_items(mill) == []
