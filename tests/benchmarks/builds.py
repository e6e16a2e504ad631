"""The builds behind one interface. Import it inside `loopback`: the textbook build makes its clients at import."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.benchmarks.loopback_client import Loopback
from tests.benchmarks.textbook import consumer, producer
from tests.support.http_events import http_event
from tidemill.entrypoints import publish, submit, work

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Context:
    """The Lambda context, as far as the builds read it."""

    aws_request_id: str = "5f0d1a2e-3b4c-4d5e-8f90-123456789abc"
    function_name: str = "bench"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:000000000000:function:bench"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


CONTEXT = Context()


class Build(Protocol):
    name: str

    def submission(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the event of a request that submits a job."""

    def submit(self, payload: Mapping[str, Any]) -> None: ...

    def publish(self, taken: Mapping[str, Any]) -> None:
        """Pass what the submissions wrote on to the queue."""

    def work(self, event: Mapping[str, Any]) -> None: ...


class Tidemill:
    name = "tidemill"
    job_type = "bench.work"

    def submission(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        return _request({"type": self.job_type, "payload": payload})

    def submit(self, payload: Mapping[str, Any]) -> None:
        _require(202, submit.handle(self.submission(payload), CONTEXT)["statusCode"])

    def submit_batch(self, jobs: int) -> None:
        body = {"jobs": [{"type": "bench.work", "payload": {}}] * jobs}
        answer = submit.handle(_request(body, path="/jobs/batch"), CONTEXT)
        _require([202] * jobs, [each["status"] for each in json.loads(answer["body"])["jobs"]])

    def publish(self, taken: Mapping[str, Any]) -> None:
        records = [
            {"eventName": "INSERT", "dynamodb": {"SequenceNumber": str(next(_numbers)), "NewImage": item}}
            for item in taken["inserted"]
        ]
        _require([], publish.handle({"Records": records}, CONTEXT)["batchItemFailures"])

    def work(self, event: Mapping[str, Any]) -> None:
        _require([], work.handle(event, CONTEXT)["batchItemFailures"])


class Textbook:
    """It sends its message when it submits, so it has no publisher."""

    name = "textbook"

    def submission(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        return _request({"payload": payload})

    def submit(self, payload: Mapping[str, Any]) -> None:
        _require(202, producer.handle(self.submission(payload), CONTEXT)["statusCode"])

    def publish(self, taken: Mapping[str, Any]) -> None:
        pass

    def work(self, event: Mapping[str, Any]) -> None:
        _require([], consumer.handle(dict(event), CONTEXT)["batchItemFailures"])


class Grouped(Tidemill):
    """With grouped commit, which a job type asks for."""

    name = "grouped"
    job_type = "bench.grouped"


BUILDS: tuple[Build, ...] = (Textbook(), Tidemill())
WITH_GROUPED: tuple[Build, ...] = (*BUILDS, Grouped())


def queued(build: Build, aws: Loopback, payload: Mapping[str, Any], *, jobs: int) -> dict[str, Any]:
    """The event with `jobs` new jobs, as the mapping of the queue passes it."""
    aws.take()
    for _ in range(jobs):
        build.submit(payload)
    taken = aws.take()
    build.publish(taken)
    return lambda_event([*taken["sent"], *aws.take()["sent"]])


def lambda_event(bodies: Sequence[str]) -> dict[str, Any]:
    return {"Records": [_record(body) for body in bodies]}


def _record(body: str) -> dict[str, Any]:
    number = next(_numbers)
    return {
        "messageId": f"059f36b4-87a3-44ab-83d2-{number:012}",
        "receiptHandle": f"receipt-{number}",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1767225600000"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:lane",
        "awsRegion": "us-east-1",
    }


def _request(body: Mapping[str, Any], *, path: str = "/jobs") -> dict[str, Any]:
    headers = {"content-type": "application/json"}
    if path == "/jobs":
        headers["idempotency-key"] = f"key-{next(_numbers)}"
    return http_event("POST", path, body=json.dumps(body), headers=headers)


def _require(expected: Any, found: Any) -> None:
    assert found == expected, found
