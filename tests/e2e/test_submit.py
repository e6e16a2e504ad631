"""Every option of a submission, through the deployed app."""

import json
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.conftest import Deployed
from tidemill.dynamodb.payloads import LARGEST_INLINE_BYTES, LARGEST_ITEM_BYTES
from tidemill.local.signed_caller import Answer


def _post(deployed: Deployed, path: str = "/jobs", **body: Any) -> Answer:
    return deployed.app.request("POST", path, body=json.dumps(body).encode())


def _flaky(**members: Any) -> dict[str, Any]:
    return {"type": "demo.flaky", "payload": {"failures": 0}, **members}


def test_a_delayed_job_starts_after_its_delay(deployed: Deployed) -> None:
    answer = _post(deployed, **_flaky(delay_seconds=2))
    assert answer.status == 202

    job = deployed.until(answer.json()["id"], state="succeeded")

    waited = datetime.fromisoformat(job["claimed_at"]) - datetime.fromisoformat(job["created_at"])
    assert waited >= timedelta(seconds=2)
    assert _post(deployed, **_flaky(delay_seconds=-1)).status == 422


def test_a_unique_job_is_one_job(deployed: Deployed) -> None:
    unique = {"period_seconds": 86_400 * 366, "key": str(uuid4())}

    first, again = (_post(deployed, **_flaky(unique=unique)) for _ in range(2))

    assert (first.status, again.status, again.headers["idempotent-replayed"]) == (202, 200, "true")
    assert again.json()["id"] == first.json()["id"]


def test_a_batch_is_answered_job_by_job_and_runs(deployed: Deployed) -> None:
    key = str(uuid4())
    jobs = [_flaky(idempotency_key=key), _flaky(payload={"failures": "x"}), _flaky(idempotency_key=key), _flaky()]

    answer = _post(deployed, "/jobs/batch", jobs=jobs)

    assert answer.status == 200
    answers = answer.json()["jobs"]
    assert [each["status"] for each in answers] == [202, 422, 200, 202]
    assert answers[1]["problem"]["errors"][0]["pointer"] == "#/jobs/1/payload/failures"
    for each in answers:
        if "job" in each:
            deployed.until(each["job"]["id"], state="succeeded")
    before = deployed.stored()
    assert _post(deployed, "/jobs/batch", jobs=[]).status == 422
    assert _post(deployed, "/jobs/batch", jobs=[_flaky()] * 101).status == 422
    assert deployed.stored() == before


@pytest.mark.parametrize("size_bytes", [LARGEST_INLINE_BYTES + 1, LARGEST_ITEM_BYTES + 1], ids=["item", "file"])
def test_a_large_payload_reaches_its_handler_and_its_owner(deployed: Deployed, size_bytes: int) -> None:
    payload = {"failures": 1, "text": "x" * size_bytes}
    key = str(uuid4())

    job = deployed.until(deployed.submit("demo.flaky", payload, key=key).json()["id"], state="succeeded")

    assert (job["result"], job["payload"]) == ({"attempts": 2}, payload)
    again = deployed.submit("demo.flaky", payload, key=key)
    assert (again.status, again.json()) == (200, job)
