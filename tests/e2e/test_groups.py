"""Blocked groups through the deployed app. `test_outcomes.py` tests the order of a group."""

import json
from typing import Any
from uuid import uuid4

from tests.e2e.conftest import Deployed
from tidemill.dynamodb.document import key
from tidemill.names import Output

#: The time at which a depot opens, in seconds since 1970.
NEVER = 1e12


def accepted(deployed: Deployed, group: str, number: int, **parcel: Any) -> str:
    payload = {"ledger": group, "number": number, **parcel}
    body = json.dumps({"type": "demo.depot", "group": group, "payload": payload}).encode()
    answer = deployed.app.request("POST", "/jobs", body=body)
    assert answer.status == 202, answer
    return str(answer.json()["id"])


def act(deployed: Deployed, job_id: str, what: str) -> None:
    answer = deployed.app.request("POST", f"/jobs/{job_id}/{what}", body=b"{}")
    assert answer.status == 200, answer


def open_depot(deployed: Deployed, job_id: str) -> None:
    """Change the stored payload of the job, so that its next run finds the depot open."""
    deployed.app.client("dynamodb").update_item(
        TableName=deployed.app.outputs[Output.JOBS_TABLE],
        Key=key(deployed.tenant_of(job_id), job_id),
        UpdateExpression="SET payload = :payload",
        ExpressionAttributeValues={":payload": {"S": json.dumps(deployed.job(job_id)["payload"] | {"opens_at": 0})}},
    )


def test_a_blocked_group_waits_until_its_head_is_retried(deployed: Deployed) -> None:
    group = uuid4().hex
    ids = [accepted(deployed, group, number, opens_at=NEVER if number < 2 else 0) for number in range(4)]

    deployed.until(ids[0], state="dead")
    open_depot(deployed, ids[0])
    deployed.drained()
    assert [deployed.job(job_id)["state"] for job_id in ids[1:]] == ["waiting"] * 3

    act(deployed, ids[1], "cancel")
    act(deployed, ids[0], "retry")
    jobs = [deployed.until(job_id, state="succeeded") for job_id in (ids[0], *ids[2:])]
    assert [job["sequence"] for job in jobs] == [1, 3, 4]
    assert [job["claimed_at"] for job in jobs] == sorted(job["claimed_at"] for job in jobs)
    assert deployed.job(ids[1])["state"] == "cancelled"


def test_a_blocked_group_advances_when_its_dead_job_is_cancelled(deployed: Deployed) -> None:
    group = uuid4().hex
    ids = [accepted(deployed, group, number, opens_at=NEVER if number == 0 else 0) for number in range(2)]
    deployed.until(ids[0], state="dead")

    act(deployed, ids[0], "cancel")

    deployed.until(ids[1], state="succeeded")
    assert deployed.job(ids[0])["state"] == "cancelled"
