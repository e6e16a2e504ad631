"""What every end-to-end test needs: to submit, to look, to wait for a job, and the mark that says what it takes."""

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from demo.observe import all_jobs
from tidemill.domain.job import Job
from tidemill.local.lifecycle import App
from tidemill.local.signed_caller import Answer
from tidemill.local.wait import wait_until
from tidemill.names import Lane, Output

#: Longer than a killed worker's messages stay hidden: six function timeouts of three seconds.
PATIENCE_SECONDS = 40


class Deployed:
    """The deployed app in a test's words."""

    def __init__(self, app: App) -> None:
        self.app = app
        urls = json.loads(app.outputs[Output.LANES])[Lane.DEFAULT]
        self.queue_url: str = urls["queue"]
        self.letters_url: str = urls["dead_letters"]

    def submit(self, type_: str, payload: dict[str, Any], *, key: str | None = None) -> Answer:
        body = json.dumps({"type": type_, "payload": payload}).encode()
        return self.app.request("POST", "/jobs", body=body, key=key)

    def accepted(self, type_: str, payload: dict[str, Any]) -> str:
        """Submit, and return the id."""
        answer = self.submit(type_, payload, key=str(uuid4()))
        assert answer.status == 202, answer
        return str(answer.json()["id"])

    def job(self, job_id: str) -> dict[str, Any]:
        answer = self.app.request("GET", f"/jobs/{job_id}")
        assert answer.status == 200, answer
        return dict(answer.json())

    def until(self, job_id: str, *, state: str, holds: Callable[[dict[str, Any]], bool] = lambda _: True) -> Any:
        """The job, once it is in `state`."""

        def there() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] == state and holds(job) else None

        return wait_until(there, PATIENCE_SECONDS, f"job {job_id} to be {state}")

    def document(self, job_id: str) -> Job:
        """The stored job, with the fields that the API does not show."""
        (job,) = [job for job in all_jobs(self.app) if job.id == job_id]
        return job

    def tenant_of(self, job_id: str) -> str:
        """Under whom the job is filed."""
        return self.document(job_id).tenant

    def stored(self) -> int:
        """How many documents there are."""
        return len(all_jobs(self.app))

    def depth(self, url: str) -> int:
        """Messages on a queue: visible, hidden and delayed."""
        answer = self.app.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return sum(int(answer[f"ApproximateNumberOfMessages{which}"]) for which in ("", "NotVisible", "Delayed"))

    def send(self, body: str, *, times: int = 1) -> None:
        """Put something on the lane by hand."""
        for _ in range(times):
            self.app.client("sqs").send_message(QueueUrl=self.queue_url, MessageBody=body)

    def drained(self) -> None:
        wait_until(lambda: self.depth(self.queue_url) == 0, PATIENCE_SECONDS, "the lane to be empty")

    def letters_of(self, job_id: str) -> int:
        """How many letters tell of this job. Looks and hides nothing."""
        answer = self.app.client("sqs").receive_message(
            QueueUrl=self.letters_url, MaxNumberOfMessages=10, VisibilityTimeout=0
        )
        return sum(job_id in message["Body"] for message in answer.get("Messages", []))


@pytest.fixture
def deployed(app: App) -> Deployed:
    return Deployed(app)
