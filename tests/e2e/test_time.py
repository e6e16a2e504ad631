"""Jobs for later, through the deployed app: on no lane until their time is near, and woken or found by its clocks."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.conftest import Deployed
from tidemill.aws.attribute_values import milliseconds
from tidemill.dynamodb.document import key
from tidemill.names import ATTENTION_SORT_KEY, Output

pytestmark = pytest.mark.e2e


def submitted(deployed: Deployed, run_at: datetime) -> dict[str, Any]:
    body = {"type": "demo.flaky", "payload": {"failures": 0}, "run_at": run_at.isoformat()}
    answer = deployed.app.request("POST", "/jobs", body=json.dumps(body).encode(), key=str(uuid4()))
    assert answer.status == 202, answer
    return dict(answer.json())


def brought_forward(deployed: Deployed, job_id: str, due: datetime) -> None:
    """As if so much time had gone by: the document is what the clock and the workers go by."""
    deployed.app.client("dynamodb").update_item(
        TableName=deployed.app.outputs[Output.JOBS_TABLE],
        Key=key(deployed.tenant_of(job_id), job_id),
        UpdateExpression="SET due = :due, #at = :due",
        ExpressionAttributeNames={"#at": ATTENTION_SORT_KEY},
        ExpressionAttributeValues={":due": milliseconds(due)},
    )


def call(deployed: Deployed, verb: str) -> None:
    """What its clock does."""
    name = json.loads(deployed.app.outputs[Output.FUNCTIONS])[verb]
    answer = deployed.app.client("lambda").invoke(FunctionName=name, Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()


def test_a_job_for_tomorrow_is_scheduled_and_can_be_cancelled(deployed: Deployed) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    job = submitted(deployed, tomorrow)
    assert job["state"] == "scheduled"

    call(deployed, "wake")
    assert deployed.job(job["id"])["state"] == "scheduled"

    assert deployed.app.request("POST", f"/jobs/{job['id']}/cancel", body=b"").status < 300
    assert deployed.job(job["id"])["state"] == "cancelled"


def test_a_scheduled_job_is_woken_and_runs_at_its_time(deployed: Deployed) -> None:
    job_id = submitted(deployed, datetime.now(UTC) + timedelta(hours=1))["id"]
    due = datetime.now(UTC) + timedelta(seconds=4)
    brought_forward(deployed, job_id, due)

    call(deployed, "wake")
    done = deployed.until(job_id, state="succeeded")

    assert datetime.fromisoformat(done["claimed_at"]) >= due - timedelta(milliseconds=1)
    assert datetime.fromisoformat(done["claimed_at"]) <= due + timedelta(seconds=10)


def test_a_scheduled_job_that_its_clock_has_missed_is_found_by_reconcile(deployed: Deployed) -> None:
    job_id = submitted(deployed, datetime.now(UTC) + timedelta(hours=1))["id"]
    brought_forward(deployed, job_id, datetime.now(UTC) - timedelta(hours=1))

    call(deployed, "reconcile")

    deployed.until(job_id, state="succeeded")
