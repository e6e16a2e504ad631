"""Listing, cancelling and redriving through the deployed API."""

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.e2e.conftest import Deployed
from tidemill.local.signed_caller import Answer

pytestmark = pytest.mark.e2e


def delayed(deployed: Deployed) -> dict[str, Any]:
    """A job that waits for an hour."""
    body = json.dumps({"type": "demo.flaky", "payload": {"failures": 0}, "delay_seconds": 3600}).encode()
    answer = deployed.app.request("POST", "/jobs", body=body)
    assert answer.status == 202, answer
    return dict(answer.json())


def listed(deployed: Deployed, **query: str) -> Answer:
    return deployed.app.request("GET", f"/jobs?{urlencode(query)}")


def act(deployed: Deployed, job_id: str, what: str) -> Answer:
    return deployed.app.request("POST", f"/jobs/{job_id}/{what}", body=b"{}")


def test_jobs_are_listed_page_by_page_cancelled_and_gone_from_the_scheduled_ones(deployed: Deployed) -> None:
    jobs = [delayed(deployed) for _ in range(3)]
    assert {job["state"] for job in jobs} == {"scheduled"}
    query = {"state": "scheduled", "type": "demo.flaky", "since": jobs[0]["created_at"], "limit": "2"}

    first = listed(deployed, **query)
    assert first.status == 200, first
    second = listed(deployed, **query, cursor=first.json()["cursor"])
    found = [*first.json()["jobs"], *second.json()["jobs"]]
    assert [job["id"] for job in found] == [job["id"] for job in jobs[::-1]]

    for job in jobs:
        answer = act(deployed, job["id"], "cancel")
        assert (answer.status, answer.json()["state"]) == (200, "cancelled"), answer
    assert act(deployed, jobs[0]["id"], "cancel").status == 200
    assert listed(deployed, **query).json()["jobs"] == []


def test_a_cursor_is_of_no_use_to_another_or_with_other_filters(deployed: Deployed) -> None:
    jobs = [delayed(deployed) for _ in range(2)]
    query = {"since": jobs[0]["created_at"], "limit": "1"}
    cursor = listed(deployed, **query).json()["cursor"]
    path = f"/jobs?{urlencode(query | {'cursor': cursor})}"

    assert deployed.app.request("GET", path).status == 200
    assert deployed.app.request("GET", path, caller=deployed.app.assume("stranger")).status == 422
    assert listed(deployed, **query, state="dead", cursor=cursor).status == 422
    for job in jobs:
        act(deployed, job["id"], "cancel")


def test_a_dead_job_is_retried_and_dies_its_second_death(deployed: Deployed) -> None:
    job_id = deployed.accepted("demo.poison", {"body": "x"})
    deployed.until(job_id, state="dead")
    generation = deployed.document(job_id).generation

    assert act(deployed, job_id, "redrive").status == 200
    again = deployed.until(job_id, state="dead", holds=lambda job: bool(job["redrives"]))
    assert deployed.document(job_id).generation == generation + 1
    assert [redrive["death"] for redrive in again["redrives"]] == ["permanent error"]

    assert act(deployed, job_id, "cancel").json()["state"] == "cancelled"
    assert act(deployed, job_id, "redrive").status == act(deployed, job_id, "retry").status == 409


def test_another_tenants_job_cannot_be_cancelled_or_redriven(deployed: Deployed) -> None:
    job = delayed(deployed)
    stranger = deployed.app.assume("stranger")
    for what in ("cancel", "redrive", "retry"):
        answer = deployed.app.request("POST", f"/jobs/{job['id']}/{what}", caller=stranger)
        assert (answer.status, answer.json()["type"]) == (404, "urn:tidemill:problem:no-such-job")
    assert deployed.job(job["id"])["state"] == "scheduled"
    due = datetime.fromisoformat(job["due"]) - datetime.fromisoformat(job["created_at"])
    assert due == timedelta(hours=1)
    act(deployed, job["id"], "cancel")


def test_the_description_is_served_to_anybody(deployed: Deployed) -> None:
    answer = deployed.app.request("GET", "/openapi.json", signed=False)
    assert answer.status == 200
    assert answer.json()["openapi"] == "3.1.0"
