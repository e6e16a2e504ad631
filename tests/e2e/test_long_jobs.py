"""The long jobs of the example through the deployed app: an export whose worker is killed, and the rollup."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from shortener.click import Click
from shortener.click_table import Clicks
from shortener.click_writes import ClickWrites, _record
from shortener.names import Output as ShortenerOutput
from shortener.visitor import Visitor
from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.dynamodb.attempt.effects import entries
from tidemill.local.wait import wait_until

#: More clicks than one invocation can read in pages this small: a run on the bulk lane has two seconds here.
CLICKS, PAGE = 2_000, 10
VISITOR = Visitor(country="SE", browser="Firefox", system="Linux", device="Other", bot=False)
MILLISECOND = timedelta(milliseconds=1)


@pytest.fixture
def code(deployed: Deployed) -> str:
    code = uuid4().hex
    body = json.dumps({"code": code, "url": "https://example.com/there"}).encode()
    assert deployed.app.request("POST", "/links", body=body, api=ShortenerOutput.API_ID).status == 201
    return code


@pytest.fixture
def clicks_table(deployed: Deployed) -> str:
    (table,) = [name for name in deployed.app.client("dynamodb").list_tables()["TableNames"] if "Clicks" in name]
    return str(table)


def record(deployed: Deployed, table: str, code: str, first: datetime) -> list[str]:
    """Write the records of CLICKS clicks, a millisecond apart. Returns their times in the format of the export."""
    dynamodb = deployed.app.client("dynamodb")
    times = [first + number * MILLISECOND for number in range(CLICKS)]
    items = [_record(Click(code=code), VISITOR, job_id="by-hand", at=at) for at in times]

    def put(start: int) -> None:
        requests = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        assert not dynamodb.batch_write_item(RequestItems={table: requests})["UnprocessedItems"]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(put, range(0, CLICKS, 25)))
    return [at.isoformat(timespec="milliseconds").replace("+00:00", "Z") for at in times]


def until(deployed: Deployed, job_id: str, **expected: Any) -> dict[str, Any]:
    def there() -> dict[str, Any] | None:
        job = deployed.job(job_id)
        return job if all(job[name] == value for name, value in expected.items()) else None

    return wait_until(there, PATIENCE_SECONDS, f"job {job_id} to have {expected}") or {}


def test_an_export_over_many_invocations_whose_worker_is_killed_has_every_click_once(
    deployed: Deployed, clicks_table: str, code: str
) -> None:
    times = record(deployed, clicks_table, code, datetime.now(UTC).replace(microsecond=0) - timedelta(days=1))
    job_id = deployed.accepted("clicks.export", {"code": code, "format": "jsonl", "page": PAGE})
    seen = wait_until(
        lambda: (job := deployed.job(job_id))["hops"] > 0 and job["state"] == "running" and job,
        PATIENCE_SECONDS,
        "the export to continue in another invocation",
    )
    assert 0 < seen["progress"]["done"] < CLICKS

    deployed.app.kill_worker("work-bulk")

    job = until(deployed, job_id, state="succeeded")
    assert job["progress"]["done"] == job["progress"]["total"] == job["result"]["lines"] == CLICKS
    file = deployed.app.client("s3").get_object(Bucket=job["result"]["bucket"], Key=job["result"]["key"])
    data = file["Body"].read()
    assert len(data) == job["result"]["bytes"]
    assert [json.loads(line)["at"] for line in data.splitlines()] == times


def test_another_owner_cannot_export_the_clicks(deployed: Deployed, code: str) -> None:
    body = json.dumps({"type": "clicks.export", "payload": {"code": code}}).encode()
    stranger = deployed.app.assume("stranger")
    job_id = deployed.app.request("POST", "/jobs", body=body, caller=stranger).json()["id"]

    def ended() -> Any:
        job = deployed.app.request("GET", f"/jobs/{job_id}", caller=stranger).json()
        return job if job["state"] == "dead" else None

    job = wait_until(ended, PATIENCE_SECONDS, "the export to be refused")
    assert job["errors"][0]["message"] == f"no link of yours has the code {code}"


def test_a_rollup_reads_all_kept_counters_and_does_not_change_the_stats(
    deployed: Deployed, clicks_table: str, code: str
) -> None:
    dynamodb = deployed.app.client("dynamodb")
    # Delete the progress, since the schedule may have run a rollup already.
    dynamodb.delete_item(TableName=clicks_table, Key={"pk": {"S": "!rollup"}, "sk": {"S": "through"}})
    clicks = Clicks(dynamodb, table=clicks_table)
    then = datetime.now(UTC) - timedelta(days=3)
    for number in range(4):
        counting = ClickWrites(clicks, first_job_id=str(number), now=then)
        writes = counting.of(Click(code=code), VISITOR, job_id=str(number), at=then)
        dynamodb.transact_write_items(TransactItems=entries(writes))
    before = deployed.app.request("GET", f"/links/{code}/stats", api=ShortenerOutput.API_ID).json()
    assert before["days"] == {str(then.date()): 4}

    job = until(deployed, deployed.accepted("clicks.rollup", {}), state="succeeded")

    assert job["result"]["shards"] >= 1
    assert job["progress"]["total"] % 16 == 0
    assert deployed.app.request("GET", f"/links/{code}/stats", api=ShortenerOutput.API_ID).json() == before
    assert clicks.total(code).counters["clicks"] == 4
