"""The example through its deployed API: redirects, exact counts, and no address in plain text."""

import json
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from demo.observe import all_jobs
from shortener.names import Output as ShortenerOutput
from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.local.wait import wait_until

ADDRESS = "8.8.8.8"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:125.0) Gecko/20100101 Firefox/125.0"


@pytest.fixture
def code(deployed: Deployed) -> str:
    code = uuid4().hex
    body = json.dumps({"code": code, "url": "https://example.com/there"}).encode()
    assert deployed.app.request("POST", "/links", body=body, api=ShortenerOutput.API_ID).status == 201
    return code


def click(deployed: Deployed, code: str, *, key: str | None = None) -> None:
    headers = {"X-Forwarded-For": ADDRESS, "User-Agent": FIREFOX}
    answer = deployed.app.request("GET", f"/{code}", headers=headers, key=key, api=ShortenerOutput.API_ID, signed=False)
    assert (answer.status, answer.headers["location"]) == (302, "https://example.com/there")


def stats(deployed: Deployed, code: str) -> dict[str, object]:
    answer = deployed.app.request("GET", f"/links/{code}/stats", api=ShortenerOutput.API_ID)
    assert answer.status == 200
    return dict(answer.json())


def test_each_click_is_counted_once_and_repeats_are_not_counted(deployed: Deployed, code: str) -> None:
    for key in ("a", "a", "b", None, None):
        click(deployed, code, key=key)
    wait_until(lambda: stats(deployed, code)["clicks"] == 4, PATIENCE_SECONDS, "four clicks to be counted")
    deployed.drained()
    found = stats(deployed, code)
    assert (found["clicks"], found["countries"], found["browsers"]) == (4, {"US": 4}, {"Firefox": 4})


def test_many_clicks_at_once_share_transactions_and_each_is_counted_once(deployed: Deployed, code: str) -> None:
    with ThreadPoolExecutor(max_workers=10) as visitors:
        list(visitors.map(lambda number: click(deployed, code, key=str(number % 40)), range(60)))
    wait_until(lambda: stats(deployed, code)["clicks"] == 40, PATIENCE_SECONDS, "forty clicks to be counted")
    deployed.drained()
    found = stats(deployed, code)
    assert (found["clicks"], found["countries"], found["browsers"]) == (40, {"US": 40}, {"Firefox": 40})


def test_the_clicks_table_contains_no_address_in_plain_text(deployed: Deployed, code: str) -> None:
    click(deployed, code)
    wait_until(lambda: stats(deployed, code)["clicks"] == 1, PATIENCE_SECONDS, "the click to be counted")
    dynamodb = deployed.app.client("dynamodb")
    (table,) = [name for name in dynamodb.list_tables()["TableNames"] if "Clicks" in name]
    items = json.dumps(dynamodb.scan(TableName=table)["Items"])
    assert code in items
    assert ADDRESS not in items
    assert FIREFOX not in items


def test_an_unknown_code_is_not_found_and_creates_no_job(deployed: Deployed) -> None:
    before = deployed.stored()
    assert deployed.app.request("GET", "/nowhere", api=ShortenerOutput.API_ID, signed=False).status == 404
    assert deployed.stored() == before


def test_the_job_of_a_click_succeeds_at_its_first_attempt(deployed: Deployed, code: str) -> None:
    click(deployed, code)

    def ended() -> list[Job]:
        return [job for job in all_jobs(deployed.app) if code in (job.payload.text or "") and job.state.terminal]

    (job,) = wait_until(ended, PATIENCE_SECONDS, "the job of the click to end")
    assert (job.state, job.attempt) == (State.SUCCEEDED, 1)
