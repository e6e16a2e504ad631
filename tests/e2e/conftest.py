"""The deployed app as the end-to-end tests use it: submit a job, read it, wait for it."""

import json
import subprocess
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from demo.observe import all_jobs
from tests.support.patience import PATIENCE_SECONDS
from tidemill.domain.job import Job
from tidemill.local.lifecycle import App
from tidemill.local.paths import VENV
from tidemill.local.signed_caller import Answer
from tidemill.local.wait import wait_until
from tidemill.names import Lane, Output


class Deployed:
    """The deployed app, with the steps that tests share."""

    def __init__(self, app: App) -> None:
        self.app = app
        urls = json.loads(app.outputs[Output.LANES])[Lane.DEFAULT]
        self.queue_url: str = urls["queue"]
        self.dead_letters_url: str = urls["dead_letters"]

    def submit(self, type_: str, payload: dict[str, Any], *, key: str | None = None, **fields: Any) -> Answer:
        """Submit a job with the other members in `fields`."""
        body = json.dumps({"type": type_, "payload": payload, **fields}).encode()
        return self.app.request("POST", "/jobs", body=body, key=key)

    def accepted(self, type_: str, payload: dict[str, Any], **fields: Any) -> str:
        """Submit a job that must be accepted. Returns its id."""
        answer = self.submit(type_, payload, key=str(uuid4()), **fields)
        assert answer.status == 202, answer
        return str(answer.json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        answer = self.app.request("GET", f"/jobs/{job_id}")
        assert answer.status == 200, answer
        return dict(answer.json())

    def until(self, job_id: str, *, state: str, holds: Callable[[dict[str, Any]], bool] = lambda _: True) -> Any:
        """Wait until the job is in `state` and `holds` is true. Returns the job."""

        def there() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] == state and holds(job) else None

        return wait_until(there, PATIENCE_SECONDS, f"job {job_id} to be {state}")

    def document(self, job_id: str) -> Job:
        """The stored job, with the fields that the API does not show."""
        (job,) = [job for job in all_jobs(self.app) if job.id == job_id]
        return job

    def tenant_of(self, job_id: str) -> str:
        """The tenant that owns the job."""
        return self.document(job_id).tenant

    def ledger(self, name: str) -> list[str]:
        """The words that demo jobs have written under this name."""
        dynamodb = self.app.client("dynamodb")
        (table,) = [table for table in dynamodb.list_tables()["TableNames"] if "DemoLedger" in table]
        key = {"name": {"S": name}}
        item = dynamodb.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {"words": {"L": []}})
        return [word["S"] for word in item["words"]["L"]]

    def stored(self) -> int:
        """The number of job documents."""
        return len(all_jobs(self.app))

    def depth(self, url: str) -> int:
        """The number of messages on the queue: visible, hidden and delayed."""
        answer = self.app.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return sum(int(answer[f"ApproximateNumberOfMessages{which}"]) for which in ("", "NotVisible", "Delayed"))

    def send(self, body: str, *, times: int = 1) -> None:
        """Send the body to the default lane, `times` times."""
        for _ in range(times):
            self.app.client("sqs").send_message(QueueUrl=self.queue_url, MessageBody=body)

    def drained(self) -> None:
        wait_until(lambda: self.depth(self.queue_url) == 0, PATIENCE_SECONDS, "the lane to be empty")

    def dead_letters_of(self, job_id: str) -> int:
        """The number of dead-letter messages for the job. Hides none of them."""
        answer = self.app.client("sqs").receive_message(
            QueueUrl=self.dead_letters_url, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        return sum(job_id in message["Body"] for message in answer.get("Messages", []))


@pytest.fixture
def deployed(app: App) -> Deployed:
    return Deployed(app)


class Tidemill:
    """Runs the command line as the ordinary caller of the app."""

    def __init__(self, deployed: Deployed) -> None:
        self._environment = deployed.app.caller.environment()

    def __call__(self, *arguments: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(VENV / "bin" / "tidemill"), *arguments],
            env=self._environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )


@pytest.fixture
def tidemill(deployed: Deployed) -> Tidemill:
    return Tidemill(deployed)
