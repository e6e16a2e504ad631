"""A burst of submissions through the deployed app: one job, moved and with the last payload, and then the next one."""

from typing import Any
from uuid import uuid4

from tests.e2e.conftest import Deployed


def test_a_burst_becomes_one_job_that_runs_with_the_last_payload(deployed: Deployed) -> None:
    options: dict[str, Any] = {"debounce_seconds": 10, "debounce_key": str(uuid4()), "replace": "payload"}

    answers = [deployed.submit("demo.flaky", {"failures": failures}, **options) for failures in (2, 1, 0)]

    assert [answer.status for answer in answers] == [202, 200, 200]
    assert answers[-1].headers["debounced"] == "true"
    job_id = answers[0].json()["id"]
    job = deployed.until(job_id, state="succeeded")
    assert {answer.json()["id"] for answer in answers} == {job_id}
    assert (job["payload"]["failures"], job["attempt"], job["debounce"]["replacements"]) == (0, 1, 2)
    assert job["claimed_at"] >= job["run_at"]

    later = deployed.submit("demo.flaky", {"failures": 0}, **options)

    assert later.status == 202
    assert later.json()["id"] != job_id
