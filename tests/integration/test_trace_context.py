"""The trace context of a caller reaches the document, the message, the run, its lines and the jobs that follow."""

import json
from typing import Any

import pytest

from tests.support.deployed_functions import Mill
from tests.support.http_events import call
from tidemill import Done, Run, Submission
from tidemill.domain.submission.trace_context import request_of, traceparent_of
from tidemill.entrypoints import submit
from tidemill.sqs import messages

CONTEXT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
X_RAY = "Root=1-4bf92f35-77b34da6a3ce929d0e0e4736;Parent=00f067aa0ba902b7;Sampled=1"


def posted(path: str, body: Any, **headers: str) -> Any:
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    answer = call(submit, "POST", path, body=json.dumps(body), headers={"content-type": "application/json", **sent})
    assert answer.status in {200, 202}, answer.body
    return answer.body


JOB = {"type": "test.scripted", "payload": {}}


def test_the_context_of_a_caller_reaches_the_run_its_lines_and_the_job_that_follows(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str | None] = []

    def handler(_payload: Any, run: Run) -> Any:
        seen.append(run.traceparent)
        run.log.info("seen")
        return Done(then=[Submission(type="test.scripted")]) if len(seen) == 1 else None

    mill.script.handler = handler
    job_id = posted("/jobs", JOB, traceparent=CONTEXT)["id"]
    mill.publish()
    event = mill.receive()
    assert messages.decode(event["Records"][0]["body"]).trace.startswith(f"{CONTEXT}/")  # type: ignore[union-attr]
    mill.work(event)
    mill.run()

    assert seen == [CONTEXT, CONTEXT]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (first, _) = [line["trace"] for line in lines if line.get("message") == "seen"]
    assert first == mill.job(job_id).trace


@pytest.mark.parametrize(
    ("headers", "context"),
    [
        ({"x_amzn_trace_id": X_RAY}, CONTEXT),
        ({"traceparent": CONTEXT, "x_amzn_trace_id": "Root=1-00000000-000000000000000000000001;Parent=1"}, CONTEXT),
        ({"traceparent": "nonsense", "x_amzn_trace_id": X_RAY}, CONTEXT),
        ({"traceparent": "nonsense"}, None),
        ({"x_amzn_trace_id": X_RAY.partition(";")[0]}, None),
        ({}, None),
    ],
)
def test_a_context_is_read_from_either_header_and_an_invalid_one_is_ignored(
    mill: Mill, headers: dict[str, str], context: str | None
) -> None:
    trace = mill.job(posted("/jobs", JOB, **headers)["id"]).trace

    assert traceparent_of(trace) == context
    assert request_of(trace).startswith("request-")


def test_the_jobs_of_a_batch_share_the_context_and_have_a_trace_each(mill: Mill) -> None:
    answer = posted("/jobs/batch", {"jobs": [JOB, JOB]}, traceparent=CONTEXT)

    first, second = (mill.job(each["job"]["id"]).trace for each in answer["jobs"])

    assert first.startswith(f"{CONTEXT}/")
    assert second.startswith(f"{CONTEXT}/")
    assert first != second
