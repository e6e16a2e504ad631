"""Lanes through the deployed app: a flood on one lane does not delay the others."""

import json

from tests.e2e.conftest import Deployed
from tidemill.names import Lane

#: More jobs than the workers of the bulk lane finish before the urgent job ends. They run two batches of ten at a time.
FLOOD = 60


def test_urgent_work_overtakes_a_flood_of_bulk_work(deployed: Deployed) -> None:
    jobs = [{"type": "demo.wait", "payload": {"seconds": 1.2}, "lane": Lane.BULK} for _ in range(FLOOD)]
    answer = deployed.app.request("POST", "/jobs/batch", body=json.dumps({"jobs": jobs}).encode())
    flood = [item["job"]["id"] for item in answer.json()["jobs"]]

    urgent = deployed.until(deployed.accepted("demo.wait", {}), state="succeeded")

    assert urgent["lane"] == Lane.CRITICAL
    last = [deployed.until(job_id, state="succeeded") for job_id in flood]
    assert {job["lane"] for job in last} == {Lane.BULK}
    assert max(job["claimed_at"] for job in last) > urgent["finished_at"]
